//! Decodes the body of a request into an object of its kind: rejects wrong types, and drops unknown fields and returns
//! their paths.
//!
//! Bodies go through `body` (bytes to JSON), then `decode_typed` (JSON to the Go type of a built-in kind), or through
//! `crd` for a custom kind. Decoding imitates Go's `encoding/json`: it drops nulls, and reports wrong types with their
//! path.

mod duplicates;
mod repair;
mod scalar;
mod type_check;
mod yaml;

use serde_json::{Map, Value};

pub(crate) use self::{
    duplicates::duplicates,
    type_check::type_error,
    yaml::{differs_as_yaml, parse_yaml},
};
use crate::{go, json_path::JsonPath, proto, schema::Schema};

/// The number of nested lists and maps that are read. kube-apiserver reads 10,000 levels, which would not fit on the
/// stack of every thread that visits an object. A deeper body is a decoding error.
pub(crate) const DEPTH_MAX: usize = 127;

/// The number of duplicate fields, and of unknown fields, whose paths are reported (`saveStrictError` of
/// `sigs.k8s.io/json`). A path repeats the keys above it, so the paths of a small body could take gigabytes.
pub(crate) const REPORTED_LEN_MAX: usize = 100;

/// Decodes a body of any media type into JSON. `kind` is the expected kind, for error messages. JSON and YAML are only
/// checked for `apiVersion` and `kind` here; [`decode_typed`] checks the fields. Protobuf is decoded by the messages of
/// its kind. The media type is compared without parameters and case. A `null` body is accepted; callers treat it as an
/// empty object.
///
/// # Errors
/// Fails if the body cannot be parsed, or if `apiVersion` or `kind` is not a string. A protobuf body also fails if its
/// kind is not built in.
pub(crate) fn body(content_type: &str, bytes: &[u8], kind: &str) -> Result<Value, String> {
    let unrecognized = |why: String| format!("the body must be a {kind}: {why}");
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == proto::MEDIA_TYPE {
        return proto::decode(bytes).map_err(unrecognized);
    }
    let value = if media == "application/yaml" {
        let text = std::str::from_utf8(bytes).map_err(|error| unrecognized(error.to_string()))?;
        parse_yaml(text).map_err(unrecognized)?.value
    } else {
        json(bytes).map_err(unrecognized)?
    };
    check_type_meta(&value).map_err(unrecognized)?;
    Ok(value)
}

/// Parses JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, String> {
    let read = serde_json::from_slice(bytes).or_else(|_| serde_json::from_slice(&repair::repair_json(bytes)));
    read.map_err(|error| format!("invalid JSON: {error}"))
}

/// Returns the message of a YAML error without the excerpt of the document.
pub(crate) fn first_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// Checks that kind and version of an object can be read. Field names are compared without case, as Go does.
pub(crate) fn check_type_meta(value: &Value) -> Result<(), String> {
    let Value::Object(map) = value else {
        return if value.is_null() { Ok(()) } else { Err(type_error("body", "an object", value)) };
    };
    for field in ["apiVersion", "kind"] {
        let mut candidates = map.iter().filter(|(name, _)| name.eq_ignore_ascii_case(field));
        if let Some((_, wrong)) = candidates.find(|(_, value)| !value.is_string() && !value.is_null()) {
            return Err(type_error(field, "a string", wrong));
        }
    }
    Ok(())
}

/// Decodes an object into its built-in type: removes nulls, and drops unknown fields. Returns the paths of the first
/// [`REPORTED_LEN_MAX`] dropped fields, in order. Parts that equal the stored object were decoded before and are
/// skipped. `integers` decides about numbers that are too large for their type. On an error the object may be partly
/// decoded; callers discard it.
pub(crate) fn decode_typed(
    schema: Schema<'_>,
    object: &mut Value,
    stored: Option<&Value>,
    integers: Integers,
) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { unknown: Vec::new(), integers };
    decoder.fields(schema, object, stored, &JsonPath::Root)?;
    Ok(decoder.unknown)
}

/// Checks that the metadata of a custom object fits its type.
///
/// # Errors
/// Fails with the first value of a wrong type.
pub(crate) fn typed_metadata(metadata: &Value) -> Result<(), String> {
    let Some(schema) = Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else { return Ok(()) };
    let path = JsonPath::Field(&JsonPath::Root, "metadata");
    if !metadata.is_object() && !metadata.is_null() {
        return Err(type_error(&path.to_string(), "an object", metadata));
    }
    // `crd::prune` drops and returns unknown fields.
    let mut decoder = Decoder { unknown: Vec::new(), integers: Integers::InRange };
    decoder.fields(schema, &mut metadata.clone(), None, &path)
}

