//! From the body of a request to an object of its kind: wrong types are refused, unknown fields are dropped and named.

mod duplicates;
mod go_types;
mod lenient;
mod path;
mod scalar;
mod syntax;
mod times;
mod unrepeated;
mod wrong;
mod yaml;

use serde_json::{Map, Value};

use self::path::Path;
pub(crate) use self::{
    duplicates::duplicates,
    unrepeated::unrepeated,
    wrong::illegal_base64,
    yaml::{is_other_in_yaml, yaml},
};
use crate::{
    go::json_type,
    proto::{self, ProtoError},
    schema::Schema,
};

/// As much of a body as an error shows (`summarizeData` in `k8s.io/apiserver/pkg/endpoints/handlers/rest.go`).
const SHOWN_LEN_MAX: usize = 30;

/// Levels of lists and maps that are read; the real server reads 10,000, which would not fit on the stack of every thread that
/// looks at an object.
pub(crate) const DEPTH_MAX: usize = 127;

/// Reads a body by its content type.
pub(crate) fn body(content_type: &str, bytes: &[u8], kind: &str) -> Result<Value, String> {
    let unrecognized = |why: String| format!("the object provided is unrecognized (must be of type {kind}): {why}");
    let media = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media == proto::MEDIA_TYPE {
        return proto::decode(bytes).map_err(|error| match error {
            ProtoError::EnvelopeBroken(why) => unrecognized(format!("{why} ({})", summary(bytes))),
            ProtoError::ObjectBroken { api_version, kind: found, why } => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                format!("{found} in version {version:?} cannot be handled as a {kind}: {why}")
            }
        });
    }
    if media == "application/yaml" {
        let text = std::str::from_utf8(bytes).map_err(|error| unrecognized(error.to_string()))?;
        let value = yaml(text).map_err(|why| unrecognized(format!("{why} ({})", summary(bytes))))?.value;
        return match identified(&value) {
            Ok(()) => Ok(value),
            Err(why) => {
                let why = format!("couldn't get version/kind; json parse error: {why}");
                Err(unrecognized(format!("{why} ({})", summary(bytes))))
            }
        };
    }
    let not_json =
        |why: &str| unrecognized(format!("couldn't get version/kind; json parse error: {why} ({})", summary(bytes)));
    let value = json(bytes).map_err(|why| not_json(&why))?;
    match identified(&value) {
        Ok(()) => Ok(value),
        Err(why) => Err(not_json(&why)),
    }
}

/// Reads JSON.
///
/// # Errors
/// What is wrong with it, in Go's words as far as Go finds anything wrong.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).or_else(|_| match syntax::syntax_error(bytes) {
        Some(why) => Err(why),
        None => serde_json::from_slice(&lenient::mended(bytes)).map_err(|error| error.to_string()),
    })
}

/// What is wrong with YAML, without the picture of the place.
pub(crate) fn first_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// Whether kind and version can be read out of a value, in the words of Go.
pub(crate) fn identified(value: &Value) -> Result<(), String> {
    const TARGET: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let Value::Object(map) = value else {
        if value.is_null() {
            return Ok(());
        }
        return Err(format!("json: cannot unmarshal {} into Go value of type {TARGET}", json_type(value)));
    };
    for field in ["apiVersion", "kind"] {
        let mut given = map.iter().filter(|(name, _)| name.eq_ignore_ascii_case(field));
        if let Some((_, given)) = given.find(|(_, value)| !value.is_string() && !value.is_null()) {
            return Err(format!(
                "json: cannot unmarshal {} into Go struct field .{field} of type string",
                json_type(given)
            ));
        }
    }
    Ok(())
}

/// The beginning of a body: as text when it looks like JSON, in hexadecimal digits otherwise.
pub(crate) fn summary(bytes: &[u8]) -> String {
    if !bytes.starts_with(b"{") {
        return hex(bytes);
    }
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_LEN_MAX)]);
    if bytes.len() > SHOWN_LEN_MAX { format!("{shown} ...") } else { shown.into_owned() }
}

fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<empty>".into();
    }
    let first = bytes.iter().take(SHOWN_LEN_MAX);
    let shown = first.fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    if bytes.len() > SHOWN_LEN_MAX { shown + " ..." } else { shown }
}

