//! From a value of a Go type to the JSON that Karmada writes.

use serde_json::{Map, Value};

use super::{
    table::{self, Field, Omitted, Type},
    time,
};

/// Encodes a value of a type (`toUnstructured` in `k8s.io/apimachinery/pkg/runtime/converter.go`).
pub(super) fn encode(r#type: &Type, value: Value) -> Value {
    match (r#type, value) {
        (_, Value::Null) => Value::Null,
        (Type::Pointer(inner), value) => encode(inner, value),
        (Type::List(item), Value::Array(items)) => items.into_iter().map(|value| encode(item, value)).collect(),
        (Type::Map(item), Value::Object(entries)) => {
            entries.into_iter().map(|(name, value)| (name, encode(item, value))).collect()
        }
        (Type::Struct(name), Value::Object(value)) => encode_struct(table::fields(name), value),
        (Type::Time, Value::String(text)) => time::to_the_second(&text).into(),
        (_, value) => value,
    }
}

fn encode_struct(fields: &[Field], value: Map<String, Value>) -> Value {
    let mut encoded = Vec::with_capacity(value.len());
    let mut is_given = vec![false; fields.len()];
    for (name, value) in value {
        let Some(at) = fields.iter().position(|field| field.name == name) else { continue };
        is_given[at] = true;
        if !is_omitted(&fields[at], &value) {
            encoded.push((name, encode(&fields[at].r#type, value)));
        }
    }
    let nil = fields.iter().zip(is_given).filter(|(field, is_given)| !is_given && !is_omitted(field, &Value::Null));
    encoded.extend(nil.map(|(field, _)| (field.name.to_owned(), Value::Null)));
    Value::Object(encoded.into_iter().collect())
}

fn is_omitted(field: &Field, value: &Value) -> bool {
    match field.omitted {
        Omitted::Never => false,
        Omitted::Empty => is_empty(&field.r#type, value),
        Omitted::Zero => super::is_same(value, &table::zero(&field.r#type)),
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
