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
