//! Converts JSON to the CEL values that rules see, by the types of the schema.
//!
//! Upstream: `UnstructuredToVal` in `pkg/cel/common/valuesunstructured.go` of apiserver.
//!
//! A CEL expression sees a timestamp where JSON has a string, and a set where JSON has a list. The
//! conversion is built once per schema and applied per value.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    cel::{Cel, duration, map, timestamp, to_cel},
    evaluate::{Kinds, ListKind},
};

/// The conversion of the values of a schema.
#[derive(Debug)]
pub(super) enum Typed {
    /// Converted by its JSON type.
    Plain,
    /// `number`: an integer in JSON becomes a double too.
    Double,
    /// A string of format `date`, as a timestamp at midnight UTC.
    Date,
    /// A string of format `date-time`.
    DateTime,
    /// A string of format `duration`.
    Duration,
    /// A string of format `byte`, decoded from base64.
    Bytes,
    /// Items, and the list type that decides equality; `None` for atomic lists.
    List(Box<Typed>, Option<ListKind>),
    /// Values of a map; also an object without declared fields.
    Map(Box<Typed>),
    /// Fields by their names in JSON, with their names in expressions: `a-b` is escaped to `a__dash__b`.
    Object(BTreeMap<String, (String, Typed)>),
}

impl Typed {
    /// Creates the conversion for a structural schema and the schemas below it.
    ///
    /// Int-or-string is converted by its JSON type, an integer or a string.
    pub(super) fn from_schema(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::Plain;
        }
        let fields = schema["properties"].as_object().filter(|fields| !fields.is_empty());
        match schema["type"].as_str().unwrap_or_default() {
            "number" => Self::Double,
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "date" => Self::Date,
                "date-time" => Self::DateTime,
                "duration" => Self::Duration,
                "byte" => Self::Bytes,
                _ => Self::Plain,
            },
            "array" => Self::List(Box::new(Self::from_schema(&schema["items"])), kind(schema)),
            "object" => match fields {
                None => Self::Map(Box::new(Self::from_schema(&schema["additionalProperties"]))),
                Some(fields) => {
                    let field = |(name, schema): (&String, &Value)| {
                        (name.clone(), (kctl_cel::escape(name), Self::from_schema(schema)))
                    };
                    Self::Object(fields.iter().map(field).collect())
                }
            },
            _ => Self::Plain,
        }
    }

    /// Converts a value. A value that the schema does not allow is converted by its JSON type.
    ///
    /// Lists with a type are registered in `kinds`, which the evaluator reads to compare them. Undeclared fields, which
    /// the schema preserves, are converted by their JSON type.
    pub(super) fn value(&self, value: &Value, kinds: &mut Kinds) -> Cel {
        let seen = match (self, value) {
            (Self::Double, Value::Number(number)) => number.as_f64().map(Cel::Float),
            (Self::Date, Value::String(text)) => time(&format!("{text}T00:00:00Z")),
            (Self::DateTime, Value::String(text)) => time(&text.to_ascii_uppercase()),
            (Self::Duration, Value::String(text)) => {
                kctl_apimachinery::formats::parse_duration(text).and_then(duration)
            }
            (Self::Bytes, Value::String(text)) => STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes))),
            (Self::List(items, kind), Value::Array(all)) => {
                let list = Arc::new(all.iter().map(|item| items.value(item, kinds)).collect());
                if let Some(kind) = kind {
                    kinds.add(&list, kind);
                }
                Some(Cel::List(list))
            }
            (Self::Map(values), Value::Object(all)) => {
                Some(map(all.iter().map(|(key, value)| (key.clone(), values.value(value, kinds)))))
            }
            (Self::Object(fields), Value::Object(all)) => {
                // A null field counts as absent.
                let there = all.iter().filter(|(_, value)| !value.is_null());
                Some(map(there.flat_map(|(name, value)| match fields.get(name) {
                    Some((escaped, typed)) => {
                        let value = typed.value(value, kinds);
                        // Expressions may write a reserved word as it is, too: `self.namespace` and
                        // `self.__namespace__` are the same field (`unstructuredMap.lookup` upstream).
                        let plain = kctl_cel::is_reserved(name).then(|| (name.clone(), value.clone()));
                        [Some((escaped.clone(), value)), plain].into_iter().flatten()
                    }
                    None => [Some((name.clone(), to_cel(value))), None].into_iter().flatten(),
                })))
            }
            _ => None,
        };
        seen.unwrap_or_else(|| to_cel(value))
    }
}

/// Returns the list type of a schema; `None` for atomic lists. Keys are escaped like fields, since items are converted
/// before they are compared.
fn kind(schema: &Value) -> Option<ListKind> {
    match schema["x-kubernetes-list-type"].as_str()? {
        "set" => Some(ListKind::Set),
        "map" => {
            let fields = schema["x-kubernetes-list-map-keys"].as_array()?.iter().filter_map(Value::as_str);
            Some(ListKind::Map(fields.map(kctl_cel::escape).collect()))
        }
        _ => None,
    }
}

/// Parses a timestamp; `None` if it is invalid.
fn time(text: &str) -> Option<Cel> {
    kctl_apimachinery::time::parse_with_offset(text).and_then(|(since_1970, minutes)| timestamp(since_1970, minutes))
}
