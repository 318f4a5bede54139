//! Decodes a body of type `application/vnd.kubernetes.protobuf` into the JSON of its object.
//!
//! The body is a `runtime.Unknown` after four magic bytes (`k8s.io/apimachinery/pkg/runtime/serializer/protobuf`).
//! The envelope contains the message of the kind. Unknown fields are skipped, as kube-apiserver does.

mod special;
mod table;
mod wire;

pub(crate) use self::table::{always, left_out};
use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use table::{FieldForm, FieldType, Message, MessageField};
use wire::{Reader, Wire};

use crate::schema;

/// The media type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The prefix of a protobuf body.
const MAGIC: &[u8] = b"k8s\0";
/// Messages in one another, as implementations of protocol buffers limit them. Deeper ones are refused.
const DEPTH_MAX: usize = 100;

/// The reason why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ProtoError {
    /// The envelope is damaged.
    #[error("{0}")]
    EnvelopeBroken(String),
    /// The object is broken, or no kind of this server.
    #[error("{why}")]
    ObjectBroken { api_version: String, kind: String, why: String },
}

/// Decodes a body into an object with its `apiVersion` and `kind`.
///
/// # Errors
/// Fails if the body is truncated, does not fit the message of its kind, or is of a kind that is not built in. The
/// message names message and field.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, ProtoError> {
    let Envelope { api_version, kind, raw } = Envelope::read(bytes).map_err(ProtoError::EnvelopeBroken)?;
    let object = match schema::name_of(&api_version, &kind) {
        Some(name) => fields(name, raw, 0),
        None => Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )),
    };
    match object {
        Ok(mut object) => {
            object.insert("apiVersion".into(), api_version.into());
            object.insert("kind".into(), kind.into());
            Ok(object.into())
        }
        Err(why) => Err(ProtoError::ObjectBroken { api_version, kind, why }),
    }
}

/// A decoded `runtime.Unknown`.
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Decodes the envelope.
    fn read(bytes: &'a [u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err("empty data".into());
        }
        let Some(bytes) = bytes.strip_prefix(MAGIC) else {
            let why = "provided data does not appear to be a protobuf message";
            return Err(format!("{why}, expected prefix {}", format!("{MAGIC:?}").replace(',', "")));
        };
        if bytes.is_empty() {
            return Err("empty body".into());
        }
        let mut envelope = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        let mut reader = Reader(bytes);
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.value(tag)?) {
                (1, Wire::Bytes(type_meta)) => envelope.read_type(type_meta)?,
                (2, Wire::Bytes(raw)) => envelope.raw = raw,
                (1 | 2, other) => return Err(format!("proto: wrong wireType = {} for Unknown", other.type_number())),
                _ => {}
            }
        }
        Ok(envelope)
    }

    /// Decodes the `TypeMeta`.
    fn read_type(&mut self, type_meta: &[u8]) -> Result<(), String> {
        let mut reader = Reader(type_meta);
        while let Some(tag) = reader.tag()? {
            match (tag.number, reader.value(tag)?) {
                (1, Wire::Bytes(text)) => self.api_version = String::from_utf8_lossy(text).into_owned(),
                (2, Wire::Bytes(text)) => self.kind = String::from_utf8_lossy(text).into_owned(),
                (1 | 2, other) => return Err(format!("proto: wrong wireType = {} for TypeMeta", other.type_number())),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A type without its package, for errors.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The fields of a message by their names in JSON.
fn fields(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    let Some(message) = Message::named(name) else { return Err(format!("proto: {name} is no message")) };
    if depth > DEPTH_MAX {
        return Err(format!("proto: {} is nested more than {DEPTH_MAX} messages deep", short(name)));
    }
    let sent = sent(message, bytes)?;
    let mut map = Map::new();
    for field in &message.fields {
        let wires = sent.get(&field.number).map_or(&[][..], Vec::as_slice);
        write(field, wires, depth, &mut map).map_err(|why| match why {
            Why::Inner(text) => text,
            Why::Here(text) => at(message, field, &text),
        })?;
    }
    Ok(map)
}

/// Prefixes an error with the message and the field.
fn at(message: &Message, field: &MessageField, text: &str) -> String {
    let inlined = match &field.r#type {
        FieldType::Message(name) => short(name),
        _ => "",
    };
    let field = if field.name.is_empty() { inlined } else { &field.name };
    format!("{}.{field}: {text}", short(&message.name))
}

/// An error, which is prefixed with the innermost field.
enum Why {
    Here(String),
    Inner(String),
}

/// All that was sent by number, in order.
fn sent<'a>(message: &Message, bytes: &'a [u8]) -> Result<BTreeMap<u32, Vec<Wire<'a>>>, String> {
    let mut sent: BTreeMap<u32, Vec<Wire<'_>>> = BTreeMap::new();
    let mut reader = Reader(bytes);
    while let Some(tag) = reader.tag().map_err(|text| format!("{}: {text}", short(&message.name)))? {
        let value = reader.value(tag).map_err(|text| match message.field(tag.number) {
            Some(field) => at(message, field, &text),
            None => format!("{}, field {}: {text}", short(&message.name), tag.number),
        })?;
        sent.entry(tag.number).or_default().push(value);
    }
    Ok(sent)
}

