//! `StorageClass` of `storage.k8s.io`: a provisioner of volumes with its parameters.
//!
//! Provisioner, parameters, reclaim policy and binding mode are immutable, by tags of the API.
//!
//! Upstream: `pkg/registry/storage/storageclass/strategy.go` and `pkg/apis/storage/validation/validation.go`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    defaulting::add,
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    registry::kind::{Cell, Defaults, DeleteStrategy, Kind, TableColumns, Validation},
    validation::warnings::old_label,
};

pub(crate) static KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation { validate, warn: |_, object, warnings| warn(object, warnings), ..Validation::DEFAULT },
    delete: DeleteStrategy::RETURNS_OBJECT,
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

/// Annotations that mark the default class: the current one and the beta's.
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Validates a class (`ValidateStorageClass`). The provisioner is a qualified name, in which upper case is allowed.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let class = Field::new(object, "", errors);
    let (provisioner, policy) = (class.at("provisioner"), class.at("reclaimPolicy"));
    if !provisioner.is_empty() {
        let lower_case = Value::from(provisioner.text().to_lowercase());
        provisioner.with(&lower_case).qualified_name();
    }
    super::validate_parameters(&class.at("parameters"));
    // Only `PersistentVolume`s may have the policy `Recycle`.
    policy.unsupported_if(*policy == "Recycle", &["Delete", "Retain"]);
    validate_topologies(&class.at("allowedTopologies"));
}

/// Validates `allowedTopologies`, the parts of the topology in which volumes may be. Within a term, keys and the values
/// of a key are unique. No two terms may be equal, and an empty term is always a duplicate.
fn validate_topologies(terms: &Field<'_>) {
    // `validateAllowedTopologies` (`pkg/apis/storage/validation/validation.go`) compares each term with a list that has
    // its full length from the start, so also with empty terms.
    let mut seen = BTreeSet::from([BTreeMap::new()]);
    for requirements in terms.items().map(|term| term.at("matchLabelExpressions")) {
        let mut topology: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for requirement in requirements.items() {
            let (key, values) = (requirement.at("key"), requirement.at("values"));
            values.required_if(values.is_empty());
            values.unique(|value| value);
            key.qualified_name();
            let previous = topology.insert(key.text(), values.items().map(|value| value.text()).collect());
            key.duplicate_if(previous.is_some());
        }
        requirements.duplicate_if(!seen.insert(topology));
    }
}

/// Fills in the defaults of a class (`SetDefaults_StorageClass`).
fn default(object: &mut Value) {
    add(object, "reclaimPolicy", "Delete");
    add(object, "volumeBindingMode", "Immediate");
}

/// Warns about node labels that are no longer in use. Warnings name the key by its path, as in
/// `allowedTopologies[0].matchLabelExpressions[1].key`.
fn warn(object: &Value, texts: &mut Vec<String>) {
    for (index, term) in entries(&object["allowedTopologies"]) {
        for (nth, requirement) in entries(&term["matchLabelExpressions"]) {
            let path = format!("allowedTopologies[{index}].matchLabelExpressions[{nth}].key");
            texts.extend(old_label(text(&requirement["key"])).map(|why| format!("{path}: {why}")));
        }
    }
}
