//! Validation of the environment variables of containers (`ValidateEnv`, `ValidateEnvFrom`).

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{config_key, downward, entries, paths},
};

const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Validates `env`: a name is required (`FieldValueRequired`) and printable, and a `valueFrom` has one source.
pub(crate) fn variables(list: &Value, at: &str, errors: &mut Errors) {
    for (index, variable) in entries(list) {
        let at = format!("{at}[{index}]");
        if text(&variable["name"]).is_empty() {
            errors.required(&format!("{at}.name"), "");
        } else {
            printable(&variable["name"], &format!("{at}.name"), errors);
        }
        if variable["valueFrom"].is_object() {
            source(variable, &format!("{at}.valueFrom"), errors);
        }
    }
}

/// Validates that a variable name is printable ASCII without `=` (`FieldValueInvalid`).
fn printable(name: &Value, at: &str, errors: &mut Errors) {
    if !text(name).bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.invalid(at, name, detail);
    }
}

/// Validates `valueFrom`: each source that is set, then that exactly one is, without a `value` beside it.
fn source(variable: &Value, at: &str, errors: &mut Errors) {
    let from = &variable["valueFrom"];
    let given: Vec<&str> = SOURCES.iter().copied().filter(|kind| from[*kind].is_object()).collect();
    for kind in &given {
        let (at, reference) = (format!("{at}.{kind}"), &from[*kind]);
        match *kind {
            "fieldRef" => downward::field(reference, &at, downward::OF_VARIABLES, errors),
            "resourceFieldRef" => downward::amount(reference, &at, false, errors),
            "fileKeyRef" => key_of_file(reference, &at, errors),
            _ => key_of_object(reference, &at, errors),
        }
    }
    if given.is_empty() {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
                      `fileKeyRef`";
        errors.invalid(at, &"".into(), detail);
    } else if !text(&variable["value"]).is_empty() {
        errors.invalid(at, &"".into(), "may not be specified when `value` is not empty");
    } else if given.len() > 1 {
        errors.invalid(at, &"".into(), "may not have more than one field specified at a time");
    }
}

/// Validates a reference to a key of a `ConfigMap` or Secret.
fn key_of_object(reference: &Value, at: &str, errors: &mut Errors) {
    errors.name(&format!("{at}.name"), &text(&reference["name"]).into(), NameRule::Subdomain);
    let key = text(&reference["key"]);
    if key.is_empty() {
        errors.required(&format!("{at}.key"), "");
    } else {
        config_key::config_key(key, &format!("{at}.key"), errors);
    }
}

/// Validates a `fileKeyRef`: key, volume name, and a path without `..`.
fn key_of_file(reference: &Value, at: &str, errors: &mut Errors) {
    if text(&reference["key"]).is_empty() {
        errors.required(&format!("{at}.key"), "");
    } else {
        printable(&reference["key"], &format!("{at}.key"), errors);
    }
    errors.required_name(&format!("{at}.volumeName"), &reference["volumeName"], NameRule::Label);
    if text(&reference["path"]).is_empty() {
        errors.required(&format!("{at}.path"), "");
    } else {
        paths::without_backsteps(&reference["path"], &format!("{at}.path"), errors);
    }
}

/// Validates that each `fileKeyRef` names a volume of the Pod (`FieldValueNotFound`) that is an `emptyDir`
/// (`FieldValueInvalid`).
pub(crate) fn files(spec: &Value, at: &str, errors: &mut Errors) {
    for (list, index, container) in super::container::all(spec) {
        for (nth, variable) in entries(&container["env"]) {
            let name = &variable["valueFrom"]["fileKeyRef"]["volumeName"];
            if !variable["valueFrom"]["fileKeyRef"].is_object() {
                continue;
            }
            let at = format!("{at}.{list}[{index}].env[{nth}].valueFrom.fileKeyRef.volumeName");
            match entries(&spec["volumes"]).find(|(_, volume)| volume["name"] == *name) {
                None => errors.not_found(&at, name),
                Some((_, volume)) if volume["emptyDir"].is_null() => {
                    errors.invalid(&at, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    }
}

pub(crate) fn sources(list: &Value, at: &str, errors: &mut Errors) {
    for (index, from) in entries(list) {
        if !text(&from["prefix"]).is_empty() {
            printable(&from["prefix"], &format!("{at}[{index}].prefix"), errors);
        }
        let given: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|kind| from[*kind].is_object()).collect();
        for kind in &given {
            errors.required_name(&format!("{at}[{index}].{kind}.name"), &from[*kind]["name"], NameRule::Subdomain);
        }
        match given.len() {
            0 => errors.invalid(at, &"".into(), "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(at, &"".into(), "may not have more than one field specified at a time"),
        }
    }
}
