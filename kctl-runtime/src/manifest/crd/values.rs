//! Makes an API server accept only values that the Rust type can read: bounds of integers, known formats, and null in
//! addition to allowed values.
//!
//! Measured with kube-apiserver 1.36.3:
//!
//! - It never accepts null next to `enum`, even with null among the values, but does so if `enum` is below `allOf`.
//! - It warns about every format that it does not know.
//! - It rejects every value of an integer whose bound is outside of the format.

use serde_json::{Map, Value, json};

use crate::markers::{FORMAT, allowed_values};

/// An IPv4 address as Rust reads it. API servers also accept leading zeros (`010.0.0.1`) and
/// `::ffff:10.0.0.1` for `format: ipv4`.
pub(super) const IPV4: &str =
    r"^(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}$";
/// A UUID with all its hyphens or without any. API servers accept any subset of them.
pub(super) const UUID: &str = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$|^[0-9a-fA-F]{32}$";
/// A URI with a scheme. API servers accept a path for `format: uri`.
pub(super) const URI: &str = "^[A-Za-z][A-Za-z0-9+.-]*:";

/// Formats of strings that API servers check. They ignore all others, and `password` accepts every string
/// (apiextensions-apiserver, `pkg/apiserver/validation/formats.go`, `supportedVersionedFormats`).
pub(super) const TEXT_FORMATS: [&str; 25] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// The integer formats of schemars, the bounds of their types, and the formats that API servers know.
///
/// API servers read no integer beyond 64 bits with a sign.
const INTEGERS: [(&str, Option<i64>, Option<i64>, &str); 11] = [
    ("int8", Some(-128), Some(127), "int32"),
    ("int16", Some(-32_768), Some(32_767), "int32"),
    ("int32", None, None, "int32"),
    ("int128", None, None, "int64"),
    ("int", None, None, "int64"),
    ("uint8", Some(0), Some(255), "int32"),
    ("uint16", Some(0), Some(65_535), "int32"),
    ("uint32", Some(0), Some(4_294_967_295), "int64"),
    ("uint64", Some(0), None, "int64"),
    ("uint128", Some(0), None, "int64"),
    ("uint", Some(0), None, "int64"),
];

/// Greatest bound with which an API server can compare an `int64`: the float below 2⁶³. With a larger one it
/// rejects every value.
pub(super) const INT64_BOUND_MAX: f64 = 9_223_372_036_854_774_784.0;

/// Returns bounds and format of an integer type, by the format that schemars prints.
pub(super) fn integer(format: &str) -> Option<(Option<i64>, Option<i64>, &'static str)> {
    INTEGERS.iter().find(|(name, ..)| *name == format).map(|(_, low, high, format)| (*low, *high, *format))
}

/// Returns `true` if an API server knows the format of a string. It warns about every other and ignores it.
pub(super) fn is_known_format(format: &str) -> bool {
    let name = format.replace('-', "");
    TEXT_FORMATS.contains(&name.as_str()) || name == "password"
}

/// The origin of the formats in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Formats {
    /// Printed by schemars: a format comes from the Rust type, unless a marker set it.
    OfTypes,
    /// Left by kube's derive: a format may be the user's choice.
    Unknown,
}

/// Completes a schema and all below it. A second call changes nothing.
///
/// Without this, an API server would store values that the controller then cannot read: `300` for a `u8`, `010.0.0.1`
/// for an `Ipv4Addr`. Such an object would disappear from the cache, and with a finalizer its deletion would hang.
pub(super) fn complete(schema: &mut Value, formats: Formats) {
    each_below(schema, &mut |below| complete(below, formats));
    let Some(schema) = schema.as_object_mut() else { return };
    integers(schema);
    replace_string_formats(schema, formats);
    nulls(schema);
}

/// Visits the schemas directly below one.
fn each_below(schema: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        fields.values_mut().for_each(&mut *visit);
    }
    for key in ["items", "additionalProperties", "not"] {
        schema.get_mut(key).filter(|below| below.is_object()).into_iter().for_each(&mut *visit);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut *visit);
    }
}

/// Returns `true` if the type, or one of several, is this one.
fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        Some(one) => one == name,
        None => false,
    }
}

