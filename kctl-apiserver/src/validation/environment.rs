//! Validation of the environment variables of containers (`ValidateEnv`, `ValidateEnvFrom`).
//!
//! Rules look at one container at a time, apart from `files`, which needs the volumes of the Pod.
//! Variables may repeat a name: the later one is used, and `warnings` reports it.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{config_key, downward, entries, paths},
};

/// The fields of `valueFrom`, of which exactly one is set.
const SOURCES: &[&str] = &["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];

/// Validates `env`: a name is required (`FieldValueRequired`) and printable, and a `valueFrom` has one source.
///
/// Names do not have to be C identifiers: since the feature gate
/// `RelaxedEnvironmentVariableValidation` any printable ASCII character but `=` is valid.
pub(crate) fn variables(list: &Value, path: &str, errors: &mut Errors) {
    for (index, variable) in entries(list) {
        let path = format!("{path}[{index}]");
        if text(&variable["name"]).is_empty() {
            errors.required(&format!("{path}.name"), "");
        } else {
            printable(&variable["name"], &format!("{path}.name"), errors);
        }
        if variable["valueFrom"].is_object() {
            source(variable, &format!("{path}.valueFrom"), errors);
        }
    }
}

/// Validates that a variable name is printable ASCII without `=` (`FieldValueInvalid`).
///
/// Printable ASCII is a space (0x20) to a tilde (0x7E). Prefixes of `envFrom` and keys of environment files follow the
/// same rule.
fn printable(name: &Value, path: &str, errors: &mut Errors) {
    if !text(name).bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=') {
        let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.invalid(path, name, detail);
    }
}

/// Validates `valueFrom`: each source that is set, then that exactly one is, without a `value` beside it.
///
/// Errors about the number of sources are `FieldValueInvalid` at `valueFrom` with an empty value,
/// and only one of them is reported. An empty `value` beside a source counts as unset.
fn source(variable: &Value, path: &str, errors: &mut Errors) {
    let from = &variable["valueFrom"];
    let present: Vec<&str> = SOURCES.iter().copied().filter(|kind| from[*kind].is_object()).collect();
    for kind in &present {
        let (path, reference) = (format!("{path}.{kind}"), &from[*kind]);
        match *kind {
            "fieldRef" => downward::field(reference, &path, downward::OF_VARIABLES, errors),
            "resourceFieldRef" => downward::amount(reference, &path, downward::Target::Variable, errors),
            "fileKeyRef" => key_of_file(reference, &path, errors),
            _ => key_of_object(reference, &path, errors),
        }
    }
    if present.is_empty() {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
                      `fileKeyRef`";
        errors.invalid(path, &"".into(), detail);
    } else if !text(&variable["value"]).is_empty() {
        errors.invalid(path, &"".into(), "may not be specified when `value` is not empty");
    } else if present.len() > 1 {
        errors.invalid(path, &"".into(), "may not have more than one field specified at a time");
    }
}

/// Validates a reference to a key of a `ConfigMap` or Secret.
///
/// The name is optional in the API for historical reasons. An empty one is then `FieldValueInvalid`, since the empty
/// string is not a DNS subdomain. kubelet checks that object and key exist.
fn key_of_object(reference: &Value, path: &str, errors: &mut Errors) {
    errors.name(&format!("{path}.name"), &text(&reference["name"]).into(), NameRule::Subdomain);
    let key = text(&reference["key"]);
    if key.is_empty() {
        errors.required(&format!("{path}.key"), "");
    } else {
        config_key::config_key(key, &format!("{path}.key"), errors);
    }
}

/// Validates a `fileKeyRef`: key, volume name, and a path without `..`.
///
/// The file is written by a container into an `emptyDir` volume (feature gate `EnvFiles`). Key and
/// path are `FieldValueRequired`, the volume name is a DNS label.
fn key_of_file(reference: &Value, path: &str, errors: &mut Errors) {
    if text(&reference["key"]).is_empty() {
        errors.required(&format!("{path}.key"), "");
    } else {
        printable(&reference["key"], &format!("{path}.key"), errors);
    }
    errors.required_name(&format!("{path}.volumeName"), &reference["volumeName"], NameRule::Label);
    if text(&reference["path"]).is_empty() {
        errors.required(&format!("{path}.path"), "");
    } else {
        paths::without_backsteps(&reference["path"], &format!("{path}.path"), errors);
    }
}

/// Validates that each `fileKeyRef` names a volume of the Pod (`FieldValueNotFound`) that is an `emptyDir`
/// (`FieldValueInvalid`).
///
/// Runs once per Pod after all containers were validated, since a container rule does not see the
/// volumes. Errors have the full path down to `volumeName`.
pub(crate) fn files(spec: &Value, path: &str, errors: &mut Errors) {
    for (list, index, container) in super::container::all(spec) {
        for (nth, variable) in entries(&container["env"]) {
            let name = &variable["valueFrom"]["fileKeyRef"]["volumeName"];
            if !variable["valueFrom"]["fileKeyRef"].is_object() {
                continue;
            }
            let path = format!("{path}.{list}[{index}].env[{nth}].valueFrom.fileKeyRef.volumeName");
            match entries(&spec["volumes"]).find(|(_, volume)| volume["name"] == *name) {
                None => errors.not_found(&path, name),
                Some((_, volume)) if volume["emptyDir"].is_null() => {
                    errors.invalid(&path, name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    }
}

/// Validates `envFrom`: each item has exactly one of `configMapRef` and `secretRef`, with the name of the object.
///
/// An optional `prefix` is prepended to each key. Errors about the number of references are
/// `FieldValueInvalid` at the list, without the index, as upstream reports them.
pub(crate) fn sources(list: &Value, path: &str, errors: &mut Errors) {
    for (index, from) in entries(list) {
        if !text(&from["prefix"]).is_empty() {
            printable(&from["prefix"], &format!("{path}[{index}].prefix"), errors);
        }
        let present: Vec<&str> =
            ["configMapRef", "secretRef"].into_iter().filter(|kind| from[*kind].is_object()).collect();
        for kind in &present {
            errors.required_name(&format!("{path}[{index}].{kind}.name"), &from[*kind]["name"], NameRule::Subdomain);
        }
        match present.len() {
            0 => errors.invalid(path, &"".into(), "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(path, &"".into(), "may not have more than one field specified at a time"),
        }
    }
}
