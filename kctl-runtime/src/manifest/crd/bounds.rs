//! Reports schemas that API servers accept although nothing can be stored: contradictory bounds, bounds that
//! do not suit the type, and required fields that do not exist.
//!
//! An API server checks a schema only for its form. `minLength` of a number has no effect, and `minimum: 5` with
//! `maximum: 1` rejects every object. Both are mistakes of the author, found here when the CRD is printed instead of by
//! the first user who creates an object.

use serde_json::Value;

use super::{
    Problem,
    values::{INT64_BOUND_MAX, is_known_format},
};

/// Keywords, and the types that they apply to.
const ABOUT: [(&str, &[&str]); 10] = [
    ("maximum", &["integer", "number"]),
    ("minimum", &["integer", "number"]),
    ("multipleOf", &["integer", "number"]),
    ("maxLength", &["string"]),
    ("minLength", &["string"]),
    ("pattern", &["string"]),
    ("maxItems", &["array"]),
    ("minItems", &["array"]),
    ("maxProperties", &["object"]),
    ("minProperties", &["object"]),
];

/// Checks a schema and all below it. `path` is the place in the object, empty for the object itself.
pub(super) fn check(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let display_path = if path.is_empty() { "the object" } else { path };
    let mut push = |what: String, help: &str| problems.push(Problem::new(display_path, what, help));
    let name = schema["type"].as_str().unwrap_or_default();
    for (key, types) in ABOUT {
        if !schema[key].is_null() && !name.is_empty() && !types.contains(&name) {
            let what = format!("`{key}` has no effect on a value of type {name}");
            push(what, "remove it, or write it in `items(…)` or `values(…)`");
        }
    }
    check_ranges(schema, &mut push);
    check_formats(schema, &mut push);
    let default = &schema["default"];
    if schema["x-kubernetes-int-or-string"] == true && !(default.is_null() || default.is_i64() || default.is_string()) {
        push(format!("the default {default} is neither an integer nor a string"), "write an integer or a string");
    }
    check_numbers_and_enums(schema, name, &mut push);
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let is_open =
            schema["x-kubernetes-preserve-unknown-fields"] == true || !schema["additionalProperties"].is_null();
        let is_meta = path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&required);
        if name == "object" && schema["properties"].get(required).is_none() && !is_open && !is_meta {
            push(format!("`{required}` is required but no field"), "add the field, or do not require it");
        }
    }
    for (field, below) in schema["properties"].as_object().into_iter().flatten() {
        check(below, &if path.is_empty() { field.clone() } else { format!("{path}.{field}") }, problems);
    }
    for (key, end) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            check(&schema[key], &format!("{path}{end}"), problems);
        }
    }
}

/// Reports pairs of bounds that no value is between.
fn check_ranges(schema: &Value, push: &mut impl FnMut(String, &str)) {
    for (low, high) in [
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ] {
        let (Some(low_value), Some(high_value)) = (schema[low].as_f64(), schema[high].as_f64()) else { continue };
        let is_open = low == "minimum" && (schema["exclusiveMinimum"] == true || schema["exclusiveMaximum"] == true);
        if low_value > high_value || (is_open && low_value >= high_value) {
            push(
                format!("no value has {low} {low_value} and {high} {high_value}"),
                "make the upper bound the larger one",
            );
        }
    }
}

/// Reports bounds of an integer that are not whole numbers, and an enum without a value of the type.
fn check_numbers_and_enums(schema: &Value, name: &str, push: &mut impl FnMut(String, &str)) {
    if name == "integer" {
        for key in ["minimum", "maximum", "multipleOf"] {
            if schema[key].as_f64().is_some_and(|bound| bound.fract() != 0.0) {
                push(format!("{key} {} of an integer is not a whole number", schema[key]), "write a whole number");
            }
        }
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !name.is_empty()
    {
        let fits = |value: &Value| match name {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => true,
        };
        if !allowed.is_empty() && !allowed.iter().any(fits) {
            push(format!("no allowed value is of type {name}"), "write values of the type of the field");
        }
    }
}

/// Reports formats that no API server knows, and bounds outside of a number's format, for which API servers
/// reject every value.
fn check_formats(schema: &Value, push: &mut impl FnMut(String, &str)) {
    let (format, end) = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("integer"), Some("int32")) => ("int32", f64::from(i32::MAX)),
        (Some("integer"), _) => ("int64", INT64_BOUND_MAX),
        (Some("number"), Some("float")) => ("float", f64::from(f32::MAX)),
        (Some("string"), Some(format)) if !format.is_empty() && !is_known_format(format) => {
            let what = format!("API servers do not know the format `{format}`: they ignore it, and warn at each apply");
            return push(what, "write `pattern = \"…\"`, or leave `format` out");
        }
        _ => return,
    };
    for key in ["minimum", "maximum"] {
        if schema[key].as_f64().is_some_and(|bound| bound > end || bound < -end - 1.0) {
            let what =
                format!("{key} {} is out of the range of {format}, and API servers reject every value", schema[key]);
            push(what, "write a bound within the range of the type, or remove it");
        }
    }
}
