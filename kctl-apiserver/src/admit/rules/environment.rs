//! Rules of the environment of containers.

use serde_json::Value;

use super::{Errors, entries, text};
use crate::admit::names::NameRule;

/// Paths that the downward API has besides single labels and annotations.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn variables(list: &Value, at: &str, errors: &mut Errors) {
    for (index, variable) in entries(list) {
        let at = format!("{at}[{index}]");
        let name = text(&variable["name"]);
        let printable = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
        if name.is_empty() {
            errors.required(&format!("{at}.name"), "");
        } else if !name.bytes().all(printable) {
            let detail =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.invalid(&format!("{at}.name"), &variable["name"], detail);
        }
        if variable["valueFrom"].is_object() {
            source(variable, &format!("{at}.valueFrom"), errors);
        }
    }
}

fn source(variable: &Value, at: &str, errors: &mut Errors) {
    let from = &variable["valueFrom"];
    let kinds = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let n_given = kinds.iter().filter(|kind| from[**kind].is_object()).count();
    let path = &from["fieldRef"]["fieldPath"];
    if from["fieldRef"].is_object() {
        field(path, &format!("{at}.fieldRef.fieldPath"), errors);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        let reference = &from[kind];
        if reference.is_object() {
            if text(&reference["name"]).is_empty() {
                errors.required(&format!("{at}.{kind}.name"), "");
            }
            if text(&reference["key"]).is_empty() {
                errors.required(&format!("{at}.{kind}.key"), "");
            }
        }
    }
    if n_given == 0 {
        let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or \
                      `fileKeyRef`";
        errors.invalid(at, &"".into(), detail);
    } else if !text(&variable["value"]).is_empty() {
        errors.invalid(at, &"".into(), "may not be specified when `value` is not empty");
    } else if n_given > 1 {
        errors.invalid(at, &"".into(), "may not have more than one field specified at a time");
    }
}

fn field(path: &Value, at: &str, errors: &mut Errors) {
    let name = text(path);
    let of_map = ["metadata.labels['", "metadata.annotations['"];
    if name.is_empty() {
        errors.required(at, "");
    } else if !FIELDS.contains(&name) && !of_map.iter().any(|prefix| name.starts_with(prefix)) {
        errors.invalid(at, path, &format!("error converting fieldPath: field label not supported: {name}"));
    }
}

pub(super) fn sources(list: &Value, at: &str, errors: &mut Errors) {
    for (index, from) in entries(list) {
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