/// Drops fields from the metadata of a custom object that do not fit its type (`GetObjectMeta` with
/// `DropMalformedFields`). Whole fields are dropped: one bad label drops all labels.
pub(crate) fn drop_malformed(metadata: &mut Value) {
    if let Value::Object(fields) = metadata {
        fields.retain(|name, value| typed_metadata(&serde_json::json!({ name.clone(): value.clone() })).is_ok());
    }
}

/// Normalizes the metadata of a custom object as its Go type does: drops nulls and empty fields. Only an empty
/// `managedFields` list is kept, because it turns off field tracking.
pub(crate) fn normalize_metadata(metadata: &mut Value) {
    let Some(schema) = Schema::for_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else { return };
    let mut decoder = Decoder { unknown: Vec::new(), integers: Integers::InRange };
    // Values of a wrong type were rejected earlier.
    let _fits = decoder.fields(schema, metadata, None, &JsonPath::Root);
    if let Value::Object(fields) = metadata {
        fields.retain(|name, value| name == "managedFields" || !go::is_zero(value));
    }
}

/// The integers that a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integers {
    /// Integers in the range of the field's type: used when JSON is decoded.
    InRange,
    /// All integers: larger ones are truncated. Used when a patch is applied to a Go type (`converter.go` of
    /// `k8s.io/apimachinery/pkg/runtime`).
    Wrapped,
}

/// The state of decoding one object.
struct Decoder {
    /// The paths of unknown fields. Invariant: at most [`REPORTED_LEN_MAX`].
    unknown: Vec<String>,
    /// The treatment of integers that are too large.
    integers: Integers,
}

impl Decoder {
    /// Decodes the fields of an object.
    fn fields(
        &mut self,
        schema: Schema<'_>,
        value: &mut Value,
        stored: Option<&Value>,
        path: &JsonPath<'_>,
    ) -> Result<(), String> {
        let Value::Object(map) = value else { return Ok(()) };
        let mut gone = Vec::new();
        let mut has_null = false;
        for (name, value) in map.iter_mut() {
            if value.is_null() && schema.property(name).is_some() {
                has_null = true;
                continue;
            }
            let stored = stored.and_then(|stored| stored.get(name));
            if stored == Some(value) {
                continue;
            }
            let path = JsonPath::Field(path, name);
            if let Some(field) = schema.property(name) {
                self.value(field, value, stored, &path)?;
            } else {
                self.record(&path);
                gone.push(name.clone());
            }
        }
        if has_null {
            map.retain(|_, value| !value.is_null());
        }
        for name in &gone {
            map.remove(name);
        }
        Ok(())
    }

    /// Records an unknown field.
    fn record(&mut self, path: &JsonPath<'_>) {
        if self.unknown.len() < REPORTED_LEN_MAX {
            self.unknown.push(path.to_string());
        }
    }

    /// Decodes an integer. Go decodes `-0` into one, too.
    fn integer(&self, schema: Schema<'_>, value: &mut Value) {
        let is_zero = |number: f64| number.to_bits() == (-0.0_f64).to_bits();
        if value.as_f64().is_some_and(is_zero) {
            *value = 0.into();
        }
        if self.integers == Integers::Wrapped {
            wrap(value, schema.format());
        }
    }

