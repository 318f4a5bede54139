//! `JSONPath` of printer columns, with the peculiarities of `client-go/util/jsonpath`: `['a.b']` is two fields,
//! `['a\.b']` is one, `[]` is the first item.
//! A path is parsed when the table is made, and evaluated once for each object:
//!
//! | path | meaning |
//! |---|---|
//! | `.spec.replicas` | a field of a field |
//! | `.spec.ports[0].port`, `[-1]`, `[0:2]` | an item, the last one, a slice |
//! | `.items[*].name`, `.spec.*` | all items or values |
//! | `..name` | the field at any depth |
//! | `.conditions[?(@.type=="Ready")].status` | items that pass a test |
//! | `[0,2]` | a union |
//!
//! Only the first value that the path finds is shown. An error of the path hides the cell, not the row.

mod parse;
mod walk;

use serde_json::Value;

pub(super) use self::walk::PathValue;

/// A parsed path.
#[derive(Debug)]
pub(super) struct ColumnPath {
    /// The blocks in braces and the literal text between them. The path is put in braces, and may close them itself.
    blocks: Vec<Node>,
}

/// A step of a path.
#[derive(Debug)]
enum Node {
    /// The steps between a pair of braces.
    Block(Vec<Node>),
    /// Literal text outside of braces, or a quoted string.
    Text(String),
    /// An integer literal.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`, as a bare word.
    Bool(bool),
    /// A word without a dot in front. Evaluating it is an error: upstream reports an unrecognized identifier.
    Word,
    /// The value of a key, without escapes.
    Field(String),
    /// Every value of an object or of a list.
    All,
    /// The value and everything below it.
    Descend,
    /// Some items of a list.
    Slice(Slice),
    /// The results of several paths, one after the other.
    Union(Vec<Vec<Node>>),
    /// The items that pass a test.
    Filter {
        /// The path whose value is compared. Without a test, an item passes if the path finds something.
        left: Vec<Node>,
        /// The comparison; `None` tests for presence.
        test: Option<Test>,
    },
}

/// Some items of a list. A single index is a slice of one item.
#[derive(Debug)]
struct Slice {
    /// First index; negative ones count from the end.
    start: i64,
    /// Exclusive end.
    end: End,
    /// Distance of two items. Only positive steps are valid.
    step: i64,
}

/// The end of a slice.
#[derive(Clone, Copy, Debug)]
enum End {
    /// An exclusive end; negative ones count from the end.
    Given(i64),
    /// One past the start: the slice is a single index. For the last item it is the end of the list.
    AfterStart,
    /// The end of the list.
    Whole,
}

/// The comparison in a filter.
#[derive(Debug)]
struct Test {
    /// One of `==`, `!=`, `<`, `>`, `<=` and `>=`; other operators fail when the path is evaluated.
    operator: String,
    /// The path or literal on the right, evaluated on the same item.
    right: Vec<Node>,
}

impl ColumnPath {
    /// Parses a path; `None` if kube-apiserver rejects it, too. A CRD with such a path is valid nevertheless: its
    /// column and those after it are left out of tables.
    pub(super) fn parse(text: &str) -> Option<Self> {
        parse::blocks(&format!("{{{text}}}")).map(|blocks| Self { blocks })
    }

    /// Returns the first value that the path finds; `None` if it finds nothing or an operand cannot be compared. Later
    /// blocks are evaluated as well, because an error in one of them fails the whole path.
    pub(super) fn first<'a>(&self, root: &'a Value) -> Option<PathValue<'a>> {
        let mut shown = None;
        for (index, block) in self.blocks.iter().enumerate() {
            let found = walk::walk(std::slice::from_ref(block), vec![PathValue::Stored(root)])?;
            if index == 0 {
                shown = found.into_iter().next();
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_column_path_is_rejected() {
        for text in
            [".a, .b", ".a[", ".a[x]", ".a[1:2:3:4]", ".a[?(@.b]", ".a[-]", "..*", "....a", ".a[\"b\"]", "=", "'a"]
        {
            assert!(ColumnPath::parse(text).is_none(), "{text}");
        }
    }

    /// Fills the memory without a bound.
    #[test]
    fn path_that_finds_too_much_finds_nothing() {
        let nested = (0..120).fold(json!({ "b": 1 }), |value, _| json!({ "a": value }));
        for (path, is_found) in [("..a..a..b", true), ("..a..a..a..a..a..a..b", false)] {
            let path = ColumnPath::parse(path).unwrap();
            assert_eq!(path.first(&nested).is_some(), is_found, "{path:?}");
        }
    }

    #[test]
    fn unusual_paths_match_kube_apiserver() {
        let value = json!({
            "a": [{ "b": "x", "n": 1 }, { "b": "y", "n": 2 }],
            "s": "AB",
            "f": 1.5,
            "o": { "p": { "q": null } },
        });
        let cases = [
            ("", Some(value.clone())),
            (".", None),
            ("a", None),
            ("true", Some(json!(true))),
            ("'text'", Some(json!("text"))),
            (".a[].b", Some(json!("x"))),
            (".a[1,0].b", Some(json!("y"))),
            (".a[1:0].b", None),
            (".a[0:2:0].b", None),
            (".a[?(@.b=@.b)].n", None),
            (".a[?(@.b==@.b)].n", Some(json!(1))),
            ("..q", Some(Value::Null)),
            ("..n", Some(json!(1))),
            ("$.f", Some(json!(1.5))),
            (".f }{ .s", Some(json!(1.5))),
            (".f }{ x", None),
        ];
        for (text, expected) in cases {
            let path = ColumnPath::parse(text).unwrap_or_else(|| panic!("{text}"));
            let found = path.first(&value).map(|found| match found {
                PathValue::Stored(value) => value.clone(),
                PathValue::Literal(value) => value,
                PathValue::Plain(number) => json!({ "plain": number }),
            });
            assert_eq!(found, expected, "{text}");
        }
        let bytes = ColumnPath::parse(".s[*]").map(|path| path.first(&value).is_none());
        assert_eq!(bytes, Some(true), "a string is not a list");
        let byte = ColumnPath::parse(".s.*").and_then(|path| path.first(&value));
        assert!(matches!(byte, Some(PathValue::Plain(65))), "{byte:?}");
    }
}
