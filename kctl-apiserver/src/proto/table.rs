//! The protobuf messages of built-in kinds, from `data/proto.json`: name and JSON form of each field number.
//!
//! The form of a field follows from its Go type and tags, which the wire format does not show.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The type of a field, or of the items of a list or a map.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub(super) enum FieldType {
    String,
    /// Bytes, which JSON has in base64.
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    /// Another message, by its name in `data/proto.json`.
    Message(String),
}

impl From<String> for FieldType {
    /// Parses the name of a type.
    fn from(name: String) -> Self {
        match name.as_str() {
            "string" => Self::String,
            "bytes" => Self::Bytes,
            "bool" => Self::Bool,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "double" => Self::Double,
            _ => Self::Message(name),
        }
    }
}

/// The form in which a field is written in JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum FieldForm {
    /// Omitted if it is zero.
    #[default]
    Value,
    /// Written if it was sent, even as zero.
    Pointer,
    /// Always there.
    Always,
    /// The fields of the message are fields of the outer one.
    Inline,
    /// Omitted if it is empty.
    List,
    /// A map with string keys. Omitted if it is empty.
    Map,
}

/// A field of a message, with the JSON that represents it.
#[derive(Debug, Deserialize)]
pub(super) struct MessageField {
    /// The field number on the wire.
    pub(super) number: u32,
    /// The name in JSON; empty for an inline message.
    #[serde(default)]
    pub(super) name: String,
    /// The type of the field; for maps, the type of the values.
    pub(super) r#type: FieldType,
    /// The form of the field in JSON, which follows from the Go type and its tags.
    #[serde(default)]
    pub(super) form: FieldForm,
    /// `true` if an absent list, map or pointer is written as null instead of being omitted.
    #[serde(default)]
    null: bool,
}

/// A protobuf message of a built-in type.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    /// The name, as in the `OpenAPI` document.
    pub(super) name: String,
    /// The fields, in the order of the data file.
    #[serde(default)]
    pub(super) fields: Vec<MessageField>,
    /// For a message that represents a list of strings: the field number of its items.
    pub(super) items: Option<u32>,
}

/// All messages by name.
static MESSAGES: LazyLock<HashMap<String, Message>> = LazyLock::new(|| {
    let messages: Vec<Message> =
        serde_json::from_str(include_str!("../../data/proto.json")).expect("the file is generated and tested");
    messages.into_iter().map(|message| (message.name.clone(), message)).collect()
});

impl Message {
    /// Returns a message by its type name, such as `io.k8s.api.core.v1.PodSpec`.
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        MESSAGES.get(name)
    }
}

/// Returns the fields of a type that are omitted if they are zero: strings, numbers and booleans that are not pointers
/// in Go. Inline messages are included.
pub(crate) fn omitted_if_zero(name: &str) -> Vec<&'static str> {
    let paths = |field: &'static MessageField| match (&field.r#type, field.form) {
        (FieldType::Message(name), FieldForm::Inline) => omitted_if_zero(name),
        (FieldType::Message(_) | FieldType::Double, _) => Vec::new(),
        (_, FieldForm::Value) => vec![field.name.as_str()],
        _ => Vec::new(),
    };
    MESSAGES.get(name).into_iter().flat_map(|message| &message.fields).flat_map(paths).collect()
}

/// Returns the fields of a type with `omitempty`, lists and maps among them, that are not pointers in Go.
pub(crate) fn omitempty_fields(name: &str) -> Vec<&'static str> {
    let fields = MESSAGES.get(name).into_iter().flat_map(|message| &message.fields);
    let omitted = fields.filter(|field| matches!(field.form, FieldForm::Value | FieldForm::List | FieldForm::Map));
    omitted.map(|field| field.name.as_str()).collect()
}

/// Returns the fields of a type that are always written, with their zero values. Bookmarks and the zero values of a
/// create have them, and so have objects after defaulting (`defaulting::zeros`).
pub(crate) fn always_written_fields(name: &str) -> Vec<(&'static str, Value)> {
    let paths = |field: &'static MessageField| match (&field.r#type, field.form) {
        (FieldType::Message(name), FieldForm::Inline) => always_written_fields(name),
        (r#type, FieldForm::Always) => vec![(field.name.as_str(), zero(r#type))],
        _ if field.null => vec![(field.name.as_str(), Value::Null)],
        _ => Vec::new(),
    };
    MESSAGES.get(name).into_iter().flat_map(|message| &message.fields).flat_map(paths).collect()
}

/// Returns the zero value that Go writes. Messages have the zero values of their fields.
fn zero(r#type: &FieldType) -> Value {
    match r#type {
        FieldType::String => "".into(),
        FieldType::Bool => false.into(),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => 0.into(),
        FieldType::Bytes => Value::Null,
        FieldType::Message(name) => match name.rsplit('.').next().unwrap_or_default() {
            "Quantity" => "0".into(),
            "IntOrString" => 0.into(),
            "MicroTime" | "RawExtension" | "Time" => Value::Null,
            _ => always_written_fields(name)
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<Map<_, _>>()
                .into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn properties(message: &Message) -> Vec<&str> {
        let nested = |field: &'static MessageField| match (&field.r#type, field.form) {
            (FieldType::Message(name), FieldForm::Inline) => properties(Message::find(name).unwrap()),
            _ => vec![field.name.as_str()],
        };
        Message::find(&message.name).unwrap().fields.iter().flat_map(nested).collect()
    }

    #[test]
    fn messages_have_the_fields_of_their_types() {
        let mut n_compared = 0;
        for message in MESSAGES.values() {
            let Some(schema) = Schema::for_type(&message.name) else { continue };
            // Types that write themselves to JSON have no properties.
            let mut expected: Vec<&str> = schema.properties().map(|(name, _)| name).collect();
            expected.retain(|name| !["apiVersion", "kind"].contains(name) || properties(message).contains(name));
            if expected.is_empty() {
                continue;
            }
            let mut sent = properties(message);
            expected.sort_unstable();
            sent.sort_unstable();
            assert_eq!(sent, expected, "{}", message.name);
            n_compared += 1;
        }
        assert!(n_compared > 500, "{n_compared}");
    }

    #[test]
    fn every_message_of_a_field_is_there() {
        for field in MESSAGES.values().flat_map(|message| &message.fields) {
            let FieldType::Message(name) = &field.r#type else { continue };
            assert!(Message::find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn no_message_always_contains_itself() {
        fn depth(message: &Message) -> usize {
            let always =
                message.fields.iter().filter(|field| matches!(field.form, FieldForm::Always | FieldForm::Inline));
            let field_depth = |field: &MessageField| match &field.r#type {
                FieldType::Message(name) => depth(Message::find(name).unwrap()),
                _ => 0,
            };
            1 + always.map(field_depth).max().unwrap_or(0)
        }
        assert!(MESSAGES.values().map(depth).max().unwrap() < 10);
    }
}