    /// Decodes a value.
    fn value(
        &mut self,
        schema: Schema<'_>,
        value: &mut Value,
        stored: Option<&Value>,
        path: &JsonPath<'_>,
    ) -> Result<(), String> {
        // Any JSON (`RawExtension.UnmarshalJSON` of `k8s.io/apimachinery/pkg/runtime/extension.go`).
        if schema.reference() == Some("RawExtension") {
            return Ok(());
        }
        if schema.type_name() == Some("integer") {
            self.integer(schema, value);
        }
        if schema.format() == Some("byte") {
            bytes(value, path)?;
        }
        type_check::check(schema, value, path)?;
        match value {
            // This type has no fields, but does not accept arbitrary values.
            Value::Object(fields) if schema.reference() == Some("CustomResourceSubresourceStatus") => {
                fields.keys().for_each(|name| self.record(&JsonPath::Field(path, name)));
                fields.clear();
            }
            Value::Object(_) if schema.has_properties() => return self.fields(schema, value, stored, path),
            Value::Object(map) => {
                let Some(values) = schema.additional_properties() else { return Ok(()) };
                for (key, value) in map.iter_mut() {
                    if value.is_null() {
                        *value = zero(values);
                    }
                    self.value(values, value, None, &JsonPath::Field(path, key))?;
                }
            }
            Value::Array(items) => {
                let Some(of_items) = schema.items() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = zero(of_items);
                    }
                    let stored = stored.and_then(|stored| stored.get(index));
                    if stored != Some(item) {
                        self.value(of_items, item, stored, &JsonPath::Item(path, index))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Decodes base64 as Go does, which encodes it again without line ends.
fn bytes(value: &mut Value, path: &JsonPath<'_>) -> Result<(), String> {
    match value {
        Value::String(text) if text.contains(['\r', '\n']) => text.retain(|letter| !['\r', '\n'].contains(&letter)),
        Value::Array(_) => *value = type_check::bytes(value, path)?,
        _ => {}
    }
    Ok(())
}

/// Truncates an integer that is too large for its field to the lower bits, as conversions of Go do.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "that is the point")]
fn wrap(value: &mut Value, format: Option<&str>) {
    match (value.as_i64(), value.as_u64()) {
        (Some(number), _) if format == Some("int32") => *value = (number as i32).into(),
        (None, Some(number)) if format != Some("int32") => *value = (number as i64).into(),
        _ => {}
    }
}

/// Returns the value of a null in a list or a map: the zero value of the type, which is null for a Go pointer, slice or
/// map. An object with fields becomes an empty one.
fn zero(schema: Schema<'_>) -> Value {
    match (schema.reference(), schema.type_name()) {
        (Some("Quantity"), _) => "0".into(),
        (Some("Time" | "MicroTime" | "RawExtension" | "JSON"), _) => Value::Null,
        (_, Some("string")) => "".into(),
        (_, Some("boolean")) => false.into(),
        (_, Some("integer" | "number")) => 0.into(),
        (_, Some("object")) if schema.has_properties() => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(api: &str, kind: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
        let unknown = decode_typed(Schema::built_in(api, kind).unwrap(), &mut object, None, Integers::InRange)?;
        Ok((object, unknown))
    }

    #[track_caller]
    fn check_type_error(api: &str, kind: &str, object: Value, path: &str) {
        let message = check(api, kind, object).unwrap_err();
        assert!(message.starts_with(&format!("{path}: ")), "{message}");
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let pod = json!({
            "metadata": { "name": "d", "foo": 1 },
            "spec": { "bar": 1, "containers": [{ "name": "a", "x": 1 }], "nodeName": null },
        });
        let (pod, unknown) = check("v1", "Pod", pod).unwrap();
        assert_eq!(unknown, ["metadata.foo", "spec.bar", "spec.containers[0].x"]);
        assert_eq!(pod, json!({ "metadata": { "name": "d" }, "spec": { "containers": [{ "name": "a" }] } }));
    }

    #[test]
    fn first_hundred_unknown_fields_are_named() {
        let fields: Map<String, Value> = (0..150).map(|n| (format!("f{n}"), n.into())).collect();
        let (pod, unknown) = check("v1", "Pod", json!({ "spec": fields })).unwrap();
        assert_eq!(unknown.len(), REPORTED_LEN_MAX);
        assert_eq!(pod, json!({ "spec": {} }));
    }

    #[test]
    fn wrong_types_are_rejected_with_their_path() {
        let containers = |containers: Value| json!({ "template": { "spec": { "containers": containers } } });
        for (spec, path) in [
            (json!({ "replicas": "3" }), "spec.replicas"),
            (json!({ "replicas": 3.5 }), "spec.replicas"),
            (containers(json!([{ "name": 1 }])), "spec.template.spec.containers[0].name"),
            (containers(json!({})), "spec.template.spec.containers"),
            (json!([]), "spec"),
            (json!({ "paused": "x" }), "spec.paused"),
        ] {
            check_type_error("apps/v1", "Deployment", json!({ "spec": spec }), path);
        }
        check_type_error("v1", "Secret", json!({ "data": { "a": "?" } }), "data.a");
        check_type_error("v1", "Event", json!({ "lastTimestamp": 1 }), "lastTimestamp");
        check_type_error("v1", "ConfigMap", json!({ "data": { "a": 1 } }), "data.a");
    }

    #[test]
    fn quantities_and_ports_may_be_numbers() {
        let service = json!({ "spec": { "ports": [{ "port": 80, "targetPort": 8080 }] } });
        check("v1", "Service", service).unwrap();
        let pod = json!({ "spec": { "containers": [{ "name": "a", "resources": { "limits": { "cpu": 1 } } }] } });
        check("v1", "Pod", pod).unwrap();
    }
}
