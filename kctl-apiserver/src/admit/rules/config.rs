//! Rules of config maps, secrets and leases.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{Errors, pairs, text};
use crate::decode;

/// Bytes of all values of a secret or a config map: `MaxSecretSize`.
const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a key.
const KEY_LEN_MAX: usize = 253;

pub(crate) fn config_map(object: &Value, errors: &mut Errors) {
    let mut n_bytes = 0;
    for (key, value) in pairs(&object["data"]) {
        config_key(key, &format!("data[{key}]"), errors);
        if !object["binaryData"][key].is_null() {
            errors.invalid(&format!("data[{key}]"), &key.into(), "duplicate of key present in binaryData");
        }
        n_bytes += text(value).len();
    }
    for (key, value) in pairs(&object["binaryData"]) {
        config_key(key, &format!("binaryData[{key}]"), errors);
        n_bytes += text(value).len() / 4 * 3;
    }
    if n_bytes > VALUES_BYTES_MAX {
        errors.too_long("[]", VALUES_BYTES_MAX);
    }
}

pub(crate) fn secret(object: &Value, errors: &mut Errors) {
    let mut n_bytes = 0;
    for (key, value) in pairs(&object["data"]) {
        config_key(key, &format!("data[{key}]"), errors);
        n_bytes += text(value).len() / 4 * 3;
    }
    if n_bytes > VALUES_BYTES_MAX {
        errors.too_long("data", VALUES_BYTES_MAX);
    }
    let has = |key: &str| !object["data"][key].is_null();
    match text(&object["type"]) {
        "kubernetes.io/service-account-token" => {
            let account = "kubernetes.io/service-account.name";
            if text(&object["metadata"]["annotations"][account]).is_empty() {
                errors.required(&format!("metadata.annotations[{account}]"), "");
            }
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)) {
                errors.required(&format!("data[{key}]"), "");
            }
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.required("data[username]", "");
            errors.required("data[password]", "");
        }
        "kubernetes.io/ssh-auth" if text(&object["data"]["ssh-privatekey"]).is_empty() => {
            errors.required("data[ssh-privatekey]", "");
        }
        "kubernetes.io/dockerconfigjson" => docker(&object["data"], ".dockerconfigjson", errors),
        "kubernetes.io/dockercfg" => docker(&object["data"], ".dockercfg", errors),
        _ => {}
    }
}

/// Credentials for images are a map in JSON; what is wrong with them is told without a part of them.
fn docker(data: &Value, key: &str, errors: &mut Errors) {
    let at = format!("data[{key}]");
    let Some(encoded) = data[key].as_str() else { return errors.required(&at, "") };
    // What is no base64 was refused by the decoder.
    let Ok(bytes) = BASE64_STANDARD.decode(encoded) else { return };
    let wrong = match decode::json(&bytes) {
        Err(why) => why,
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(_) => "must be a JSON object".to_owned(),
    };
    errors.invalid(&at, &"<secret contents redacted>".into(), &wrong);
}

pub(crate) fn config_key(key: &str, at: &str, errors: &mut Errors) {
    if key.len() > KEY_LEN_MAX {
        errors.invalid(at, &key.into(), &format!("must be no more than {KEY_LEN_MAX} characters"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(allowed) {
        let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                      or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
        errors.invalid(at, &key.into(), detail);
    } else if key == "." || key == ".." {
        errors.invalid(at, &key.into(), &format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        errors.invalid(at, &key.into(), "must not start with '..'");
    }
}

pub(crate) fn lease(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.invalid("spec.leaseDurationSeconds", &spec["leaseDurationSeconds"], "must be greater than 0");
    }
    errors.not_negative("spec.leaseTransitions", &spec["leaseTransitions"]);
}
