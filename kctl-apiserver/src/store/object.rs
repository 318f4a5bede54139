//! One stored object: packed JSON, and its parsed value as long as someone uses it.
//!
//! JSON takes a fraction of the memory of a parsed `serde_json::Value`, and most responses are sent as stored without
//! being parsed.
//!
//! An object of a custom kind has two forms if its CRD has changed since it was written. Reads return `line`, and the
//! journal keeps `written`. A later CRD is applied to `written` again, so that a field that returns to the schema
//! reappears in the object.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::registry::Resource;

/// The number of bytes of JSON whose values a table keeps parsed. Beyond it the least recently parsed values are
/// dropped. 4 MiB of JSON per table. Parsed, they take several times as much.
const CACHE_LEN_MAX: usize = 4 * 1024 * 1024;

/// A stored object. Immutable, apart from the cached value.
pub(crate) struct Object {
    /// A line of JSON with its end. `kind` comes first and then `apiVersion`, as kube-apiserver writes them.
    line: Bytes,
    /// The line as it was written, if reading it with the present CRD gives a different one, pruned or with other
    /// defaults. Also set, to the same line, if the object is marked ([`Self::with_unread_fields`]). Otherwise `None`.
    written: Option<Bytes>,
    /// The parsed value. Weak, so that it lives only as long as a request or [`ValueCache`] uses it. A mutex is
    /// sufficient, because it is held only to clone the pointer.
    value: Mutex<Weak<Value>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(self.text()))
    }
}

/// Returns the first bytes that the JSON of all objects of a kind in a version share. A line that begins like this
/// needs no rewriting for a response in that version.
pub(crate) fn head(resource: &Resource) -> String {
    format!(r#"{{"kind":{:?},"apiVersion":{:?},"#, resource.kind_name(), resource.api_version())
}

/// Serializes a value. Writing a JSON value to memory cannot fail.
fn write(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let _infallible = serde_json::to_writer(text, value);
}

/// Returns a line of JSON with `kind` and `apiVersion` in front. The rest is in the order of the value. The copy at the
/// end has no spare capacity, since it is kept in memory as long as the object.
fn line(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(2_048);
    let Some(map) = value.as_object() else {
        write(&mut text, value);
        text.push(b'\n');
        return Bytes::copy_from_slice(&text);
    };
    let first = ["kind", "apiVersion"];
    let leading = first.iter().filter_map(|name| map.get_key_value(*name));
    let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    text.push(b'{');
    for (index, (name, value)) in leading.chain(others).enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write(&mut text, name);
        text.push(b':');
        write(&mut text, value);
    }
    text.extend_from_slice(b"}\n");
    Bytes::copy_from_slice(&text)
}

impl Object {
    /// Packs a value, which is kept in parsed form as long as the caller holds it.
    pub(crate) fn new(value: &Arc<Value>) -> Self {
        Self { line: line(value), written: None, value: Mutex::new(Arc::downgrade(value)) }
    }

    /// Returns the object as `decode` changes it, or `None` if that changes nothing. The written line is unchanged.
    /// `decode` prunes and sets defaults by the present schema. It gets the written form, not the result of an earlier
    /// read.
    pub(super) fn redecode(&self, decode: &impl Fn(&mut Value)) -> Option<Self> {
        let written = self.written.as_ref().unwrap_or(&self.line);
        // JSON that was serialized here can be parsed.
        let mut value: Value = serde_json::from_slice(written).unwrap_or_default();
        decode(&mut value);
        let line = line(&value);
        (line != self.line).then(|| Self { line, written: Some(written.clone()), value: Mutex::default() })
    }

    /// Returns the same object, marked as written with more fields than reads return. Both forms are the same line
    /// here. The mark alone makes the next update a write.
    pub(super) fn with_unread_fields(&self) -> Self {
        let value = Mutex::new(self.value.lock().clone());
        Self { line: self.line.clone(), written: Some(self.line.clone()), value }
    }

    /// Returns `true` if readers see exactly what was written.
    pub(crate) fn is_as_written(&self) -> bool {
        self.written.is_none()
    }

    /// Returns the JSON for the journal.
    pub(super) fn written_json(&self) -> &[u8] {
        self.written.as_ref().unwrap_or(&self.line).trim_ascii_end()
    }

    /// Returns the JSON with the end of its line, which is the body of a response.
    pub(crate) fn line(&self) -> &Bytes {
        &self.line
    }

    /// Returns the JSON without the end of its line.
    pub(crate) fn text(&self) -> &[u8] {
        self.line.trim_ascii_end()
    }

    /// Returns the value, which is parsed if it is not cached.
    pub(crate) fn value(&self) -> Arc<Value> {
        self.cached_value().unwrap_or_else(|| self.parse())
    }

