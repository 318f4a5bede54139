//! From a value of a Go type to the JSON that Karmada writes.

use serde_json::{Map, Value};

use super::{
    table::{self, Omitted, Type},
    time,
};

/// Encodes a value of a type (`toUnstructured` in `k8s.io/apimachinery/pkg/runtime/converter.go`).
pub(super) fn encode(r#type: &Type, value: &Value) -> Value {
    match (r#type, value) {
        (_, Value::Null) => Value::Null,
        (Type::Pointer(inner), value) => encode(inner, value),
        (Type::List(item), Value::Array(items)) => items.iter().map(|value| encode(item, value)).collect(),
        (Type::Map(item), Value::Object(entries)) => {
            entries.iter().map(|(name, value)| (name.clone(), encode(item, value))).collect()
        }
        (Type::Struct(name), Value::Object(value)) => {
            let mut encoded = Map::new();
            for field in table::fields(name) {
                let value = value.get(field.name).unwrap_or(&Value::Null);
                let omitted = match field.omitted {
                    Omitted::Never => false,
                    Omitted::Empty => is_empty(&field.r#type, value),
                    Omitted::Zero => *value == table::zero(&field.r#type),
                };
                if !omitted {
                    encoded.insert(field.name.to_owned(), encode(&field.r#type, value));
                }
            }
            Value::Object(encoded)
        }
        (Type::Time, Value::String(text)) => time::to_the_second(text).into(),
        (_, value) => value.clone(),
    }
}

/// Tells whether `omitempty` leaves a value out. A struct never is; a time, a quantity and a port are structs.
fn is_empty(r#type: &Type, value: &Value) -> bool {
    match r#type {
        Type::Struct(_) | Type::Quantity | Type::Time | Type::IntOrString => false,
        Type::Pointer(_) | Type::Any => value.is_null(),
        Type::Bool => *value == Value::Bool(false),
        Type::Int32 | Type::Int64 => value.as_i64() == Some(0),
        Type::String => value.as_str().is_none_or(str::is_empty),
        Type::List(_) => value.as_array().is_none_or(Vec::is_empty),
        Type::Map(_) => value.as_object().is_none_or(Map::is_empty),
    }
}
