//! Decodes a body of type `application/vnd.kubernetes.protobuf` into the JSON of its object.
//!
//! The body is a `runtime.Unknown` after four magic bytes (`k8s.io/apimachinery/pkg/runtime/serializer/protobuf`). The
//! envelope contains the message of the kind. Unknown fields are skipped, as kube-apiserver does.
//!
//! Kubernetes' components send built-in kinds in this form; custom kinds have none.

mod table;
mod well_known;
mod wire;

pub(crate) use self::table::{always_written_fields, omitempty_fields, omitted_if_zero};
use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use table::{FieldForm, FieldType, Message, MessageField};
use wire::{Reader, WireValue};

use crate::{go, schema};

/// The media type of such bodies.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// The prefix of a protobuf body.
const MAGIC: &[u8] = b"k8s\0";
/// Maximum nesting of messages, as in protobuf implementations. Deeper messages are rejected, which bounds the
/// recursion.
const DEPTH_MAX: usize = 100;

/// Decodes a body: an object with its `apiVersion` and `kind`.
///
/// # Errors
/// Fails if the body is truncated, does not have the shape of its kind, or is of a kind that is not built in. The
/// message names the field.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    // `runtime.Unknown`. The encoding of the object is ignored, as by kube-apiserver.
    let envelope = bytes.strip_prefix(MAGIC).filter(|envelope| !envelope.is_empty());
    let envelope =
        read_fields(envelope.ok_or("must be a protobuf message that begins with the four bytes of Kubernetes")?)?;
    let type_meta = read_fields(last(&envelope, 1)?)?;
    let (api_version, kind) = (text(&type_meta, 1)?, text(&type_meta, 2)?);
    let name = schema::name_of(&api_version, &kind);
    let name = name.ok_or_else(|| format!("unknown kind {kind:?} of {api_version:?}"))?;
    let mut object = fields(name, last(&envelope, 2)?, 0)?;
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    Ok(object.into())
}

/// Decodes a message to its JSON fields. Fields are visited in the order of the table, not of the wire, so the JSON
/// does not depend on the sender.
fn fields(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, String> {
    let Some(message) = Message::find(name) else { return Err(format!("unknown message {name}")) };
    if depth > DEPTH_MAX {
        return Err(format!("messages must not be nested more than {DEPTH_MAX} deep"));
    }
    let sent = read_fields(bytes)?;
    let mut map = Map::new();
    for field in &message.fields {
        let wires = sent.get(&field.number).map_or(&[][..], Vec::as_slice);
        write(field, wires, depth, &mut map).map_err(|why| format!("{}: {why}", field.name))?;
    }
    Ok(map)
}

/// Returns the wire values by field number, in the order in which they were sent.
fn read_fields(bytes: &[u8]) -> Result<BTreeMap<u32, Vec<WireValue<'_>>>, String> {
    let mut sent: BTreeMap<u32, Vec<WireValue<'_>>> = BTreeMap::new();
    let mut reader = Reader(bytes);
    while let Some(tag) = reader.tag()? {
        sent.entry(tag.number).or_default().push(reader.value(tag)?);
    }
    Ok(sent)
}

/// Returns the last value of a field, which protobuf uses; empty if the field was not sent.
fn last<'a>(sent: &BTreeMap<u32, Vec<WireValue<'a>>>, number: u32) -> Result<&'a [u8], String> {
    match sent.get(&number).and_then(|wires| wires.last()) {
        None => Ok(&[]),
        Some(WireValue::Bytes(bytes)) => Ok(bytes),
        Some(other) => Err(wire_type_error(other)),
    }
}

/// Returns the last value of a string field.
fn text(sent: &BTreeMap<u32, Vec<WireValue<'_>>>, number: u32) -> Result<String, String> {
    Ok(String::from_utf8_lossy(last(sent, number)?).into_owned())
}