/// Writes one field into the JSON object.
fn write(field: &MessageField, wires: &[Wire<'_>], depth: usize, map: &mut Map<String, Value>) -> Result<(), Why> {
    let value = match (field.form, &field.r#type) {
        (FieldForm::Inline, FieldType::Message(name)) => {
            let bytes = joined(wires).map_err(Why::Here)?;
            map.append(&mut fields(name, &bytes, depth + 1).map_err(Why::Inner)?);
            return Ok(());
        }
        (FieldForm::List, kind) => {
            Some(list(kind, wires, depth)?.into()).filter(|list: &Value| *list != Value::Array(vec![]))
        }
        (FieldForm::Map, kind) => Some(entries(kind, wires, depth)?).filter(|map| !map.is_empty()).map(Value::Object),
        (FieldForm::Always, kind) => Some(one(kind, wires, depth)?),
        (_, _) if wires.is_empty() => None,
        (FieldForm::Pointer, kind) => Some(one(kind, wires, depth)?),
        (FieldForm::Value | FieldForm::Inline, kind) => Some(one(kind, wires, depth)?).filter(|value| !is_zero(value)),
    };
    // Go's null is omitted.
    if let Some(value) = value.filter(|value| !value.is_null()) {
        map.insert(field.name.clone(), value);
    }
    Ok(())
}

/// Returns `true` for a zero value.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(value) => value.is_empty(),
        Value::Object(value) => value.is_empty(),
    }
}

/// A message that was sent in parts is their union.
fn joined<'a>(wires: &[Wire<'a>]) -> Result<Cow<'a, [u8]>, String> {
    let mut all = Cow::Borrowed(&[][..]);
    for wire in wires {
        let Wire::Bytes(bytes) = wire else { return Err(wrong(wire)) };
        if all.is_empty() {
            all = Cow::Borrowed(bytes);
        } else {
            all.to_mut().extend_from_slice(bytes);
        }
    }
    Ok(all)
}

/// Returns the error of an unexpected wire type.
fn wrong(wire: &Wire<'_>) -> String {
    format!("proto: wrong wireType = {}", wire.type_number())
}

/// Returns a single value. The last of several scalars counts, and an absent one is zero.
fn one(kind: &FieldType, wires: &[Wire<'_>], depth: usize) -> Result<Value, Why> {
    match kind {
        FieldType::Message(name) => {
            let bytes = joined(wires).map_err(Why::Here)?;
            special::message(name, &bytes, depth + 1).map_err(Why::Inner)
        }
        _ => scalar(kind, wires.last()).map_err(Why::Here),
    }
}

/// Returns a scalar.
fn scalar(kind: &FieldType, wire: Option<&Wire<'_>>) -> Result<Value, String> {
    Ok(match (kind, wire) {
        (FieldType::Bytes | FieldType::Message(_), None) => Value::Null,
        (FieldType::String, None) => "".into(),
        (FieldType::Bool, None) => false.into(),
        (_, None) => 0.into(),
        (FieldType::String, Some(Wire::Bytes(bytes))) => String::from_utf8_lossy(bytes).into(),
        (FieldType::Bytes, Some(Wire::Bytes(bytes))) => BASE64_STANDARD.encode(bytes).into(),
        (FieldType::Bool, Some(Wire::Varint(value))) => (*value != 0).into(),
        (FieldType::Int64, Some(Wire::Varint(value))) => value.cast_signed().into(),
        (FieldType::Int32, Some(Wire::Varint(value))) => {
            i32::try_from(value.cast_signed()).map_err(|_| "proto: integer overflow")?.into()
        }
        (FieldType::Double, Some(Wire::Fixed64(bytes))) => number(f64::from_le_bytes(*bytes)),
        (_, Some(other)) => return Err(wrong(other)),
    })
}

/// Returns a number as Go writes it: integers without a fraction.
fn number(value: f64) -> Value {
    let text = value.to_string();
    text.parse::<i64>().map_or_else(|_| value.into(), Value::from)
}

/// Returns the items of a repeated field.
fn list(kind: &FieldType, wires: &[Wire<'_>], depth: usize) -> Result<Vec<Value>, Why> {
    let mut items = Vec::with_capacity(wires.len());
    for wire in wires {
        match (kind, wire) {
            // Numbers may be packed into one field.
            (FieldType::Bool | FieldType::Int32 | FieldType::Int64, Wire::Bytes(packed)) => {
                let mut reader = Reader(packed);
                while !reader.0.is_empty() {
                    let value = Wire::Varint(reader.varint().map_err(Why::Here)?);
                    items.push(scalar(kind, Some(&value)).map_err(Why::Here)?);
                }
            }
            _ => items.push(one(kind, &[*wire], depth)?),
        }
    }
    Ok(items)
}

/// Returns the entries of a map: each is a message with the key in field 1 and the value in field 2.
fn entries(kind: &FieldType, wires: &[Wire<'_>], depth: usize) -> Result<Map<String, Value>, Why> {
    let mut map = Map::new();
    for wire in wires {
        let Wire::Bytes(entry) = wire else { return Err(Why::Here(wrong(wire))) };
        let (mut key, mut values) = (String::new(), Vec::new());
        let mut reader = Reader(entry);
        while let Some(tag) = reader.tag().map_err(Why::Here)? {
            match (tag.number, reader.value(tag).map_err(Why::Here)?) {
                (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                (1, other) => return Err(Why::Here(wrong(&other))),
                (2, value) => values.push(value),
                _ => {}
            }
        }
        let value = match one(kind, &values, depth)? {
            Value::Null if *kind == FieldType::Bytes => "".into(),
            value => value,
        };
        map.insert(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
