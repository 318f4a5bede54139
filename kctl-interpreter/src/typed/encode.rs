//! Encoding: turns a value of a Go type into the JSON that Karmada writes.

use serde_json::{Map, Value};

use super::{
    table::{self, Field, Omitted, Type},
    time,
};

/// Encodes a value of a type (`toUnstructured` in `k8s.io/apimachinery/pkg/runtime/converter.go`).
pub(super) fn encode(r#type: &Type, mut value: Value) -> Value {
    encode_in_place(r#type, &mut value);
    value
}

/// Encodes a value in place, by removing the fields that are left out. Most fields are kept, so this takes a third of
/// the time that building a new value takes.
fn encode_in_place(r#type: &Type, value: &mut Value) {
    match (r#type, value) {
        (Type::Pointer(inner), value) => encode_in_place(inner, value),
        (Type::List(item), Value::Array(items)) => items.iter_mut().for_each(|value| encode_in_place(item, value)),
        (Type::Map(item), Value::Object(entries)) => {
            entries.values_mut().for_each(|value| encode_in_place(item, value));
        }
        (Type::Struct(name), Value::Object(value)) => encode_struct(table::fields(name), value),
        (Type::Time, Value::String(text)) => *text = time::to_the_second(text),
        _ => {}
    }
}

/// Removes fields that their tag leaves out, and adds nil fields without such a tag as null.
fn encode_struct(fields: &[Field], value: &mut Map<String, Value>) {
    // Computed first: a field that `omitempty` removes below was present, so it must not be added as null.
    let is_nil = |field: &&Field| !is_omitted(field, &Value::Null) && !value.contains_key(field.name);
    let nil: Vec<&Field> = fields.iter().filter(is_nil).collect();
    value.retain(|name, value| {
        let field = fields.iter().find(|field| field.name == name).filter(|field| !is_omitted(field, value));
        field.is_some_and(|field| {
            encode_in_place(&field.r#type, value);
            true
        })
    });
    value.extend(nil.into_iter().map(|field| (field.name.to_owned(), Value::Null)));
}

/// Returns `true` if the tag of the field leaves this value out.
fn is_omitted(field: &Field, value: &Value) -> bool {
    match field.omitted {
        Omitted::Never => false,
        Omitted::Empty => is_empty(&field.r#type, value),
        Omitted::Zero => super::is_same(value, &table::zero(&field.r#type)),
    }
}

/// Returns `true` if `omitempty` leaves the value out. A time, a quantity and an `IntOrString` are
/// structs in Go, which are never left out.
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
