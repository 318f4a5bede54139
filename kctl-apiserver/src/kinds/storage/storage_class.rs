//! `StorageClass` of `storage.k8s.io`: a provisioner of volumes with its parameters.
//!
//! - Provisioner, parameters, reclaim policy and binding mode are immutable, by rules that the
//!   schema declares.
//! - An annotation marks the default class, which is shown as `a (default)`.
//! - A delete returns the object.
//!
//! Upstream: `pkg/registry/storage/storageclass/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    defaulting::add,
    field_errors::{Errors, text},
    registry::kind::{Cell, Defaults, DeleteAnswer, DeleteStrategy, Kind, TableColumns, Validation},
    validation::{entries, warnings::old_label},
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation { validate, warn: |_, object, warnings| warn(object, warnings), ..Validation::DEFAULT },
    delete: DeleteStrategy { answer: DeleteAnswer::Object, ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&[
        Cell::ClassName(&DEFAULT_CLASS),
        Cell::Text("/provisioner"),
        Cell::TextOr("/reclaimPolicy", "Delete"),
        Cell::TextOr("/volumeBindingMode", "Immediate"),
        Cell::Flag("/allowVolumeExpansion"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Annotations that mark the default class: the current one and that of the beta.
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Validates a class (`ValidateStorageClass`). The provisioner is a qualified name, in which upper
/// case is allowed.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    errors.qualified_name_if_set("provisioner", &text(&object["provisioner"]).to_lowercase());
    super::parameters(&object["parameters"], errors);
    // Only `PersistentVolume`s may have the policy `Recycle`.
    if object["reclaimPolicy"] == "Recycle" {
        errors.one_of("reclaimPolicy", &object["reclaimPolicy"], &["Delete", "Retain"]);
    }
    topologies(&object["allowedTopologies"], errors);
}

/// Validates `allowedTopologies`, the parts of the topology in which volumes may be.
///
/// Within a term, keys and the values of a key are unique. No two terms may be equal, and an empty term
/// is always a duplicate.
fn topologies(terms: &Value, errors: &mut Errors) {
    // Upstream compares with an empty term as well.
    let mut seen = vec![BTreeMap::new()];
    for (index, term) in entries(terms) {
        let path = format!("allowedTopologies[{index}].matchLabelExpressions");
        let mut topology: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (nth, requirement) in entries(&term["matchLabelExpressions"]) {
            let (path, key) = (format!("{path}[{nth}]"), text(&requirement["key"]));
            let values: Vec<&str> = entries(&requirement["values"]).map(|(_, value)| text(value)).collect();
            if values.is_empty() {
                errors.required(&format!("{path}.values"), "");
            }
            for (nth, _) in values.iter().enumerate().filter(|(nth, value)| values[..*nth].contains(value)) {
                errors.duplicate(&format!("{path}.values[{nth}]"));
            }
            errors.qualified_name(&format!("{path}.key"), key);
            if topology.insert(key, values.into_iter().collect()).is_some() {
                errors.duplicate(&format!("{path}.key"));
            }
        }
        if seen.contains(&topology) {
            errors.duplicate(&path);
        }
        seen.push(topology);
    }
}

/// Fills in `reclaimPolicy: Delete` and `volumeBindingMode: Immediate`
/// (`SetDefaults_StorageClass`).
fn default(object: &mut Value) {
    add(object, "reclaimPolicy", "Delete");
    add(object, "volumeBindingMode", "Immediate");
}

/// Warns about node labels that are no longer in use.
///
/// Warnings name the key by its path, as in `allowedTopologies[0].matchLabelExpressions[1].key`.
fn warn(object: &Value, texts: &mut Vec<String>) {
    for (index, term) in entries(&object["allowedTopologies"]) {
        for (nth, requirement) in entries(&term["matchLabelExpressions"]) {
            let path = format!("allowedTopologies[{index}].matchLabelExpressions[{nth}].key");
            texts.extend(old_label(text(&requirement["key"])).map(|why| format!("{path}: {why}")));
        }
    }
}