/// Makes an object fit the type of its built-in kind: nulls are nothing, fields that the type does not have are
/// dropped. Returns the paths of those, in order. What is as in the stored object has been made to fit before.
///
/// # Errors
/// The first value of a wrong type, in Go's words.
pub(crate) fn typed(
    schema: Schema<'_>,
    kind: &str,
    object: &mut Value,
    stored: Option<&Value>,
    words: Words,
) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { unknown: Vec::new(), words };
    decoder.fields(schema, kind, object, stored, &Path::Root)?;
    Ok(decoder.unknown)
}

/// Makes the metadata of a custom object fit its type, as [`typed`] does.
///
/// # Errors
/// The first value of a wrong type, in Go's words, which begin with the metadata.
pub(crate) fn typed_metadata(metadata: &mut Value) -> Result<(), String> {
    const META: &str = "ObjectMeta";
    let Some(schema) = Schema::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else { return Ok(()) };
    if !metadata.is_object() && !metadata.is_null() {
        let found = json_type(metadata);
        return Err(format!("json: cannot unmarshal {found} into Go value of type v1.{META}"));
    }
    // What the type does not have is dropped and named by `crd::prune`.
    let mut decoder = Decoder { unknown: Vec::new(), words: Words::OfJson };
    decoder.fields(schema, META, &mut metadata.clone(), None, &Path::Root)
}

/// Drops from the metadata of a custom object what does not fit its type (`GetObjectMeta` with `DropMalformedFields`).
pub(crate) fn drop_malformed(metadata: &mut Value) {
    if let Value::Object(fields) = metadata {
        fields.retain(|name, value| typed_metadata(&mut serde_json::json!({ name.clone(): value.clone() })).is_ok());
    }
}

/// Writes the metadata of a custom object as its type does: without nulls, and without what is empty.
///
/// Only `managedFields` stay: an empty list says that fields are no longer tracked.
pub(crate) fn settle_metadata(metadata: &mut Value) {
    let Some(schema) = Schema::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else { return };
    let mut decoder = Decoder { unknown: Vec::new(), words: Words::OfJson };
    // What is of a wrong type was refused before.
    let _fits = decoder.fields(schema, "ObjectMeta", metadata, None, &Path::Root);
    if let Value::Object(fields) = metadata {
        fields.retain(|name, value| name == "managedFields" || !is_zero(value));
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        other => other.is_null() || *other == "" || *other == 0,
    }
}

/// Who in the API server finds that a value is of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Who reads JSON.
    OfJson,
    /// Who lays a strategic patch over a type (`converter.go` of `k8s.io/apimachinery/pkg/runtime`).
    OfConverter,
}

struct Decoder {
    unknown: Vec<String>,
    words: Words,
}

