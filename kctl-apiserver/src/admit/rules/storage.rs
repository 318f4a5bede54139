//! Rules of claims, storage classes and quotas.

use serde_json::Value;

use super::{Errors, entries, pairs, text};
use crate::admit::names::NameRule;

pub(super) fn claim(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required("spec.accessModes", "at least 1 access mode is required");
    }
    let modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for (_, mode) in entries(&spec["accessModes"]) {
        errors.one_of("spec.accessModes", mode, &modes);
    }
    let storage = &spec["resources"]["requests"]["storage"];
    match text(storage) {
        "" => errors.required("spec.resources[storage]", ""),
        amount if amount == "0" || amount.starts_with('-') => {
            errors.invalid("spec.resources[storage]", storage, "must be greater than zero");
        }
        _ => {}
    }
    if !text(&spec["storageClassName"]).is_empty() {
        errors.name("spec.storageClassName", &spec["storageClassName"], NameRule::Subdomain);
    }
    errors.one_of("spec.volumeMode", &spec["volumeMode"], &["Block", "Filesystem"]);
}

pub(super) fn volume(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required("spec.accessModes", "");
    }
    let capacity = &spec["capacity"];
    if pairs(capacity).next().is_none() {
        errors.required("spec.capacity", "");
    }
    if capacity["storage"].is_null() || pairs(capacity).count() > 1 {
        errors.unsupported("spec.capacity", &capacity.to_string(), &["storage"]);
    }
    if !super::volume::SOURCES.iter().chain(&["local"]).any(|source| spec[*source].is_object()) {
        errors.required("spec", "must specify a volume type");
    }
}

pub(super) fn class(object: &Value, errors: &mut Errors) {
    if text(&object["provisioner"]).is_empty() {
        errors.required("provisioner", "");
    }
}

pub(super) fn quota(object: &Value, errors: &mut Errors) {
    for (name, amount) in pairs(&object["spec"]["hard"]) {
        if text(amount).starts_with('-') {
            errors.invalid(&format!("spec.hard[{name}]"), amount, "must be greater than or equal to 0");
        }
    }
}
