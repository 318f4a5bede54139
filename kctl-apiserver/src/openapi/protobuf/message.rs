//! Encodes JSON as protobuf messages, whose fields are listed in tables.
//!
//! Supports only the wire types that gnostic's messages use.

use serde_json::{Map, Value};

/// Wire type of integers and booleans.
const VARINT: u32 = 0;
/// Wire type of a little-endian `double`.
const FIXED_64: u32 = 1;
/// Wire type of strings and nested messages, which have a length prefix.
const BYTES: u32 = 2;

/// The fields of a message, in the order in which they are written: the number, the key in JSON and the form. With an
/// empty key the field is made of the whole value. A field whose key is absent is left out.
pub(super) struct Layout(pub(super) &'static [(u32, &'static str, FieldForm)]);

/// The form of a field. Those with a default value are left out, as proto3 requires, unless the form says otherwise.
pub(super) enum FieldForm {
    Text,
    /// A repeated string. Empty strings are kept.
    Texts,
    /// A boolean.
    Flag,
    /// An unsigned integer. Negative numbers and fractions are left out.
    Count,
    /// A floating-point number.
    Number,
    /// A member of a union for strings, which is written even if it is empty. Other values are left out.
    UnionText,
    /// A member of a union for booleans, which is written even if it is false.
    UnionFlag,
    /// A member of a union for numbers, which is written even if it is 0.
    UnionNumber,
    /// Any value, as the text of its JSON.
    Json,
    /// A message.
    One(&'static Layout),
    /// A message, if the value is of this form: a member of a union.
    Where(fn(&Value) -> bool, &'static Layout),
    /// A message for each item of a list.
    Each(&'static Layout),
    /// A message for each field of an object, with its name and a message for its value.
    Entries(&'static Layout),
    /// A message whose only field has this number and holds `Entries`.
    Named(u32, &'static Layout),
    /// The `Entries` of an object whose names begin with `x-`, each with a message [`ANY`].
    Extensions,
}

/// The message `Any`, whose field 2 is `yaml`. JSON is YAML as well.
pub(super) static ANY: Layout = Layout(&[(2, "", FieldForm::Json)]);

impl Layout {
    /// Returns the encoded message for a value.
    pub(super) fn encode(&self, value: &Value) -> Vec<u8> {
        let mut message = Message::default();
        for (number, key, form) in self.0 {
            if let Some(value) = if key.is_empty() { Some(value) } else { value.get(key) } {
                message.field(*number, form, value);
            }
        }
        message.0
    }
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    /// Encodes a varint: seven bits per byte, the lowest first.
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
    fn key(&mut self, number: u32, wire: u32) {
        self.raw(u64::from(number << 3 | wire));
    }

    fn varint(&mut self, number: u32, value: u64) {
        self.key(number, VARINT);
        self.raw(value);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, BYTES);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn double(&mut self, number: u32, value: f64) {
        self.key(number, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Encodes a field.
    fn field(&mut self, number: u32, form: &FieldForm, value: &Value) {
        let (items, entries) =
            (value.as_array().into_iter().flatten(), value.as_object().into_iter().flat_map(Map::iter));
        match (form, value) {
            (FieldForm::Text, Value::String(text)) if text.is_empty() => {}
            (FieldForm::Text | FieldForm::UnionText, Value::String(text)) => self.bytes(number, text.as_bytes()),
            (FieldForm::Texts, _) => {
                items.filter_map(Value::as_str).for_each(|text| self.bytes(number, text.as_bytes()));
            }
            (FieldForm::Flag, Value::Bool(false)) => {}
            (FieldForm::Flag | FieldForm::UnionFlag, Value::Bool(flag)) => self.varint(number, u64::from(*flag)),
            (FieldForm::Count, _) => {
                if let Some(count) = value.as_u64().filter(|count| *count > 0) {
                    self.varint(number, count);
                }
            }
            (FieldForm::Number, Value::Number(found)) if found.as_f64() == Some(0.0) => {}
            (FieldForm::Number | FieldForm::UnionNumber, Value::Number(found)) => {
                self.double(number, found.as_f64().unwrap_or_default());
            }
            (FieldForm::Json, _) => self.bytes(number, value.to_string().as_bytes()),
            (FieldForm::One(layout), _) => self.bytes(number, &layout.encode(value)),
            (FieldForm::Where(is_form, layout), _) if is_form(value) => self.bytes(number, &layout.encode(value)),
            (FieldForm::Each(layout), _) => items.for_each(|item| self.bytes(number, &layout.encode(item))),
            (FieldForm::Entries(layout), _) => {
                entries.for_each(|(name, value)| self.entry(number, name, layout, value));
            }
            (FieldForm::Named(inner, layout), Value::Object(_)) => {
                let mut all = Self::default();
                entries.for_each(|(name, value)| all.entry(*inner, name, layout, value));
                self.bytes(number, &all.0);
            }
            (FieldForm::Extensions, _) => {
                let extensions = entries.filter(|(name, _)| name.starts_with("x-"));
                extensions.for_each(|(name, value)| self.entry(number, name, &ANY, value));
            }
            _ => {}
        }
    }

    /// Encodes a name with its value, such as `NamedSchema`.
    fn entry(&mut self, number: u32, name: &str, layout: &Layout, value: &Value) {
        let mut entry = Self::default();
        entry.bytes(1, name.as_bytes());
        entry.bytes(2, &layout.encode(value));
        self.bytes(number, &entry.0);
    }
}
