//! Rules of config maps, secrets, events, leases and namespaces.

use serde_json::Value;

use super::{Errors, pairs, text};

/// Bytes of all values of a secret or a config map: `MaxSecretSize`.
const VALUES_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a key.
const KEY_LEN_MAX: usize = 253;

pub(super) fn config_map(object: &Value, errors: &mut Errors) {
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
        errors.too_long("", VALUES_BYTES_MAX);
    }
}

pub(super) fn secret(object: &Value, errors: &mut Errors) {
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
        "kubernetes.io/ssh-auth" if !has("ssh-privatekey") => errors.required("data[ssh-privatekey]", ""),
        "kubernetes.io/dockerconfigjson" if !has(".dockerconfigjson") => {
            errors.required("data[.dockerconfigjson]", "");
        }
        "kubernetes.io/dockercfg" if !has(".dockercfg") => errors.required("data[.dockercfg]", ""),
        _ => {}
    }
}

fn config_key(key: &str, at: &str, errors: &mut Errors) {
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

pub(super) fn lease(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.invalid("spec.leaseDurationSeconds", &spec["leaseDurationSeconds"], "must be greater than 0");
    }
    errors.not_negative("spec.leaseTransitions", &spec["leaseTransitions"]);
}

pub(super) fn namespace(object: &Value, errors: &mut Errors) {
    let (phase, is_deleted) = (text(&object["status"]["phase"]), object["metadata"]["deletionTimestamp"].is_string());
    if !is_deleted && phase != "Active" {
        let detail = "may only be 'Active' if `deletionTimestamp` is empty";
        errors.invalid("status.Phase", &phase.into(), detail);
    } else if is_deleted && phase != "Terminating" {
        let detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        errors.invalid("status.Phase", &phase.into(), detail);
    }
}
