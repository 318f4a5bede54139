//! Validation that several built-in kinds share; that of one kind or group is in `kinds/`.
//!
//! [`declared`] applies the enums and tags of the API, then the functions of the kind run (`write/validate.rs`).
//!
//! Behaviour: the `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`.

pub(crate) mod address;
pub(crate) mod affinity;
pub(crate) mod config_key;
pub(crate) mod container;
pub(crate) mod declared;
pub(crate) mod dns;
pub(crate) mod downward;
pub(crate) mod environment;
pub(crate) mod format;
pub(crate) mod immutable;
pub(crate) mod mounts;
pub(crate) mod paths;
pub(crate) mod pod;
pub(crate) mod ports;
pub(crate) mod probe;
pub(crate) mod resources;
pub(crate) mod schedule;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod status;
pub(crate) mod volume;
pub(crate) mod volume_claim;
pub(crate) mod volume_source;
pub(crate) mod warnings;
pub(crate) mod windows;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{metadata::validate_metadata, registry::Resource, status::FieldError};

pub(crate) use crate::field_errors::{Errors, pairs, text};

/// Validates the metadata of an object.
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let errors = validate_metadata(&object["metadata"], resource.listed.namespaced, resource.rules.names);
    let without_domain = resource.rules.finalizers_without_domain;
    let unknown = |cause: &FieldError| without_domain && cause.message.contains("neither a standard finalizer name");
    errors.into_iter().filter(|cause| !unknown(cause)).collect()
}

/// Returns the errors of a domain-prefixed path, such as `example.com/name`.
pub(crate) fn domain_prefixed(field: &str, path: &str) -> Vec<FieldError> {
    let mut errors = Errors::default();
    errors.domain_prefixed(field, &path.into());
    errors.into_causes()
}

/// Iterates over the items of a list with their indexes; another value has no items.
pub(crate) fn entries(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// Validates each item of a list, unless the tags of the list have found it too long.
pub(crate) fn each(list: &Value, at: &str, errors: &mut Errors, mut validate: impl FnMut(&Value, &str, &mut Errors)) {
    if errors.is_too_long(at) {
        return;
    }
    for (index, item) in entries(list) {
        validate(item, &format!("{at}[{index}]"), errors);
    }
}

/// Reports items with the same name.
pub(crate) fn unique<'a>(list: &'a Value, at: &str, errors: &mut Errors, name: impl Fn(&'a Value) -> &'a Value) {
    let mut known = BTreeSet::new();
    for (index, item) in entries(list) {
        let name = text(name(item));
        if !known.insert(name) {
            errors.duplicate(&format!("{at}[{index}]"), &Value::from(name).to_string());
        }
    }
}