impl Decoder {
    fn fields(
        &mut self,
        schema: Schema<'_>,
        owner: &str,
        value: &mut Value,
        stored: Option<&Value>,
        path: &Path<'_>,
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
            let path = Path::Field(path, name, schema.name());
            if let Some(field) = schema.property(name) {
                self.value(field, owner, value, stored, &path)?;
            } else {
                self.unknown.push(path.to_string());
                gone.push(name.clone());
            }
        }
        if has_null {
            map.retain(|_, value| !value.is_null());
        }
        remove(map, &gone);
        Ok(())
    }

    fn value(
        &mut self,
        schema: Schema<'_>,
        owner: &str,
        value: &mut Value,
        stored: Option<&Value>,
        path: &Path<'_>,
    ) -> Result<(), String> {
        // It takes any JSON (`RawExtension.UnmarshalJSON` of `k8s.io/apimachinery/pkg/runtime/extension.go`).
        if schema.reference() == Some("RawExtension") {
            return Ok(());
        }
        // JSON has a zero below zero, which is an integer in Go.
        let is_zero = |number: f64| number.to_bits() == (-0.0_f64).to_bits();
        if schema.type_name() == Some("integer") && value.as_f64().is_some_and(is_zero) {
            *value = 0.into();
        }
        if self.words == Words::OfConverter && schema.type_name() == Some("integer") {
            wrap(value, schema.format());
        }
        // Bytes are written anew, without the ends of lines.
        if schema.format() == Some("byte")
            && let Value::String(text) = value
            && text.contains(['\r', '\n'])
        {
            text.retain(|letter| !['\r', '\n'].contains(&letter));
        }
        if schema.format() == Some("byte") && value.is_array() {
            *value = wrong::bytes(value, owner, path)?;
        }
        wrong::check(self.words, schema, value, owner, path)?;
        match value {
            // A type without fields, and not one of any.
            Value::Object(fields) if schema.reference() == Some("CustomResourceSubresourceStatus") => {
                self.unknown.extend(fields.keys().map(|name| Path::Field(path, name, schema.name()).to_string()));
                fields.clear();
                Ok(())
            }
            Value::Object(map) => {
                if schema.has_properties() {
                    return self.fields(schema, schema.reference().unwrap_or(owner), value, stored, path);
                }
                let Some(values) = schema.additional_properties() else { return Ok(()) };
                for (key, value) in map.iter_mut() {
                    if value.is_null() {
                        *value = zero(values);
                    }
                    self.value(values, owner, value, None, &Path::Field(path, key, None))?;
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(of_items) = schema.items() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = zero(of_items);
                    }
                    let stored = stored.and_then(|stored| stored.get(index));
                    if stored != Some(item) {
                        self.value(of_items, owner, item, stored, &Path::Item(path, index))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Keeps of an integer that is too large for its field the lower bits, as conversions of Go do.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "that is the point")]
fn wrap(value: &mut Value, format: Option<&str>) {
    match (value.as_i64(), value.as_u64()) {
        (Some(number), _) if format == Some("int32") => *value = (number as i32).into(),
        (None, Some(number)) if format != Some("int32") => *value = (number as i64).into(),
        _ => {}
    }
}

/// What a null in a list or in a map is: the zero of the type, which is null where Go has a pointer, a list or a map.
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

fn remove(map: &mut Map<String, Value>, names: &[String]) {
    for name in names {
        map.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(api: &str, kind: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
        let unknown = typed(Schema::built_in(api, kind).unwrap(), kind, &mut object, None, Words::OfJson)?;
        Ok((object, unknown))
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
    fn wrong_types_are_refused_in_the_words_of_the_real_server() {
        for (spec, text) in [
            (json!({ "replicas": "3" }), "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
            (json!({ "replicas": 3.5 }), "number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
            (
                json!({ "template": { "spec": { "containers": [{ "name": 1 }] } } }),
                "number into Go struct field Container.spec.template.spec.containers.name of type string",
            ),
            (
                json!({ "template": { "spec": { "containers": {} } } }),
                "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (json!([]), "array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
            (json!({ "paused": "x" }), "string into Go struct field DeploymentSpec.spec.paused of type bool"),
        ] {
            let error = check("apps/v1", "Deployment", json!({ "spec": spec })).unwrap_err();
            assert_eq!(error, format!("json: cannot unmarshal {text}"));
        }
        for (api, kind, object, text) in [
            ("v1", "Service", json!({ "spec": { "type": 1 } }), "ServiceSpec.spec.type of type v1.ServiceType"),
            (
                "v1",
                "Service",
                json!({ "spec": { "ipFamilies": [1] } }),
                "ServiceSpec.spec.ipFamilies of type v1.IPFamily",
            ),
            ("v1", "Secret", json!({ "data": { "a": 1 } }), "Secret.data of type []uint8"),
            (
                "v1",
                "Node",
                json!({ "status": { "capacity": 1 } }),
                "NodeStatus.status.capacity of type v1.ResourceList",
            ),
            ("v1", "Event", json!({ "lastTimestamp": 1 }), "Event.lastTimestamp of type string"),
        ] {
            let error = check(api, kind, object).unwrap_err();
            assert_eq!(error, format!("json: cannot unmarshal number into Go struct field {text}"));
        }
        let error = check("v1", "ConfigMap", json!({ "data": { "a": 1 } })).unwrap_err();
        assert_eq!(error, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string");
    }

    #[test]
    fn quantities_and_ports_may_be_numbers() {
        let service = json!({ "spec": { "ports": [{ "port": 80, "targetPort": 8080 }] } });
        check("v1", "Service", service).unwrap();
        let pod = json!({ "spec": { "containers": [{ "name": "a", "resources": { "limits": { "cpu": 1 } } }] } });
        check("v1", "Pod", pod).unwrap();
    }
}
