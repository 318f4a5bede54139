//! The messages of the built-in kinds, as the data file has them: by number what a field is called and how it is shown.

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The type of a field, or of the items of a list or a map.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "String")]
pub(super) enum FieldType {
    String,
    Bytes,
    Bool,
    Int32,
    Int64,
    Double,
    Message(String),
}

impl From<String> for FieldType {
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

/// When and where a field is in JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum FieldForm {
    /// Left out when it is zero.
    #[default]
    Value,
    /// Kept when it was sent, even a zero.
    Pointer,
    /// Always there.
    Always,
    /// Its fields are those of the message around it.
    Inline,
    List,
    /// With texts as keys.
    Map,
}

#[derive(Debug, Deserialize)]
pub(super) struct MessageField {
    pub(super) number: u32,
    /// In JSON; empty for what is inline.
    #[serde(default)]
    pub(super) name: String,
    pub(super) r#type: FieldType,
    #[serde(default)]
    pub(super) form: FieldForm,
    /// Whether a list, map or pointer is null in JSON instead of left out.
    #[serde(default)]
    null: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) name: String,
    #[serde(default)]
    pub(super) fields: Vec<MessageField>,
    /// Of a message that is a list of texts: the number of the items.
    pub(super) items: Option<u32>,
}

static MESSAGES: LazyLock<HashMap<String, Message>> = LazyLock::new(|| {
    let messages: Vec<Message> =
        serde_json::from_str(include_str!("../../data/proto.json")).expect("the file is generated and tested");
    messages.into_iter().map(|message| (message.name.clone(), message)).collect()
});

impl Message {
    /// A message by the name of its type, such as `io.k8s.api.core.v1.PodSpec`.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        MESSAGES.get(name)
    }

    pub(super) fn field(&self, number: u32) -> Option<&MessageField> {
        self.fields.iter().find(|field| field.number == number)
    }
}

/// The fields of a type that are not in JSON when they are zero: texts, numbers and flags that are no pointers in Go.
pub(crate) fn left_out(name: &str) -> Vec<&'static str> {
    let of = |field: &'static MessageField| match (&field.r#type, field.form) {
        (FieldType::Message(name), FieldForm::Inline) => left_out(name),
        (
            FieldType::String | FieldType::Bytes | FieldType::Bool | FieldType::Int32 | FieldType::Int64,
            FieldForm::Value,
        ) => vec![field.name.as_str()],
        _ => Vec::new(),
    };
    MESSAGES.get(name).into_iter().flat_map(|message| &message.fields).flat_map(of).collect()
}

/// The fields of a type that are always in JSON, with what they are when nobody has set them.
pub(crate) fn always(name: &str) -> Vec<(&'static str, Value)> {
    let of = |field: &'static MessageField| match (&field.r#type, field.form) {
        (FieldType::Message(name), FieldForm::Inline) => always(name),
        (r#type, FieldForm::Always) => vec![(field.name.as_str(), zero(r#type))],
        _ if field.null => vec![(field.name.as_str(), Value::Null)],
        _ => Vec::new(),
    };
    MESSAGES.get(name).into_iter().flat_map(|message| &message.fields).flat_map(of).collect()
}

/// What Go writes of a value that nobody has set.
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
            _ => always(name).into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    fn properties(message: &Message) -> Vec<&str> {
        let nested = |field: &'static MessageField| match (&field.r#type, field.form) {
            (FieldType::Message(name), FieldForm::Inline) => properties(Message::named(name).unwrap()),
            _ => vec![field.name.as_str()],
        };
        Message::named(&message.name).unwrap().fields.iter().flat_map(nested).collect()
    }

    #[test]
    fn messages_have_the_fields_of_their_types() {
        let mut n_compared = 0;
        for message in MESSAGES.values() {
            let Some(schema) = Schema::named(&message.name) else { continue };
            // Types that write themselves to JSON have no properties.
            let mut known: Vec<&str> = schema.properties().map(|(name, _)| name).collect();
            known.retain(|name| !["apiVersion", "kind"].contains(name) || properties(message).contains(name));
            if known.is_empty() {
                continue;
            }
            let mut sent = properties(message);
            known.sort_unstable();
            sent.sort_unstable();
            assert_eq!(sent, known, "{}", message.name);
            n_compared += 1;
        }
        assert!(n_compared > 500, "{n_compared}");
    }

    #[test]
    fn every_message_of_a_field_is_there() {
        for field in MESSAGES.values().flat_map(|message| &message.fields) {
            let FieldType::Message(name) = &field.r#type else { continue };
            assert!(Message::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn no_message_always_contains_itself() {
        fn depth(message: &Message) -> usize {
            let always =
                message.fields.iter().filter(|field| matches!(field.form, FieldForm::Always | FieldForm::Inline));
            let of = |field: &MessageField| match &field.r#type {
                FieldType::Message(name) => depth(Message::named(name).unwrap()),
                _ => 0,
            };
            1 + always.map(of).max().unwrap_or(0)
        }
        assert!(MESSAGES.values().map(depth).max().unwrap() < 10);
    }
}
