//! Parses YAML as Go does: the first document only, YAML 1.1, and duplicate fields.
//!
//! Upstream: `decode.go` and `resolve.go` of `go.yaml.in/yaml/v2`, `convertToJSONableObject` of
//! `sigs.k8s.io/yaml`.

use std::collections::{HashMap, HashSet};

use base64::{Engine, prelude::BASE64_STANDARD};
use granit_parser::{Event, Parser, ScalarStyle, Tag};
use kctl_apimachinery::strconv;
use serde_json::{Map, Value};

use super::{DEPTH_MAX, first_line, scalar::resolve};
use crate::{json_path::depth, limits::BODY_LEN_MAX};

/// The number of values that aliases may expand to in one document. A document with more is an attack. Prevents a short
/// document from expanding to gigabytes.
const ALIASED_LEN_MAX: usize = 100_000;
/// The number of bytes that anchors may keep and aliases repeat in one document: a few bodies of the largest size. Each
/// value counts with its size in memory. Nested anchors around a list of empty strings would otherwise keep gigabytes.
const ALIASED_BYTES_MAX: usize = 4 * BODY_LEN_MAX;
/// The namespace of YAML's own tags.
const NAMESPACE: &str = "tag:yaml.org,2002:";

/// A parsed document.
#[derive(Debug, PartialEq)]
pub(crate) struct Yaml {
    /// Keys of maps are strings; other scalars are converted as Go does.
    pub(crate) value: Value,
    /// A line for each duplicate key, whose last value is used.
    pub(crate) repeated: Vec<String>,
}

/// The error of a document beyond these limits.
const EXCESSIVE: &str = "yaml: document contains excessive aliasing";

/// Returns `true` if Go's YAML parser reads this JSON differently or rejects it: escaped slashes, surrogate escapes,
/// and some characters without escapes.
pub(crate) fn differs_as_yaml(text: &str) -> bool {
    let is_strange = |char| is_control(char) || char == '\u{85}';
    has_strange_escapes(text)
        || text.bytes().any(|byte| byte == 0x7f)
        || (!text.is_ascii() && text.contains(is_strange))
}

/// Returns `true` if the JSON has escapes that YAML reads differently.
fn has_strange_escapes(text: &str) -> bool {
    ["\\/", "\\ud", "\\uD"].into_iter().any(|escape| text.contains(escape))
}

/// Returns `true` for a character that YAML does not allow.
fn is_control(char: char) -> bool {
    let is_allowed = matches!(char, '\t' | '\n' | '\r' | '\u{85}');
    (char.is_control() && !is_allowed) || matches!(char, '\u{fffe}' | '\u{ffff}')
}

/// Returns `true` if Go rejects an escape of a quoted string.
fn has_strange_escape(quoted: &str) -> bool {
    let mut chars = quoted.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            continue;
        }
        match chars.next() {
            None => return false,
            Some('/') => return true,
            Some('u') if matches!(chars.next(), Some('d' | 'D')) && chars.next().is_some_and(|digit| digit >= '8') => {
                return true;
            }
            Some(_) => {}
        }
    }
    false
}

/// Parses the first document. An empty one is null. Further documents are ignored, valid or not.
///
/// # Errors
/// Fails if the document is invalid YAML, or if JSON cannot express it.
pub(crate) fn parse_yaml(text: &str) -> Result<Yaml, String> {
    if text.chars().any(is_control) {
        return Err("yaml: control characters are not allowed".into());
    }
    let has_strange_escapes = has_strange_escapes(text);
    let mut reader = Reader::default();
    let mut parser = Parser::new_from_str(text);
    loop {
        let (event, span) = match parser.next_event() {
            None => break,
            Some(Ok(read)) => read,
            Some(Err(error)) => {
                if let Some(Ok(read)) = document_before_stray(text, error.marker().index()).map(parse_yaml) {
                    return Ok(read);
                }
                return Err(format!("yaml: {}", first_line(&error)));
            }
        };
        if has_strange_escapes && matches!(event, Event::Scalar(_, ScalarStyle::DoubleQuoted, ..)) {
            // By byte offsets: counting characters from the start for each string would take quadratic time.
            if has_strange_escape(span.slice(text).unwrap_or_default()) {
                return Err("yaml: invalid escape in a quoted string".into());
            }
        }
        match event {
            Event::DocumentStart(_, Some(version)) if (version.major, version.minor) != (1, 1) => {
                return Err("yaml: the version must be 1.1".into());
            }
            Event::Scalar(text, style, anchor, tag) => {
                if style == ScalarStyle::Plain && tag.is_none() && text == "<<" && reader.merges() {
                    continue;
                }
                let value = scalar(&text, style, tag.as_deref())?;
                reader.take(value, anchor)?;
            }
            Event::SequenceStart(_, anchor, _) => reader.open(Content::List(Vec::new()), anchor)?,
            Event::MappingStart(_, anchor, _) => reader.open(Content::Map(Fields::default()), anchor)?,
            Event::SequenceEnd | Event::MappingEnd => reader.close()?,
            Event::Alias(anchor) => reader.insert_alias(anchor)?,
            Event::DocumentEnd => break,
            _ => {}
        }
        if reader.document.is_some() {
            break;
        }
    }
    Ok(Yaml { value: reader.document.unwrap_or_default(), repeated: reader.repeated })
}

