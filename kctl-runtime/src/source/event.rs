//! The lines of a watch: events with an object, and bookmarks.
//!
//! A watch is newline-delimited JSON, one `{"type": …, "object": …}` per line. The object is kept as the JSON of its
//! line and is parsed once, after its type is known.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::reflector::Input;

/// One line of a watch.
#[derive(Deserialize)]
pub(super) struct Event<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`. An `ERROR` carries a `Status` as its object.
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    /// The JSON of the object, borrowed from the line.
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// Splits a line of the form in which API servers write events with objects, `{"type":"MODIFIED","object":{…}}`, into
/// the type and the JSON of the object with the brace that follows it. Returns `None` for any other form.
///
/// The object is not read, so it may be invalid.
pub(super) fn split_object_event(line: &[u8]) -> Option<(&str, &str)> {
    let line = std::str::from_utf8(line).ok()?.strip_prefix(r#"{"type":""#)?;
    let kind = OBJECT_EVENTS.into_iter().find(|kind| line.starts_with(kind))?;
    Some((kind, line[kind.len()..].strip_prefix(r#"","object":"#)?))
}

/// The types of events with the state of an object.
pub(super) const OBJECT_EVENTS: [&str; 3] = ["ADDED", "MODIFIED", "DELETED"];

/// A bookmark: an object with nothing but a version, and the annotation `k8s.io/initial-events-end` if it ends the
/// initial state.
#[derive(Deserialize)]
pub(super) struct Bookmark {
    metadata: BookmarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Bookmark {
    /// Returns the input of a bookmark, or `None` if it has no version. Such a bookmark is ignored.
    pub(super) fn read(json: &str) -> Option<Input> {
        let BookmarkMeta { resource_version, annotations } = serde_json::from_str::<Self>(json).ok()?.metadata;
        let ends = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
        Some(if ends { Input::Synced(resource_version) } else { Input::Bookmark(resource_version) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usual_form_of_an_event_is_split() {
        let object = r#"{"metadata":{"name":"a"}}"#;
        for kind in OBJECT_EVENTS {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            assert_eq!(split_object_event(line.as_bytes()), Some((kind, &*format!("{object}}}"))));
        }
        for line in [
            format!(r#"{{"type": "ADDED","object":{object}}}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED2","object":{object}}}"#),
            format!(r#"{{"type":"BOOKMARK","object":{object}}}"#),
            String::new(),
        ] {
            assert_eq!(split_object_event(line.as_bytes()), None, "{line}");
        }
    }
}