/// Adds the bounds and the known format of an integer type.
///
/// Bounds outside of the format are removed, because the format implies them and an API server would
/// reject every value.
fn integers(schema: &mut Map<String, Value>) {
    if !has_type(schema, "integer") {
        return;
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if let Some((low, high, json_format)) = integer(format) {
        tighten_bound(schema, "minimum", "exclusiveMinimum", low, f64::lt);
        tighten_bound(schema, "maximum", "exclusiveMaximum", high, f64::gt);
        schema.insert("format".into(), json_format.into());
    }
    let is_int32 = schema.get("format").is_some_and(|format| format == "int32");
    let (low, high) =
        if is_int32 { (f64::from(i32::MIN), f64::from(i32::MAX)) } else { (-INT64_BOUND_MAX, INT64_BOUND_MAX) };
    // The format implies the bound, and an API server that compares a bound beyond the type rejects every value.
    for (key, exclusive, is_open) in [
        ("minimum", "exclusiveMinimum", schema.get("minimum").and_then(Value::as_f64).is_some_and(|bound| bound < low)),
        (
            "maximum",
            "exclusiveMaximum",
            schema.get("maximum").and_then(Value::as_f64).is_some_and(|bound| bound > high),
        ),
    ] {
        if is_open {
            schema.remove(key);
            schema.remove(exclusive);
        }
    }
}

/// Sets a bound unless a narrower one is present.
#[expect(clippy::cast_precision_loss, reason = "bounds of types of up to 32 bits are exact")]
fn tighten_bound(
    schema: &mut Map<String, Value>,
    key: &str,
    exclusive: &str,
    bound: Option<i64>,
    is_wider: fn(&f64, &f64) -> bool,
) {
    let Some(bound) = bound else { return };
    let given = schema.get(key).and_then(Value::as_f64);
    if given.is_none_or(|given| is_wider(&given, &(bound as f64))) {
        schema.insert(key.into(), bound.into());
        schema.remove(exclusive);
    }
}

/// Replaces formats of strings that API servers don't know or read more loosely than Rust does.
fn replace_string_formats(schema: &mut Map<String, Value>, formats: Formats) {
    let is_own = schema.remove(FORMAT).is_some();
    if is_own || !has_type(schema, "string") {
        return;
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default().to_owned();
    if format == "ip" {
        schema.remove("format");
        require(schema, json!({ "anyOf": [{ "pattern": IPV4 }, { "format": "ipv6" }] }));
        return;
    }
    if formats == Formats::OfTypes {
        match format.as_str() {
            "ipv4" => require(schema, json!({ "pattern": IPV4 })),
            "uuid" => require(schema, json!({ "pattern": UUID })),
            "uri" => require(schema, json!({ "pattern": URI })),
            _ => {}
        }
    }
    if !format.is_empty() && !is_known_format(&format) {
        schema.remove("format");
    }
}

/// Adds a restriction next to the existing ones.
///
/// A keyword that is already there is not overwritten: the restriction goes below `allOf`, so both hold.
fn require(schema: &mut Map<String, Value>, more: Value) {
    let Value::Object(fields) = &more else { return };
    if fields.iter().all(|(key, value)| schema.get(key) == Some(value)) {
        return;
    }
    if fields.keys().any(|key| schema.contains_key(key)) {
        let all = schema.entry("allOf").or_insert_with(|| json!([]));
        if let Value::Array(all) = all
            && !all.contains(&more)
        {
            all.push(more);
        }
    } else {
        schema.extend(fields.clone());
    }
}

/// Makes an `Option` of an enum nullable in the one form that API servers accept.
fn nulls(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(all)) = schema.get("anyOf")
        && let [Value::Object(value), null] = all.as_slice()
        && is_null(null)
        && let Some((name, allowed)) = allowed_values(value)
    {
        let mut value = value.clone();
        value.remove("oneOf");
        value.insert("type".into(), name);
        value.insert("enum".into(), allowed.into());
        value.insert("nullable".into(), true.into());
        schema.remove("anyOf");
        for (key, value) in value {
            schema.entry(key).or_insert(value);
        }
    }
    let Some(Value::Array(allowed)) = schema.get_mut("enum") else { return };
    if allowed.iter().all(Value::is_null) {
        return;
    }
    allowed.retain(|value| !value.is_null());
    if let Some(Value::Array(types)) = schema.get_mut("type")
        && types.iter().any(|name| name == "null")
    {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            schema.insert("type".into(), name);
        }
        schema.insert("nullable".into(), true.into());
    }
    if schema.get("nullable").is_some_and(|nullable| nullable == true)
        && let Some(allowed) = schema.remove("enum")
    {
        // An `enum` next to `nullable: true` rejects null; one below `allOf` is not compared with null.
        require(schema, json!({ "allOf": [{ "enum": allowed }] }));
    }
}