/// Returns the object or list in braces that ends before a stray bracket or comma. Go reads the first document only,
/// and the document ends with its last bracket: `{"a":1}}` is `{"a":1}`. In a document without braces such a bracket is
/// an error, as recorded from kube-apiserver.
fn document_before_stray(text: &str, index: usize) -> Option<&str> {
    let (offset, stray) = text.char_indices().nth(index)?;
    let is_in_braces = text.trim_start().starts_with(['{', '[']);
    (is_in_braces && ['}', ']', ','].contains(&stray)).then(|| &text[..offset])
}

/// Returns the value of a scalar. A quoted scalar, a block and an unknown tag make a string.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    let name = tag.and_then(|tag| tag.suffix_in_namespace(NAMESPACE));
    match name.as_deref() {
        Some("binary") => {
            let bytes =
                BASE64_STANDARD.decode(text).map_err(|_| "yaml: !!binary value contains invalid base64 data")?;
            Ok(String::from_utf8_lossy(&bytes).into_owned().into())
        }
        Some(scalar_tag @ ("null" | "bool" | "int" | "float")) => {
            let value = resolve(text)?;
            let fits = match &value {
                Value::Null => scalar_tag == "null",
                Value::Bool(_) => scalar_tag == "bool",
                Value::Number(number) if number.is_f64() => scalar_tag == "float",
                Value::Number(_) => ["int", "float"].contains(&scalar_tag),
                _ => false,
            };
            if fits { Ok(value) } else { Err(format!("yaml: {text:?} is not a {scalar_tag}")) }
        }
        None if style == ScalarStyle::Plain && tag.is_none() => resolve(text),
        _ => Ok(text.into()),
    }
}

/// The state of a parser. Open lists and maps are kept here and not on the stack, so that nesting is bounded by
/// `DEPTH_MAX` only.
#[derive(Default)]
struct Reader {
    /// Open lists and maps, from outer to inner.
    open: Vec<OpenCollection>,
    /// The values of anchors that are complete. An alias within its own anchor is an error.
    anchors: HashMap<usize, Value>,
    /// The number of values of all aliases so far.
    n_aliased: usize,
    /// The number of bytes of all anchors and aliases so far.
    n_bytes: usize,
    /// Messages about duplicate keys; `fieldValidation` decides whether they are reported.
    repeated: Vec<String>,
    /// The value of the first document, once it is complete.
    document: Option<Value>,
}

/// A list or map that is not complete.
struct OpenCollection {
    /// Moved out when it is complete.
    content: Content,
    /// The anchor of the value; 0 for none.
    anchor: usize,
}

/// The content of an open list or map.
enum Content {
    List(Vec<Value>),
    Map(Fields),
}

/// An open map.
#[derive(Default)]
struct Fields {
    /// A repeated key replaces the earlier value.
    map: Map<String, Value>,
    /// The keys so far, with `true` for strings: the number 1 and the string "1" are different keys in Go's YAML.
    seen: HashSet<(bool, String)>,
    /// Keys and values alternate.
    next: Next,
}

/// The next part of a map.
#[derive(Default)]
enum Next {
    /// A key comes next. Its value follows.
    #[default]
    Key,
    /// The value of this key.
    Value(String),
    /// The value of a null key, which JSON does not have: dropped.
    OfNull,
    /// The maps of a `<<` key.
    Merged,
}