/// Writes one field into the JSON object. The form of the field decides if zero values are written, as Go's tags do.
fn write(
    field: &MessageField,
    wires: &[WireValue<'_>],
    depth: usize,
    map: &mut Map<String, Value>,
) -> Result<(), String> {
    let value = match (field.form, &field.r#type) {
        (FieldForm::Inline, FieldType::Message(name)) => {
            let bytes = join_bytes(wires)?;
            map.append(&mut fields(name, &bytes, depth + 1)?);
            return Ok(());
        }
        (FieldForm::List, kind) => {
            Some(list(kind, wires, depth)?.into()).filter(|list: &Value| *list != Value::Array(vec![]))
        }
        (FieldForm::Map, kind) => Some(entries(kind, wires, depth)?).filter(|map| !map.is_empty()).map(Value::Object),
        (FieldForm::Always, kind) => Some(singular(kind, wires, depth)?),
        (_, _) if wires.is_empty() => None,
        (FieldForm::Pointer, kind) => Some(singular(kind, wires, depth)?),
        (FieldForm::Value | FieldForm::Inline, kind) => {
            Some(singular(kind, wires, depth)?).filter(|value| !go::is_zero(value))
        }
    };
    // Go omits null.
    if let Some(value) = value.filter(|value| !value.is_null()) {
        map.insert(field.name.clone(), value);
    }
    Ok(())
}

/// Joins the parts of a message that was sent several times, which protobuf merges.
fn join_bytes<'a>(wires: &[WireValue<'a>]) -> Result<Cow<'a, [u8]>, String> {
    let mut all = Cow::Borrowed(&[][..]);
    for wire in wires {
        let WireValue::Bytes(bytes) = wire else { return Err(wire_type_error(wire)) };
        if all.is_empty() {
            all = Cow::Borrowed(bytes);
        } else {
            all.to_mut().extend_from_slice(bytes);
        }
    }
    Ok(all)
}

/// Returns the error of an unexpected wire type.
fn wire_type_error(wire: &WireValue<'_>) -> String {
    format!("unexpected protobuf value {wire:?}")
}

/// Returns the value of a singular field. If a scalar was sent several times, the last value is used; an absent scalar
/// is zero.
fn singular(kind: &FieldType, wires: &[WireValue<'_>], depth: usize) -> Result<Value, String> {
    match kind {
        FieldType::Message(name) => well_known::message(name, &join_bytes(wires)?, depth + 1),
        _ => scalar(kind, wires.last()),
    }
}

/// Returns a scalar. A value of another wire type is an error.
fn scalar(kind: &FieldType, wire: Option<&WireValue<'_>>) -> Result<Value, String> {
    Ok(match (kind, wire) {
        (FieldType::Bytes | FieldType::Message(_), None) => Value::Null,
        (FieldType::String, None) => "".into(),
        (FieldType::Bool, None) => false.into(),
        (_, None) => 0.into(),
        (FieldType::String, Some(WireValue::Bytes(bytes))) => String::from_utf8_lossy(bytes).into(),
        (FieldType::Bytes, Some(WireValue::Bytes(bytes))) => BASE64_STANDARD.encode(bytes).into(),
        (FieldType::Bool, Some(WireValue::Varint(value))) => (*value != 0).into(),
        (FieldType::Int64, Some(WireValue::Varint(value))) => value.cast_signed().into(),
        (FieldType::Int32, Some(WireValue::Varint(value))) => {
            i32::try_from(value.cast_signed()).map_err(|_| "must be a 32-bit integer")?.into()
        }
        (FieldType::Double, Some(WireValue::Fixed64(bytes))) => number(f64::from_le_bytes(*bytes)),
        (_, Some(other)) => return Err(wire_type_error(other)),
    })
}

/// Returns a number as Go writes it: integers without a fraction.
fn number(value: f64) -> Value {
    let text = value.to_string();
    text.parse::<i64>().map_or_else(|_| value.into(), Value::from)
}

/// Returns the items of a repeated field. An item that is a message is decoded on its own: items are never merged.
fn list(kind: &FieldType, wires: &[WireValue<'_>], depth: usize) -> Result<Vec<Value>, String> {
    let mut items = Vec::with_capacity(wires.len());
    for wire in wires {
        match (kind, wire) {
            // Numbers may be packed into one field.
            (FieldType::Bool | FieldType::Int32 | FieldType::Int64, WireValue::Bytes(packed)) => {
                let mut reader = Reader(packed);
                while !reader.0.is_empty() {
                    let value = WireValue::Varint(reader.varint()?);
                    items.push(scalar(kind, Some(&value))?);
                }
            }
            _ => items.push(singular(kind, &[*wire], depth)?),
        }
    }
    Ok(items)
}

/// Decodes a map. Each entry is a message with the key in field 1 and the value in field 2. A repeated key takes the
/// last value.
fn entries(kind: &FieldType, wires: &[WireValue<'_>], depth: usize) -> Result<Map<String, Value>, String> {
    let mut map = Map::new();
    for wire in wires {
        let WireValue::Bytes(entry) = wire else { return Err(wire_type_error(wire)) };
        let entry = read_fields(entry)?;
        let value = match singular(kind, entry.get(&2).map_or(&[], Vec::as_slice), depth)? {
            Value::Null if *kind == FieldType::Bytes => "".into(),
            value => value,
        };
        map.insert(text(&entry, 1)?, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests;
