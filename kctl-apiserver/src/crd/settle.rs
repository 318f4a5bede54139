//! Writes the schemas of a `CustomResourceDefinition` as their type in Go does: what is zero is left out, and numbers that are whole
//! have no point.
//!
//! Upstream: `JSONSchemaProps` of apiextensions.k8s.io/v1, and the conversion of its values to the internal version and back.

use serde_json::Value;

const LEFT_OUT: [&str; 23] = [
    "id",
    "$schema",
    "description",
    "type",
    "format",
    "title",
    "pattern",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "uniqueItems",
    "nullable",
    "enum",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "properties",
    "patternProperties",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
];

/// Settles the schemas of all versions.
pub(super) fn definition(definition: &mut Value) {
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            settle(schema);
        }
    }
}

fn settle(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|key, value| !(LEFT_OUT.contains(&key.as_str()) && is_zero(value)));
    for (key, value) in fields {
        match key.as_str() {
            "default" | "example" | "enum" => whole_numbers(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array_mut().into_iter().flatten().for_each(settle),
            "items" if value.is_array() => value.as_array_mut().into_iter().flatten().for_each(settle),
            "not" | "items" | "additionalProperties" | "additionalItems" => settle(value),
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, below)| settle(below));
            }
            _ => {}
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole, and within the range of an i64")]
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0 && float.abs() < 9e18);
            if let Some(float) = float {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
