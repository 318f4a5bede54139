//! One object as it is stored: its text, and the parsed value for as long as somebody has it.
//!
//! Text takes a fraction of the memory of a parsed value, and most answers are nothing but text.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, OnceLock, Weak},
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use crate::registry::Resource;

/// Bytes of text whose values a table keeps parsed.
const WARM_LEN_MAX: usize = 4 * 1024 * 1024;

/// A stored object.
pub(crate) struct Object {
    /// A line of JSON: the kind first, then the version of the API, as the real server writes them.
    line: Bytes,
    /// The line that was written, where the definition of the kind has become another one since: it is read otherwise then.
    written: Option<Bytes>,
    value: Mutex<Weak<Value>>,
}

impl fmt::Debug for Object {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&String::from_utf8_lossy(self.text()))
    }
}

/// How the text of each object of a kind in a version begins.
pub(crate) fn head(resource: &Resource) -> String {
    format!(r#"{{"kind":{:?},"apiVersion":{:?},"#, resource.kind(), resource.api_version())
}

/// Values of JSON always serialise.
fn write(text: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    let _infallible = serde_json::to_writer(text, value);
}

/// A line of JSON, with kind and version in front.
fn line(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(2_048);
    let Some(map) = value.as_object() else {
        write(&mut text, value);
        text.push(b'\n');
        return Bytes::copy_from_slice(&text);
    };
    let first = ["kind", "apiVersion"];
    let known = first.iter().filter_map(|name| map.get_key_value(*name));
    let others = map.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    text.push(b'{');
    for (index, (name, value)) in known.chain(others).enumerate() {
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
    pub(crate) fn new(value: &Arc<Value>) -> Self {
        Self { line: line(value), written: None, value: Mutex::new(Arc::downgrade(value)) }
    }

    /// The same object for who reads it otherwise than it was written; nothing if that is as it is read already.
    pub(super) fn read_by(&self, read: &impl Fn(&mut Value)) -> Option<Self> {
        let written = self.written.as_ref().unwrap_or(&self.line);
        // What has been serialised can be parsed.
        let mut value: Value = serde_json::from_slice(written).unwrap_or_default();
        read(&mut value);
        let line = line(&value);
        (line != self.line).then(|| Self { line, written: Some(written.clone()), value: Mutex::default() })
    }

    /// The same object, which has more in it than is read of it.
    pub(super) fn unread(&self) -> Self {
        let value = Mutex::new(self.value.lock().clone());
        Self { line: self.line.clone(), written: Some(self.line.clone()), value }
    }

    pub(crate) fn is_as_written(&self) -> bool {
        self.written.is_none()
    }

    /// The text that is kept for later starts.
    pub(super) fn written(&self) -> &[u8] {
        self.written.as_ref().unwrap_or(&self.line).trim_ascii_end()
    }

    /// The text with the end of its line: the body of an answer.
    pub(crate) fn line(&self) -> &Bytes {
        &self.line
    }

    pub(crate) fn text(&self) -> &[u8] {
        self.line.trim_ascii_end()
    }

    /// The value, which is parsed when nobody has it.
    pub(crate) fn value(&self) -> Arc<Value> {
        self.known().unwrap_or_else(|| self.parse())
    }

    /// Whether this is the value of the object, and not one that equals it.
    pub(crate) fn is(&self, value: &Arc<Value>) -> bool {
        Weak::as_ptr(&self.value.lock()) == Arc::as_ptr(value)
    }

    fn known(&self) -> Option<Arc<Value>> {
        self.value.lock().upgrade()
    }

    fn parse(&self) -> Arc<Value> {
        // What has been serialised can be parsed.
        let value: Arc<Value> = Arc::new(serde_json::from_slice(&self.line).unwrap_or_default());
        *self.value.lock() = Arc::downgrade(&value);
        value
    }
}

/// The values of a table that were used last: the oldest go when their texts are too long.
#[derive(Default)]
pub(super) struct Warm(Mutex<WarmValues>);

#[derive(Default)]
struct WarmValues {
    values: VecDeque<(Arc<Value>, usize)>,
    len: usize,
}

impl Warm {
    pub(super) fn keep(&self, object: &Object, value: Arc<Value>) {
        let mut kept = self.0.lock();
        kept.len += object.line.len();
        kept.values.push_back((value, object.line.len()));
        while kept.len > WARM_LEN_MAX {
            let Some((_, len)) = kept.values.pop_front() else { break };
            kept.len -= len;
        }
    }

    /// The value of an object, which stays parsed for a while.
    pub(super) fn value(&self, object: &Object) -> Arc<Value> {
        object.known().unwrap_or_else(|| {
            let value = object.parse();
            self.keep(object, value.clone());
            value
        })
    }
}

/// What a watch says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The lines of an event, each written once for all watchers.
#[derive(Debug, Default)]
pub(crate) struct Lines([OnceLock<Bytes>; 3]);

impl Lines {
    pub(crate) fn of(&self, kind: EventType, object: &Object) -> Bytes {
        self.0[kind as usize].get_or_init(|| event_line(kind, object)).clone()
    }
}

/// What a watch says of an object, as a line.
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
    fn text_has_the_kind_first_and_is_the_same_value() {
        let value =
            Arc::new(json!({ "data": { "a": "\n\u{1f600}" }, "kind": "ConfigMap", "apiVersion": "v1", "Odd": 1.5 }));
        let object = Object::new(&value);
        let text = String::from_utf8(object.text().to_vec()).unwrap();
        assert!(text.starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","#), "{text}");
        assert!(object.is(&value));
        drop(Arc::into_inner(value));
        assert_eq!(
            *object.value(),
            json!({ "data": { "a": "\n\u{1f600}" }, "kind": "ConfigMap", "apiVersion": "v1", "Odd": 1.5 })
        );
    }

    #[test]
    fn values_stay_parsed_until_their_texts_are_too_long() {
        let warm = Warm::default();
        let long = |n: usize| Arc::new(json!({ "n": n, "data": "x".repeat(WARM_LEN_MAX / 4) }));
        let objects: Vec<Object> = (0..4)
            .map(|n| {
                let value = long(n);
                let object = Object::new(&value);
                warm.keep(&object, value);
                object
            })
            .collect();
        let parsed: Vec<bool> = objects.iter().map(|object| object.known().is_some()).collect();
        assert_eq!(parsed, [false, true, true, true]);
        assert_eq!(warm.value(&objects[0])["n"], 0);
        assert_eq!(objects[0].known().map(|value| value["n"].clone()), Some(json!(0)));
        assert!(objects[1].known().is_none());
    }
}