/// Returns `true` for the schema of null alone.
pub(super) fn is_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema["enum"] == json!([null]) || schema.get("const") == Some(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "each case builds its own schema")]
    fn check(before: Value, after: &Value) {
        let mut schema = before.clone();
        complete(&mut schema, Formats::OfTypes);
        assert_eq!(schema, *after, "{before}");
        complete(&mut schema, Formats::Unknown);
        assert_eq!(schema, *after, "a second time: {before}");
    }

    #[test]
    fn integers_get_bounds_and_a_known_format() {
        let int = |format: &str| json!({ "type": "integer", "format": format });
        for (before, after) in [
            (int("uint8"), json!({ "type": "integer", "format": "int32", "minimum": 0, "maximum": 255 })),
            (
                int("uint32"),
                json!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": 4_294_967_295_u32 }),
            ),
            (int("uint64"), json!({ "type": "integer", "format": "int64", "minimum": 0 })),
            (int("uint"), json!({ "type": "integer", "format": "int64", "minimum": 0 })),
            (int("int8"), json!({ "type": "integer", "format": "int32", "minimum": -128, "maximum": 127 })),
            (int("int"), int("int64")),
            (int("int32"), int("int32")),
            (
                json!({ "type": ["integer", "null"], "format": "uint16", "minimum": 1, "maximum": 9 }),
                json!({ "type": ["integer", "null"], "format": "int32", "minimum": 1, "maximum": 9 }),
            ),
            (
                json!({ "type": "integer", "format": "uint8", "maximum": 300, "exclusiveMaximum": true }),
                json!({ "type": "integer", "format": "int32", "minimum": 0, "maximum": 255 }),
            ),
            (json!({ "type": "integer", "format": "int64", "maximum": i64::MAX, "minimum": i64::MIN }), int("int64")),
            (json!({ "type": "integer", "format": "int32", "maximum": 3_000_000_000_u32 }), int("int32")),
        ] {
            check(before, &after);
        }
    }

    #[test]
    fn unknown_formats_become_patterns_or_are_removed() {
        let text = |format: &str| json!({ "type": "string", "format": format });
        check(text("ip"), &json!({ "type": "string", "anyOf": [{ "pattern": IPV4 }, { "format": "ipv6" }] }));
        check(text("ipv4"), &json!({ "type": "string", "format": "ipv4", "pattern": IPV4 }));
        check(text("ipv6"), &text("ipv6"));
        check(text("zoned-date-time"), &json!({ "type": "string" }));
        check(
            json!({ "type": "string", "format": "ipv4", "pattern": "^10" }),
            &json!({ "type": "string", "format": "ipv4", "pattern": "^10", "allOf": [{ "pattern": IPV4 }] }),
        );
    }

    #[test]
    fn nullable_enum_moves_below_all_of() {
        let after = json!({ "type": "string", "nullable": true, "allOf": [{ "enum": ["A", "B"] }] });
        for before in [
            json!({ "type": ["string", "null"], "enum": ["A", "B", null] }),
            json!({ "anyOf": [{ "type": "string", "enum": ["A", "B"] }, { "type": "null" }] }),
            json!({ "anyOf": [{ "oneOf": [
                { "type": "string", "const": "A", "description": "First." },
                { "type": "string", "enum": ["B"] },
            ] }, { "type": "null" }] }),
            json!({ "type": "string", "enum": ["A", "B"], "nullable": true }),
            json!({ "type": "string", "enum": ["A", "B", null], "nullable": true }),
        ] {
            check(before, &after);
        }
        check(json!({ "type": "string", "enum": ["A", null] }), &json!({ "type": "string", "enum": ["A"] }));
    }
}