impl Reader {
    /// Opens a list or a map. At the bound the document is rejected.
    fn open(&mut self, content: Content, anchor: usize) -> Result<(), String> {
        self.open.push(OpenCollection { content, anchor });
        self.check_depth(0)
    }

    /// Checks that a value with this many levels may be inserted here.
    fn check_depth(&self, n_levels: usize) -> Result<(), String> {
        let is_too_deep = self.open.len() + n_levels > DEPTH_MAX;
        if is_too_deep { Err(format!("yaml: nested more than {DEPTH_MAX} deep")) } else { Ok(()) }
    }

    /// Completes the innermost list or map.
    fn close(&mut self) -> Result<(), String> {
        let Some(OpenCollection { content, anchor }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Map(fields) => Value::Object(fields.map),
        };
        self.take(value, anchor)
    }

    /// Inserts the value of an anchor. Each use of an alias counts with the full size of its value, and with its depth:
    /// anchors within anchors could otherwise nest thousands of levels, and overflow the stack.
    fn insert_alias(&mut self, anchor: usize) -> Result<(), String> {
        let Some(value) = self.anchors.get(&anchor) else { return Err("yaml: anchor value contains itself".into()) };
        self.check_depth(depth(value))?;
        let (n_values, n_bytes) = measure(value);
        self.n_aliased += n_values;
        self.n_bytes += n_bytes;
        if self.n_aliased > ALIASED_LEN_MAX || self.n_bytes > ALIASED_BYTES_MAX {
            return Err(EXCESSIVE.into());
        }
        let value = value.clone();
        self.take(value, 0)
    }

    /// Returns `true` if a `<<` key merges the next value into the open map.
    fn merges(&mut self) -> bool {
        let Some(OpenCollection { content: Content::Map(fields), .. }) = self.open.last_mut() else { return false };
        let merges = matches!(fields.next, Next::Key);
        if merges {
            fields.next = Next::Merged;
        }
        merges
    }

    /// Adds a value to the innermost open list or map, or makes it the document.
    fn take(&mut self, value: Value, anchor: usize) -> Result<(), String> {
        if anchor > 0 {
            self.n_bytes += measure(&value).1;
            if self.n_bytes > ALIASED_BYTES_MAX {
                return Err(EXCESSIVE.into());
            }
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.document = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Map(fields)) => {
                if let Some(repeated) = fields.take(value)? {
                    self.repeated.push(format!("duplicate field {repeated:?}"));
                }
            }
        }
        Ok(())
    }
}

impl Fields {
    /// Adds a key or a value. Returns a duplicate key.
    fn take(&mut self, value: Value) -> Result<Option<String>, String> {
        match std::mem::take(&mut self.next) {
            Next::Key => return self.key(&value),
            Next::Value(key) => {
                self.map.insert(key, value);
            }
            Next::OfNull => return Err("yaml: a key must not be null".into()),
            Next::Merged => {
                let merged = match value {
                    // If several maps are merged, the earlier ones take precedence.
                    Value::Array(items) => items.into_iter().rev().collect(),
                    source => vec![source],
                };
                for source in merged {
                    let Value::Object(map) = source else {
                        return Err("yaml: map merge requires map or sequence of maps as the value".into());
                    };
                    self.map.extend(map);
                }
            }
        }
        Ok(None)
    }

    /// Adds a key. Returns it if it is a duplicate.
    fn key(&mut self, value: &Value) -> Result<Option<String>, String> {
        let key = match value {
            Value::Null => {
                self.next = Next::OfNull;
                return Ok(None);
            }
            Value::String(text) => text.clone(),
            Value::Array(_) | Value::Object(_) => return Err(format!("yaml: {value} is not a key")),
            Value::Number(number) if number.is_f64() => strconv::format_float(number.as_f64().unwrap_or_default()),
            scalar => scalar.to_string(),
        };
        let is_new = self.seen.insert((value.is_string(), key.clone()));
        let repeated = (!is_new).then(|| key.clone());
        self.next = Next::Value(key);
        Ok(repeated)
    }
}

