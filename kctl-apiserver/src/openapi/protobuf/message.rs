//! Encodes protobuf messages field by field.
//!
//! Supports only the wire types that gnostic's messages use. Fields with default values are omitted, as proto3 demands;
//! the caller decides about presence.

use serde_json::{Map, Value};

/// Wire type of integers and booleans.
const VARINT: u32 = 0;
/// Wire type of a little-endian `double`.
const FIXED_64: u32 = 1;
/// Wire type of strings and nested messages, which have a length prefix.
const BYTES: u32 = 2;

/// Returns the items of a list, or no items for any other value.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// Returns the encoded message.
    ///
    /// Nested messages are complete already.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Encodes a varint.
    ///
    /// Seven bits per byte, the lowest first.
    fn raw(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.0.push(low & 0x7f);
            }
            self.0.push(low | 0x80);
        }
    }

    /// Encodes field number and wire type.
    ///
    /// Field numbers below 2^29, as protobuf allows.
    fn key(&mut self, number: u32, wire: u32) {
        self.raw(u64::from(number << 3 | wire));
    }

    /// Encodes an integer field.
    ///
    /// Written even if it is 0.
    pub(super) fn varint(&mut self, number: u32, value: u64) {
        self.key(number, VARINT);
        self.raw(value);
    }

    /// Encodes a field of bytes.
    ///
    /// The length comes first, as a varint.
    pub(super) fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, BYTES);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Encodes a message field.
    ///
    /// Encoded into a separate buffer first, because the length precedes the content.
    pub(super) fn message(&mut self, number: u32, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(number, &inner.0);
    }

    /// Encodes a string field, unless it is absent or empty.
    pub(super) fn text(&mut self, number: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(number, text.as_bytes());
        }
    }

    /// Encodes a repeated string field.
    ///
    /// Empty strings are kept.
    pub(super) fn texts(&mut self, number: u32, value: &Value) {
        items(value).filter_map(Value::as_str).for_each(|text| self.bytes(number, text.as_bytes()));
    }

    /// Encodes a boolean field, if it is true.
    pub(super) fn flag(&mut self, number: u32, value: &Value) {
        if value == &Value::Bool(true) {
            self.varint(number, 1);
        }
    }

    /// Encodes an unsigned field, if it is positive.
    ///
    /// Negative numbers and fractions are left out.
    pub(super) fn count(&mut self, number: u32, value: &Value) {
        if let Some(count) = value.as_u64().filter(|count| *count > 0) {
            self.varint(number, count);
        }
    }

    /// Encodes a floating-point field, if it is not zero.
    pub(super) fn number(&mut self, number: u32, value: &Value) {
        if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
            self.double(number, value);
        }
    }

    /// Encodes a floating-point field.
    ///
    /// Written even if it is 0.
    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.key(number, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Encodes an arbitrary value as a message `Any`, whose YAML text is JSON here.
    ///
    /// Field 2 of `openapi.v2.Any` is `yaml`.
    pub(super) fn any(&mut self, number: u32, value: &Value) {
        self.message(number, |any| any.bytes(2, value.to_string().as_bytes()));
    }

    /// Encodes the fields of an object as repeated messages of a name and a value.
    ///
    /// Field 1 is the name, field 2 the value: `NamedSchema` and its siblings.
    pub(super) fn named(&mut self, number: u32, object: &Value, fill: impl Fn(&mut Message, &Value)) {
        for (name, value) in object.as_object().into_iter().flat_map(Map::iter) {
            self.message(number, |entry| {
                entry.bytes(1, name.as_bytes());
                entry.message(2, |found| fill(found, value));
            });
        }
    }

    /// Encodes all `x-…` extensions, each as its name and a message `Any`.
    ///
    /// The order is that of the object's keys.
    pub(super) fn extensions(&mut self, number: u32, object: &Value) {
        let all = object.as_object().into_iter().flat_map(Map::iter);
        for (name, value) in all.filter(|(name, _)| name.starts_with("x-")) {
            self.message(number, |entry| {
                entry.bytes(1, name.as_bytes());
                entry.any(2, value);
            });
        }
    }
}
