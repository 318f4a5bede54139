//! Shard selectors (KEP-5866): decide by a hash of the uid or of the namespace which objects a list or a watch selects.
//!
//! The string is a CEL expression with one function and `||` (`k8s.io/apiserver/pkg/sharding`). It is parsed here and
//! not as CEL. A client may send any string, and the parser of CEL needs a large stack for one with many brackets.
//! Comments, parentheses around ranges and both quotes are accepted. Escapes in strings are not.
//!
//! ```text
//! shardSelector   shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
//! ```

use std::fmt;

use kctl_apimachinery::fnv::hash64a;
use serde_json::Value;

/// The end of the last range: 2^64, the only bound with 17 digits.
const END: &str = "0x10000000000000000";

/// White space of CEL.
const BLANKS: [char; 5] = [' ', '\t', '\n', '\r', '\u{c}'];

const FORM: &str = "only shardRange(FIELD, START, END) and || are allowed";
const BOUND: &str = "a bound must be a string with 0x and 16 lower-case hexadecimal digits, or '0x10000000000000000'";
const EMPTY_RANGE: &str = "the start of a range must be less than its end";

/// A parsed shard selector. It selects the objects whose hash is in one of the ranges.
#[derive(Clone, Debug)]
pub(super) struct ShardSelector {
    field: HashedField,
    ranges: Vec<HashRange>,
}

/// The field whose hash is compared. All ranges of a selector have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HashedField {
    Uid,
    Namespace,
}

/// Hashes from `start` up to and excluding `end`, which is up to 2^64.
#[derive(Clone, Copy, Debug)]
struct HashRange {
    start: u128,
    end: u128,
}

impl ShardSelector {
    /// Parses a selector.
    ///
    /// # Errors
    /// Fails with the reason if the expression has anything but ranges of one field, joined by `||`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut reader, mut n_open) = (RangeReader { rest: text }, 0_usize);
        let mut found: Option<Self> = None;
        loop {
            while reader.skip("(") {
                n_open += 1;
            }
            let (field, range) = reader.range()?;
            let selector = found.get_or_insert_with(|| Self { field, ranges: Vec::new() });
            if selector.field != field {
                return Err("all ranges must have the same field".into());
            }
            selector.ranges.push(range);
            while n_open > 0 && reader.skip(")") {
                n_open -= 1;
            }
            if !reader.skip("||") {
                break;
            }
        }
        reader.skip_blanks();
        match found {
            Some(selector) if n_open == 0 && reader.rest.is_empty() => Ok(selector),
            _ => Err(FORM.into()),
        }
    }

    /// Returns `true` if the selector selects an object. A cluster-scoped object has the hash of the empty string as
    /// the hash of its namespace.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let value = object["metadata"][self.field.name()].as_str().unwrap_or_default();
        let hash = u128::from(hash64a(value));
        self.ranges.iter().any(|range| (range.start..range.end).contains(&hash))
    }
}

/// The canonical form, which the server returns in `shardInfo`.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, HashRange { start, end }) in self.ranges.iter().enumerate() {
            let or = if n == 0 { "" } else { " || " };
            write!(f, "{or}shardRange(object.metadata.{}, '{start:#018x}', '{end:#018x}')", self.field.name())?;
        }
        Ok(())
    }
}

impl HashedField {
    fn name(self) -> &'static str {
        match self {
            Self::Uid => "uid",
            Self::Namespace => "namespace",
        }
    }
}

/// Reads a selector from left to right.
struct RangeReader<'a> {
    rest: &'a str,
}

