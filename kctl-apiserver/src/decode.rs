//! From the body of a request to an object of its kind: wrong types are refused, unknown fields are dropped and named.

mod duplicates;
mod path;
mod unrepeated;

use serde_json::{Map, Value};

use self::path::Path;
pub(crate) use self::{duplicates::duplicates, unrepeated::unrepeated};
use crate::{
    go::json_type,
    proto::{self, ProtoError},
    schema::Schema,
};

/// As much of a body as an error shows (`summarizeData` in `k8s.io/apiserver/pkg/endpoints/handlers/rest.go`).
const SHOWN_LEN_MAX: usize = 30;

/// Reads a body by its content type.
pub(crate) fn body(content_type: &str, bytes: &[u8], kind: &str) -> Result<Value, String> {
    let unrecognized = |why: String| format!("the object provided is unrecognized (must be of type {kind}): {why}");
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if media == proto::MEDIA_TYPE {
        return proto::decode(bytes).map_err(|error| match error {
            ProtoError::EnvelopeBroken(why) => unrecognized(format!("{why} ({})", hex(bytes))),
            ProtoError::ObjectBroken { api_version, kind: found, why } => {
                let version = api_version.rsplit('/').next().unwrap_or_default();
                format!("{found} in version {version:?} cannot be handled as a {kind}: {why}")
            }
        });
    }
    if media == "application/yaml" {
        let text = std::str::from_utf8(bytes).map_err(|error| unrecognized(error.to_string()))?;
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error| unrecognized(format!("yaml: {} ({})", first_line(&error), hex(bytes))))?;
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
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let why = if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() };
        not_json(&why)
    })?;
    match identified(&value) {
        Ok(()) => Ok(value),
        Err(why) => Err(not_json(&why)),
    }
}

