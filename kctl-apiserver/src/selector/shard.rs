//! Shard selectors (KEP-5866): decide by a hash of the uid or of the namespace which objects a list or a watch selects.
//!
//! The text is a CEL expression with one function and `||`. It is parsed as CEL, so that comments, parentheses and all
//! forms of strings are accepted as upstream (`k8s.io/apiserver/pkg/sharding`).
//!
//! ```text
//! shardSelector   shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')
//! ```

use std::fmt;

use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// The end of the last range: 2^64, the only bound with 17 digits.
const END: &str = "0x10000000000000000";

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
        let tree = kctl_cel::read(text).map_err(|errors| errors.to_string())?;
        let mut ranges = Vec::new();
        collect(&tree, &mut ranges)?;
        let Some((field, _)) = ranges.first().copied() else { return Err("it has no range".into()) };
        if ranges.iter().any(|(other, _)| *other != field) {
            return Err("all ranges must have the same field".into());
        }
        Ok(Self { field, ranges: ranges.into_iter().map(|(_, range)| range).collect() })
    }

    /// Returns `true` if the selector selects an object. A cluster-scoped object has the hash of the empty string as that of
    /// its namespace.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let value = object["metadata"][self.field.name()].as_str().unwrap_or_default();
        let hash = u128::from(fnv1a(value));
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

/// Collects the ranges of an expression, in the order in which they are written.
fn collect(tree: &IdedExpr, ranges: &mut Vec<(HashedField, HashRange)>) -> Result<(), String> {
    match &tree.expr {
        Expr::Call(call) if call.func_name == "_||_" => call.args.iter().try_for_each(|side| collect(side, ranges)),
        Expr::Call(call) if call.func_name == "shardRange" => {
            ranges.push(range(call)?);
            Ok(())
        }
        _ => Err("only shardRange(FIELD, START, END) and || are allowed".into()),
    }
}

fn range(call: &CallExpr) -> Result<(HashedField, HashRange), String> {
    let [path, start, end] = call.args.as_slice() else {
        return Err(format!("shardRange() has {} arguments instead of 3", call.args.len()));
    };
    let field = match path_of(path).as_deref() {
        Some("object.metadata.uid") => HashedField::Uid,
        Some("object.metadata.namespace") => HashedField::Namespace,
        _ => return Err("the field must be object.metadata.uid or object.metadata.namespace".into()),
    };
    let range = HashRange { start: bound(start)?, end: bound(end)? };
    if range.start < range.end {
        Ok((field, range))
    } else {
        Err("the start of a range must be less than its end".into())
    }
}

/// Returns the path of a field, such as `object.metadata.uid`; `None` for any other expression.
fn path_of(tree: &IdedExpr) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", path_of(&select.operand)?, select.field)),
        _ => None,
    }
}

/// Returns the bound of a range: `0x` and 16 lower-case digits, or 2^64.
fn bound(tree: &IdedExpr) -> Result<u128, String> {
    let wrong = || format!("a bound must be a string with 0x and 16 lower-case hexadecimal digits, or {END:?}");
    let Expr::Literal(LiteralValue::String(text)) = &tree.expr else { return Err(wrong()) };
    let text: &str = text.inner();
    let digits = text.strip_prefix("0x").ok_or_else(wrong)?;
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    if !digits.bytes().all(is_hex) || (digits.len() != 16 && text != END) {
        return Err(wrong());
    }
    u128::from_str_radix(digits, 16).map_err(|_| wrong())
}

/// Returns the 64-bit FNV-1a hash of a string.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
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

    /// The cases of `TestParse` upstream.
    #[test]
    fn anything_but_ranges_of_one_field_is_refused() {
        let range = |field: &str, bounds: &str| format!("shardRange(object.metadata.{field}, {bounds})");
        let half = "'0x0000000000000000', '0x8000000000000000'";
        let cases = [
            " ".to_owned(),
            "object.metadata.uid > '0x0'".into(),
            format!("other(object.metadata.uid, {half})"),
            range("name", half),
            range("labels", half),
            range("uid", "'0x0000000000000000'"),
            range("uid", "'0000000000000000', '0x8000000000000000'"),
            range("uid", "'0x', '0x8000000000000000'"),
            range("uid", "'0x0', '0x8000000000000000'"),
            range("uid", "'0x0000000000000000', '0xff'"),
            range("uid", "'0x0000000000000000', '0x800000000000000A'"),
            range("uid", "'0x0000000000000000', '0x20000000000000000'"),
            range("uid", "'0x8000000000000000', '0x8000000000000000'"),
            range("uid", "'0xffffffffffffffff', '0x0000000000000000'"),
            range("uid", "0, 8"),
            range("uid", "hex(0), '0x8000000000000000'"),
            format!("{} && {}", range("uid", half), range("uid", half)),
            format!("{} || {}", range("uid", half), range("namespace", half)),
            format!("{WHOLE} ||"),
        ];
        for text in cases {
            assert!(ShardSelector::parse(&text).is_err(), "{text}");
        }
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