impl<'a> RangeReader<'a> {
    /// Skips white space and `//` comments.
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches(BLANKS);
        while let Some(comment) = self.rest.strip_prefix("//") {
            let (_, rest) = comment.split_once('\n').unwrap_or_default();
            self.rest = rest.trim_start_matches(BLANKS);
        }
    }

    /// Skips a token, and returns `true` if it is the next one.
    fn skip(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.skip(token) { Ok(()) } else { Err(FORM.into()) }
    }

    /// Reads `shardRange(FIELD, START, END)`.
    fn range(&mut self) -> Result<(HashedField, HashRange), String> {
        if self.identifier() != "shardRange" {
            return Err(FORM.into());
        }
        self.expect("(")?;
        let field = self.field()?;
        self.expect(",")?;
        let start = self.read_bound()?;
        self.expect(",")?;
        let range = HashRange { start, end: self.read_bound()? };
        self.expect(")")?;
        if range.start < range.end { Ok((field, range)) } else { Err(EMPTY_RANGE.into()) }
    }

    fn field(&mut self) -> Result<HashedField, String> {
        let mut path = vec![self.identifier()];
        while self.skip(".") {
            path.push(self.identifier());
        }
        match path.as_slice() {
            ["object", "metadata", "uid"] => Ok(HashedField::Uid),
            ["object", "metadata", "namespace"] => Ok(HashedField::Namespace),
            _ => Err("the field must be object.metadata.uid or object.metadata.namespace".into()),
        }
    }

    /// Reads an identifier. Returns the empty string if the next token is not one.
    fn identifier(&mut self) -> &'a str {
        self.skip_blanks();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (name, rest) =
            self.rest.split_at(self.rest.find(|letter: char| !is_part(letter)).unwrap_or(self.rest.len()));
        self.rest = rest;
        name
    }

    /// Reads a bound: a string with `0x` and 16 lower-case digits, or 2^64.
    fn read_bound(&mut self) -> Result<u128, String> {
        self.skip_blanks();
        let text = self.rest.strip_prefix(['r', 'R']).unwrap_or(self.rest);
        let quote = text.chars().next().filter(|quote| ['\'', '"'].contains(quote)).ok_or(BOUND)?;
        let (text, rest) = text[1..].split_once(quote).ok_or(BOUND)?;
        self.rest = rest;
        let digits = text.strip_prefix("0x").ok_or(BOUND)?;
        let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if !digits.bytes().all(is_hex) || (digits.len() != 16 && text != END) {
            return Err(BOUND.into());
        }
        u128::from_str_radix(digits, 16).map_err(|_| BOUND.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const WHOLE: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000000')";

    #[test]
    fn selector_is_returned_in_canonical_form() {
        let spaced = "( shardRange(object.metadata.uid,\"0x0000000000000000\",'0x10000000000000000') ) // all";
        assert_eq!(ShardSelector::parse(spaced).unwrap().to_string(), WHOLE);
        let two = "shardRange(object.metadata.namespace, '0x00000000000000aa', '0x00000000000000ff') || \
            shardRange(object.metadata.namespace, '0xc000000000000000', '0x10000000000000000')";
        assert_eq!(ShardSelector::parse(two).unwrap().to_string(), two);
    }

    /// The cases of `TestParse` upstream, and more.
    #[test]
    fn anything_but_ranges_of_one_field_is_rejected() {
        let range = |field: &str, bounds: &str| format!("shardRange({field}, {bounds})");
        let uid = |bounds: &str| range("object.metadata.uid", bounds);
        let half = "'0x0000000000000000', '0x8000000000000000'";
        let cases = [
            (" ".to_owned(), FORM),
            ("object.metadata.uid > '0x0'".into(), FORM),
            (format!("other(object.metadata.uid, {half})"), FORM),
            (range("object.metadata.name", half), "the field"),
            (range("object.metadata.uid.x", half), "the field"),
            (range("uid", half), "the field"),
            (range(".object.metadata.uid", half), "the field"),
            (range("has(object.metadata.uid)", half), "the field"),
            (uid("'0x0000000000000000'"), FORM),
            (uid("'0000000000000000', '0x8000000000000000'"), BOUND),
            (uid("'0x', '0x8000000000000000'"), BOUND),
            (uid("'0x0', '0x8000000000000000'"), BOUND),
            (uid("'0x0000000000000000', '0xff'"), BOUND),
            (uid("'0x0000000000000000', '0x800000000000000A'"), BOUND),
            (uid("'0x0000000000000000', '0x20000000000000000'"), BOUND),
            (uid("'0x0000000000000000', '0x8000000000000000"), BOUND),
            (uid("'0x8000000000000000', '0x8000000000000000'"), EMPTY_RANGE),
            (uid("'0xffffffffffffffff', '0x0000000000000000'"), EMPTY_RANGE),
            (uid("0, 8"), BOUND),
            (uid("hex(0), '0x8000000000000000'"), BOUND),
            (format!("{} && {}", uid(half), uid(half)), FORM),
            (format!("{} || {}", uid(half), range("object.metadata.namespace", half)), "all ranges"),
            (format!("{WHOLE} ||"), FORM),
            (format!("({WHOLE}"), FORM),
            (format!("{WHOLE})"), FORM),
            (format!("{WHOLE} {WHOLE}"), FORM),
            ("(".repeat(100_000), FORM),
            (range(&"object.".repeat(100_000), half), "the field"),
        ];
        for (text, why) in cases {
            let error = ShardSelector::parse(&text).expect_err(&text);
            assert!(error.starts_with(why), "{error}: {text:.200}");
        }
    }

    #[test]
    fn many_parentheses_need_no_stack() {
        let (open, close) = ("(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(ShardSelector::parse(&format!("{open}{WHOLE}{close}")).unwrap().to_string(), WHOLE);
    }

    #[test]
    fn ranges_divide_the_objects() {
        let lower = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
        let upper = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";
        let [lower, upper] = [lower, upper].map(|text| ShardSelector::parse(text).unwrap());
        let objects: Vec<_> = (0..100).map(|n| json!({ "metadata": { "uid": format!("{n:08}-0000") } })).collect();
        assert!(objects.iter().all(|object| lower.matches(object) != upper.matches(object)));
        // The hash of `foobar` is 0x85944171f73967e8 by the reference vectors of FNV.
        let exact = "shardRange(object.metadata.uid, '0x85944171f73967e8', '0x85944171f73967e9')";
        let exact = ShardSelector::parse(exact).unwrap();
        let is_selected = ["foobar", "fooba", ""].map(|uid| exact.matches(&json!({ "metadata": { "uid": uid } })));
        assert_eq!(is_selected, [true, false, false]);
    }
}
