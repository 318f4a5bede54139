//! `Secret` of the core group: small sensitive data, in base64.
//!
//! The server moves `stringData` to `data`, defaults the type to `Opaque`, and validates the keys that a type requires.
//!
//! - The type is immutable by a tag of the API. So is the data of an immutable Secret, by the rule of `ConfigMap`.
//! - `type` is selectable, as in `kubectl get secrets --field-selector type=kubernetes.io/tls`.
//! - Values are stored as they are: they are encoded, not encrypted.
//!
//! Upstream: `pkg/registry/core/secret/strategy.go` and `pkg/apis/core/validation/validation.go`.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use crate::{
    decode,
    defaulting::{fill, part},
    field::Field,
    field_errors::{Errors, text},
    json_path::set,
    registry::kind::{Cell, Defaults, Kind, Requests, TableColumns, Validation},
    validation::config_key::{VALUES_BYTES_MAX, decoded_len, validate_config_key},
};

pub(crate) static KIND: Kind = Kind {
    resource: "secrets",
    kind: "Secret",
    requests: Requests { selectable_fields: &["metadata.namespace", "type"], ..Requests::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation {
        validate,
        validate_update: super::config_map::validate_update,
        warn,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/type"), Cell::Count("/data"), Cell::Age]),
    quota: super::counted_by_name!("secrets"),
    ..Kind::DEFAULT
};

/// Warns about a TLS Secret without PEM data. It is valid nevertheless.
fn warn(_: Option<&Value>, object: &Value, warnings: &mut Vec<String>) {
    if object["type"] == "kubernetes.io/tls" {
        warnings.extend(key_pair_warning(&object["data"]));
    }
}

/// Validates keys, size and the data that the type requires (`ValidateSecret`). Other types, such as `Opaque`, have no
/// required keys.
fn validate(object: &Value, errors: &mut Errors) {
    let secret = Field::new(object, "", errors);
    let (data, mut n_bytes) = (secret.at("data"), 0);
    for (key, value) in data.entries() {
        value.with(&key.into()).check(validate_config_key);
        n_bytes += decoded_len(value.text());
    }
    if n_bytes > VALUES_BYTES_MAX {
        data.too_long(VALUES_BYTES_MAX);
    }
    match text(&object["type"]) {
        "kubernetes.io/service-account-token" => {
            let account = secret.at("metadata").at("annotations").at_key("kubernetes.io/service-account.name");
            account.required_if(account.is_empty());
        }
        "kubernetes.io/tls" => require(&data, ["tls.crt", "tls.key"]),
        "kubernetes.io/basic-auth" if data["username"].is_null() && data["password"].is_null() => {
            require(&data, ["username", "password"]);
        }
        "kubernetes.io/ssh-auth" => {
            let key = data.at_key("ssh-privatekey");
            key.required_if(key.is_empty());
        }
        "kubernetes.io/dockerconfigjson" => validate_docker_config(&data.at_key(".dockerconfigjson")),
        "kubernetes.io/dockercfg" => validate_docker_config(&data.at_key(".dockercfg")),
        _ => {}
    }
}

/// Reports each of the keys that is absent.
fn require(data: &Field<'_>, keys: [&str; 2]) {
    for value in keys.map(|key| data.at_key(key)) {
        value.required_if(value.is_null());
    }
}

/// Validates that credentials for images are a JSON object. The error does not show them.
fn validate_docker_config(credentials: &Field<'_>) {
    let Some(encoded) = credentials.as_str() else { return credentials.required() };
    // The decoder has already rejected values that are not base64.
    let Ok(bytes) = BASE64_STANDARD.decode(encoded) else { return };
    match decode::json(&bytes) {
        Err(why) => credentials.invalid_without_value(why),
        Ok(Value::Object(_) | Value::Null) => {}
        Ok(_) => credentials.invalid_without_value("must be a JSON object"),
    }
}

/// Defaults the type to `Opaque` and moves `stringData`, which no response ever has, to `data`.
pub(crate) fn default(object: &mut Value) {
    fill(object, "type", "Opaque");
    let texts = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        set(part(object, "data"), key, Some(BASE64_STANDARD.encode(text).into()));
    }
}

/// The first characters of each PEM block.
const PEM: &[u8] = b"-----BEGIN ";

/// Warns about data that is not a PEM certificate with its key. Their match is not checked.
fn key_pair_warning(data: &Value) -> Option<String> {
    let is_pem = |name: &str| {
        let text = BASE64_STANDARD.decode(text(&data[name])).unwrap_or_default();
        text.windows(PEM.len()).any(|window| window == PEM)
    };
    let fields = [("tls.crt", "certificate"), ("tls.key", "key")];
    let (_, what) = fields.into_iter().find(|(name, _)| !is_pem(name))?;
    Some(format!("tls: failed to find any PEM data in {what} input"))
}
