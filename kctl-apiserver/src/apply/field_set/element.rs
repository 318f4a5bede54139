//! The elements of field paths (`fieldpath.PathElement` of structured-merge-diff).
//!
//! Upstream: `fieldpath/element.go` and `fieldpath/serialize-pe.go` of structured-merge-diff.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::go;

/// The length up to which an element is built on the stack.
const SHORT_LEN_MAX: usize = 64;

/// One element of a field path, kept in its `FieldsV1` form: `f:name`, `k:{"name":"a"}`, `v:"a"` or `i:0`. Keys are
/// sorted and integers have no fraction, so that equal elements have equal strings. The string is shared (`Arc`): most
/// elements survive when sets are merged and subtracted. Elements are ordered by these strings, which sorts the entries
/// of a set and the JSON of `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PathElement(Arc<str>);

impl PathElement {
    /// Returns the element for a field of an object.
    pub(crate) fn field(name: &str) -> Self {
        // Most names are short, and are built on the stack.
        let mut buffer = [0; SHORT_LEN_MAX];
        let len = name.len() + 2;
        if len <= SHORT_LEN_MAX {
            buffer[..2].copy_from_slice(b"f:");
            buffer[2..len].copy_from_slice(name.as_bytes());
            if let Ok(text) = std::str::from_utf8(&buffer[..len]) {
                return Self(text.into());
            }
        }
        Self(format!("f:{name}").into())
    }

    /// Returns the element for the list item with these key fields. Fields are sorted by name. A name that occurs twice
    /// is taken once. Without a field the element is `k:{}`.
    pub(crate) fn key<'v>(fields: impl IntoIterator<Item = (&'v str, &'v Value)>) -> Self {
        let mut sorted: Vec<(&str, &Value)> = fields.into_iter().collect();
        sorted.sort_by_key(|(name, _)| *name);
        sorted.dedup_by_key(|(name, _)| *name);
        let mut text = b"k:".to_vec();
        let mut between = b'{';
        for (name, value) in sorted {
            text.push(between);
            write(&mut text, name);
            text.push(b':');
            write_value(&mut text, value);
            between = b',';
        }
        if between == b'{' {
            text.push(between);
        }
        text.push(b'}');
        Self(String::from_utf8_lossy(&text).into())
    }

    /// Returns the element for a value of a set. Numbers are canonical: `1.0` and `1` are the same element.
    pub(crate) fn value(value: &Value) -> Self {
        let mut text = b"v:".to_vec();
        write_value(&mut text, value);
        Self(String::from_utf8_lossy(&text).into())
    }

    /// Returns the element for a list item by its index. Used only in messages, for items of atomic lists.
    pub(crate) fn index(index: usize) -> Self {
        Self(format!("i:{index}").into())
    }

    /// Parses an element in its `FieldsV1` form; returns `None` if the string is not valid. The input comes from
    /// `managedFields` that a client may have written. Elements that are valid but not canonical, such as keys in
    /// another order, become canonical.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        let rest = text.get(2..).filter(|_| text.as_bytes()[1] == b':')?;
        match text.as_bytes()[0] {
            b'k' if is_one_plain_pair(rest) => Some(Self(text.into())),
            b'f' => Some(Self(text.into())),
            b'k' => {
                let fields: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::key(fields.iter().map(|(name, value)| (name.as_str(), value))))
            }
            b'v' => Some(Self::value(&serde_json::from_str(rest).ok()?)),
            b'i' => Some(Self::index(rest.parse().ok()?)),
            _ => None,
        }
    }

    /// Returns the `FieldsV1` form of the element.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the field name, if the element is a field.
    pub(crate) fn field_name(&self) -> Option<&str> {
        self.0.strip_prefix("f:")
    }

    /// Returns `true` if the element is a list item identified by key fields.
    pub(crate) fn is_key(&self) -> bool {
        self.0.starts_with("k:")
    }
}

/// The text of a step in messages: `.name`, `[name="a"]`, `[="a"]` or `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once(':').unwrap_or_default() {
            ("f", name) => write!(out, ".{name}"),
            ("k", fields) => {
                let fields: BTreeMap<String, Value> = serde_json::from_str(fields).unwrap_or_default();
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(out, "[{}]", fields.join(","))
            }
            ("v", value) => write!(out, "[={value}]"),
            (_, index) => write!(out, "[{index}]"),
        }
    }
}

/// Returns `true` for JSON of an object with one string field without escapes. Most keys are of this form, and their
/// output is the same as their input.
fn is_one_plain_pair(json: &str) -> bool {
    let pair = json.strip_prefix("{\"").and_then(|rest| rest.strip_suffix("\"}"));
    pair.and_then(|pair| pair.split_once("\":\"")).is_some_and(|(name, value)| is_plain(name) && is_plain(value))
}

/// Returns `true` if a string is written without escapes. The last byte starts U+2028, U+2029 and other characters.
fn is_plain(text: &str) -> bool {
    !text.bytes().any(|byte| byte < b' ' || b"\"\\<>&\xe2".contains(&byte))
}

/// Writes a value as `json-iterator` does upstream, which escapes characters that could end a script in HTML.
fn write_value(text: &mut Vec<u8>, value: &Value) {
    let value = canonical(value);
    let Value::String(plain) = value.as_ref() else { return write(text, value.as_ref()) };
    if is_plain(plain) {
        text.push(b'"');
        text.extend_from_slice(plain.as_bytes());
        text.push(b'"');
    } else {
        text.extend_from_slice(go::json(&value).as_bytes());
    }
}

/// Serializes a value. Writing JSON to memory cannot fail.
fn write(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let _infallible = serde_json::to_writer(text, value);
}

/// Returns equal numbers as the same number: an integer if it has no fraction. Beyond 9e15 a float no longer
/// distinguishes neighbouring integers, so it remains a float.
fn canonical(value: &Value) -> Cow<'_, Value> {
    match value.as_f64() {
        #[expect(clippy::cast_possible_truncation, reason = "the bound is checked")]
        Some(number) if value.is_f64() && number.fract() == 0.0 && number.abs() < 9e15 => {
            Cow::Owned(Value::from(number as i64))
        }
        _ => Cow::Borrowed(value),
    }
}

/// A path from the root of an object.
pub(crate) type Path = Vec<PathElement>;

/// Formats a path as in messages: `.spec.containers[name="a"].image`.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