    /// Returns `true` if `value` is the very value that the object was created from or parsed to. A value that is only
    /// equal does not count. It lets a caller know without a comparison that a value it has read is still the stored
    /// one.
    pub(crate) fn is_same_value(&self, value: &Arc<Value>) -> bool {
        Weak::as_ptr(&self.value.lock()) == Arc::as_ptr(value)
    }

    /// Returns the value if it is still in use.
    fn cached_value(&self) -> Option<Arc<Value>> {
        self.value.lock().upgrade()
    }

    /// Parses the JSON, and caches the value.
    fn parse(&self) -> Arc<Value> {
        // JSON that was serialized here can be parsed.
        let value: Arc<Value> = Arc::new(serde_json::from_slice(&self.line).unwrap_or_default());
        *self.value.lock() = Arc::downgrade(&value);
        value
    }
}

/// The values of a table that were used last. Bounded by [`CACHE_LEN_MAX`] bytes of their JSON.
#[derive(Default)]
pub(super) struct ValueCache(Mutex<CachedValues>);

/// Values with the length of their JSON, the oldest first.
#[derive(Default)]
struct CachedValues {
    /// The values. The same object may occur twice, in two states.
    values: VecDeque<(Arc<Value>, usize)>,
    /// The sum of the lengths in `values`. Invariant: at most [`CACHE_LEN_MAX`] between two calls.
    len: usize,
}

impl ValueCache {
    /// Keeps a value parsed until later ones displace it. A value longer than the limit displaces all others and then
    /// itself.
    pub(super) fn insert(&self, object: &Object, value: Arc<Value>) {
        let mut cache = self.0.lock();
        cache.len += object.line.len();
        cache.values.push_back((value, object.line.len()));
        while cache.len > CACHE_LEN_MAX {
            let Some((_, len)) = cache.values.pop_front() else { break };
            cache.len -= len;
        }
        debug_assert!(cache.len <= CACHE_LEN_MAX, "the lengths of all values are counted");
        debug_assert!(!cache.values.is_empty() || cache.len == 0, "the length is the sum of the values' lengths");
    }

    /// Returns the value of an object, which is then cached in parsed form.
    pub(super) fn value(&self, object: &Object) -> Arc<Value> {
        object.cached_value().unwrap_or_else(|| {
            let value = object.parse();
            self.insert(object, value.clone());
            value
        })
    }
}

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    /// The object matches now, and did not before.
    Added,
    /// The object matched before and still does.
    Modified,
    /// The object is gone, or no longer matches.
    Deleted,
}

impl EventType {
    /// Returns the name in a watch event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The lines of a change as `ADDED`, `MODIFIED` and `DELETED` event. Each is written at most once, for all watchers
/// together. Three cells, in the order of the event types. Watches with different selectors may need different types
/// for the same change.
#[derive(Debug, Default)]
pub(crate) struct EventLines([OnceLock<Bytes>; 3]);

impl EventLines {
    /// Returns the line of this type, which is written at the first call.
    pub(crate) fn get(&self, kind: EventType, object: &Object) -> Bytes {
        self.0[kind as usize].get_or_init(|| event_line(kind, object)).clone()
    }
}

/// Returns a watch event as a line of JSON. The bytes around the object are 27 to 30; reserving 40 avoids a second
/// allocation.
pub(crate) fn event_line(kind: EventType, object: &Object) -> Bytes {
    let text = object.text();
    let mut line = Vec::with_capacity(text.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(kind.name().as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(text);
    line.extend_from_slice(b"}\n");
    line.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_json_has_kind_first_and_same_value() {
        let json = json!({ "data": { "a": "\n\u{1f600}" }, "kind": "ConfigMap", "apiVersion": "v1", "Odd": 1.5 });
        let value = Arc::new(json.clone());
        let object = Object::new(&value);
        let text = String::from_utf8(object.text().to_vec()).unwrap();
        assert!(text.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","#), "{text}");
        assert!(object.is_same_value(&value));
        drop(Arc::into_inner(value));
        assert_eq!(*object.value(), json);
    }

    #[test]
    fn values_remain_parsed_within_the_byte_limit() {
        let cache = ValueCache::default();
        let long = |n: usize| Arc::new(json!({ "n": n, "data": "x".repeat(CACHE_LEN_MAX / 4) }));
        let objects: Vec<Object> = (0..4)
            .map(|n| {
                let value = long(n);
                let object = Object::new(&value);
                cache.insert(&object, value);
                object
            })
            .collect();
        let parsed: Vec<bool> = objects.iter().map(|object| object.cached_value().is_some()).collect();
        assert_eq!(parsed, [false, true, true, true]);
        assert_eq!(cache.value(&objects[0])["n"], 0);
        assert_eq!(objects[0].cached_value().map(|value| value["n"].clone()), Some(json!(0)));
        assert!(objects[1].cached_value().is_none());
    }
}