/// Returns the number of values in a value, and the bytes of these values with their strings. Strings include keys.
fn measure(value: &Value) -> (usize, usize) {
    let both = |(values, bytes), (more_values, more_bytes)| (values + more_values, bytes + more_bytes);
    let one: (usize, usize) = (1, size_of::<Value>());
    match value {
        Value::Array(items) => items.iter().map(measure).fold(one, both),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| both(measure(value), (0, name.len()));
            fields.iter().map(field).fold(one, both)
        }
        Value::String(text) => both(one, (0, text.len())),
        _ => one,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks the decoded value; `None` expects an error.
    fn check(text: &str, expected: impl Into<Option<Value>>) {
        assert_eq!(parse_yaml(text).ok().map(|read| read.value), expected.into(), "{text}");
    }

    #[test]
    fn only_first_yaml_document_is_decoded() {
        for text in ["a: 1\n---\n", "a: 1\n---\nb: 2\n", "---\na: 1\n...\n", r#"{"a":1} {"b":2}"#, r#"{"a":1}x"#] {
            check(text, json!({ "a": 1 }));
        }
        for text in ["", "---\n", "# a\n", "---\n---\na: 1"] {
            check(text, Value::Null);
        }
        check("%YAML 1.1\n---\na: 1", json!({ "a": 1 }));
        check("%YAML 1.2\n---\na: 1", None);
    }

    #[test]
    fn bracket_after_a_document_in_braces_is_ignored() {
        for end in ["}", "]", "}}}", ",", " }", "\n}", "}\nb: 2"] {
            check(&format!("{{\"a\":1}}{end}"), json!({ "a": 1 }));
        }
        check("[1]]", json!([1]));
        for text in ["a: {b: 1}}\nc: 2", "a: 1\n}", "{a: 1"] {
            assert!(parse_yaml(text).is_err(), "{text}");
        }
    }

    /// Takes minutes if each string is looked up from the start of the document.
    #[test]
    fn many_quoted_strings_are_checked_for_escapes() {
        let items = vec![r#""é""#; 200_000].join(",");
        assert!(parse_yaml(&format!("[{items}] # \\/")).is_ok());
        check(&format!(r#"[{items},"\/"]"#), None);
    }

    #[test]
    fn scalar_keys_are_accepted_and_last_one_counts() {
        check(
            "{yes: a, n: c, 1: d, 0x2: e, .5: f, 2020-01-01: g}",
            json!({ "true": "a", "false": "c", "1": "d", "2": "e", "0.5": "f", "2020-01-01": "g" }),
        );
        check("{null: a}", None);
        check("{? [a] : b}", None);
        let read = parse_yaml("a: 1\nb: {on: 1, yes: 2}\na: 3\n").unwrap();
        assert_eq!(read.value, json!({ "a": 3, "b": { "true": 2 } }));
        assert_eq!(read.repeated, [r#"duplicate field "true""#, r#"duplicate field "a""#]);
    }

    #[test]
    fn anchors_are_merged_and_tags_are_kept_to() {
        check(
            "a: &a {b: c}\nd: *a\ne: {<<: *a, f: g}",
            json!({ "a": { "b": "c" }, "d": { "b": "c" }, "e": { "b": "c", "f": "g" } }),
        );
        check("a: !!binary YQ==", json!({ "a": "a" }));
        check("{a: !foo 1, b: !!str 1, c: !!int \"1\"}", json!({ "a": "1", "b": "1", "c": 1 }));
        check("a: !!int x", None);
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        check(&bomb, None);
        // A few aliases of a long string, and nested anchors around a long string or many empty ones.
        let long = "x".repeat(1_000_000);
        check(&format!("a: &a {long}\nb: [{}]", ["*a"; 20].join(", ")), None);
        for inner in [&long, &vec!["''"; 100_000].join(",")] {
            check(&format!("{}{inner}{}", "&a [".repeat(20), "]".repeat(20)), None);
        }
        assert!(parse_yaml(&format!("a: &a {long}\nb: [{}]", ["*a"; 5].join(", "))).is_ok());
        let nested = |levels: usize, inner: &str| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
        check(&nested(DEPTH_MAX + 1, "1"), None);
        // The root map is a level, too.
        let aliased = |levels: usize| format!("a: &a {}\nb: {}", nested(100, "1"), nested(levels, "*a"));
        assert!(parse_yaml(&aliased(DEPTH_MAX - 101)).is_ok());
        check(&aliased(DEPTH_MAX - 100), None);
        let mut chain = format!("a0: &a0 {}\n", nested(100, "1"));
        for level in 1..40 {
            chain += &format!("a{level}: &a{level} {}\n", nested(100, &format!("*a{}", level - 1)));
        }
        check(&chain, None);
    }
}