/// What is wrong with YAML, without the picture of the place.
pub(crate) fn first_line(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// Whether kind and version can be read out of a value, in the words of Go.
fn identified(value: &Value) -> Result<(), String> {
    const TARGET: &str =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let Value::Object(map) = value else {
        if value.is_null() {
            return Ok(());
        }
        return Err(format!("json: cannot unmarshal {} into Go value of type {TARGET}", json_type(value)));
    };
    for field in ["apiVersion", "kind"] {
        let given = map.get(field).filter(|value| !value.is_string() && !value.is_null());
        if let Some(given) = given {
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
) -> Result<Vec<String>, String> {
    let mut decoder = Decoder { unknown: Vec::new() };
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
    let mut decoder = Decoder { unknown: Vec::new() };
    decoder.fields(schema, META, &mut metadata.clone(), None, &Path::Root)
}

/// Writes the metadata of a custom object as its type does: without nulls, and without what is empty.
///
/// Only `managedFields` stay: an empty list says that fields are no longer tracked.
pub(crate) fn settle_metadata(metadata: &mut Value) {
    let Some(schema) = Schema::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta") else { return };
    let mut decoder = Decoder { unknown: Vec::new() };
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

struct Decoder {
    unknown: Vec<String>,
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
        if let Some(why) = wrong_text(schema, value) {
            return Err(why);
        }
        if let Some(expected) = wrong_type(schema, value) {
            return Err(cannot_unmarshal(value, owner, &expected, path));
        }
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
                    // A null in a map is the zero of the type: an empty text, no amount.
                    if value.is_null() && values.reference() == Some("Quantity") {
                        *value = Value::String("0".into());
                    } else if value.is_null()
                        && values.type_name() == Some("string")
                        && values.reference() != Some("Time")
                    {
                        *value = Value::String(String::new());
                    }
                    let decoded = self.value(values, owner, value, None, &Path::Field(path, key, None));
                    decoded.map_err(|error| error.replace(&format!(".{key} of type"), " of type"))?;
                }
                Ok(())
            }
            Value::Array(items) => {
                let Some(of_items) = schema.items() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    // As in a map.
                    if item.is_null() && of_items.type_name() == Some("string") && of_items.reference().is_none() {
                        *item = Value::String(String::new());
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

fn cannot_unmarshal(value: &Value, owner: &str, expected: &str, path: &Path<'_>) -> String {
    let found = match value {
        Value::Bool(_) => "bool".into(),
        Value::Number(number) if expected.starts_with("int") => format!("number {number}"),
        Value::Number(_) => "number".into(),
        Value::String(text) if expected == "Time" => {
            return format!(r#"parsing time {text:?} as "2006-01-02T15:04:05Z07:00": cannot parse {text:?} as "2006""#);
        }
        Value::String(_) => "string".into(),
        Value::Array(_) => "array".into(),
        _ => "object".to_owned(),
    };
    // Go names the fields on the way, not the places in lists.
    let fields = path.fields().join(".");
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{fields} of type {expected}")
}

fn remove(map: &mut Map<String, Value>, names: &[String]) {
    for name in names {
        map.remove(name);
    }
}

/// What Go says of a text that is of the right type and not in the right form.
fn wrong_text(schema: Schema<'_>, value: &Value) -> Option<String> {
    const QUANTITY: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let is = |name: &str| schema.reference() == Some(name);
    let text = match value {
        Value::String(text) => text,
        Value::Array(_) | Value::Object(_) | Value::Bool(_) if is("Quantity") => return Some(QUANTITY.into()),
        _ => return None,
    };
    if schema.format() == Some("byte") {
        return illegal_base64(text).map(|at| format!("illegal base64 data at input byte {at}"));
    }
    if is("MicroTime") {
        const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
        let fails = |rest: &str, part: &str| {
            Some(format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {part:?}"))
        };
        return match text.split_once('.') {
            _ if text.parse::<jiff::Timestamp>().is_err() => fails(text, "2006"),
            None => fails(text.get("2006-01-02T15:04:05".len()..).unwrap_or_default(), ".000000"),
            Some(_) => None,
        };
    }
    if is("Quantity") && crate::admit::quantity::canonical(text).is_none() {
        return Some(QUANTITY.into());
    }
    None
}

/// Where a text stops being base64.
fn illegal_base64(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, byte)| !b"\r\n".contains(byte)).collect();
    let n_digits = bytes.iter().take_while(|(_, byte)| byte.is_ascii_alphanumeric() || b"+/".contains(byte)).count();
    let padding = &bytes[n_digits..];
    let whole = bytes.len().is_multiple_of(4) && padding.len() <= 2 && padding.iter().all(|(_, byte)| *byte == b'=');
    if whole {
        return None;
    }
    Some(padding.first().map_or(text.len() - text.len() % 4, |(at, _)| *at))
}

/// The Go type that was expected, when the value is of another one.
fn wrong_type(schema: Schema<'_>, value: &Value) -> Option<String> {
    let format = schema.format().unwrap_or_default();
    let fits = match (schema.type_name()?, value) {
        ("string", Value::String(text)) => format != "date-time" || text.parse::<jiff::Timestamp>().is_ok(),
        ("string", Value::Number(number)) => match format {
            "int-or-string" => is_int32(number),
            _ => schema.reference().is_some_and(|name| name == "Quantity"),
        },
        // One with a point or an exponent is none, whatever it is worth; where YAML is read it has neither by now.
        ("integer", Value::Number(number)) => {
            if format == "int32" {
                is_int32(number)
            } else {
                number.is_i64()
            }
        }
        (_, Value::Null)
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        _ => false,
    };
    (!fits).then(|| go_type(schema))
}

fn is_int32(number: &serde_json::Number) -> bool {
    number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

fn go_type(schema: Schema<'_>) -> String {
    let named = |schema: Schema<'_>| schema.reference().map(|name| format!("v1.{name}"));
    match (schema.type_name().unwrap_or_default(), schema.format().unwrap_or_default()) {
        ("string", "date-time") => "Time".into(),
        ("string", "int-or-string") => "int32".into(),
        ("integer", "") => "int64".into(),
        ("integer", format) => format.into(),
        ("number", _) => "float64".into(),
        ("boolean", _) => "bool".into(),
        ("array", _) => format!("[]{}", schema.items().map(go_type).unwrap_or_default()),
        ("object", _) => named(schema).unwrap_or_else(|| "map[string]string".into()),
        (other, _) => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(api: &str, kind: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
        let unknown = typed(Schema::built_in(api, kind).unwrap(), kind, &mut object, None)?;
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
