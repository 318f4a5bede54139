//! Validation of the spec of a `PersistentVolumeClaim`, alone or as a template in Pods and
//! `StatefulSet`s.
//!
//! Upstream: `ValidatePersistentVolumeClaimSpec` in `pkg/apis/core/validation/validation.go`. The
//! rules are those of creation; an update of a claim compares with the old spec in
//! `kinds/core/persistent_volume_claim`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{declared, entries, resources},
};

/// Validates the specification of a claim or of a claim template.
///
/// At least one access mode and a storage request above zero are required. The path of the latter
/// is `resources[storage]`, without `requests`, as upstream prints it. An empty `storageClassName`
/// is valid and means no class, unlike an absent one, which admission replaces by the default
/// class.
pub(crate) fn claim_spec(spec: &Value, path: &str, errors: &mut Errors) {
    let modes_path = format!("{path}.accessModes");
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required(&modes_path, "at least 1 access mode is required");
    }
    super::selector::selector(&spec["selector"], &format!("{path}.selector"), errors);
    access_modes(&spec["accessModes"], &modes_path, errors);
    let (storage, storage_path) = (&spec["resources"]["requests"]["storage"], format!("{path}.resources[storage]"));
    match resources::size(storage) {
        None => errors.required(&storage_path, ""),
        Some(size) if size <= 0 => errors.invalid(&storage_path, storage, "must be greater than zero"),
        Some(_) => {}
    }
    if !text(&spec["storageClassName"]).is_empty() {
        errors.name(&format!("{path}.storageClassName"), &spec["storageClassName"], NameRule::Subdomain);
    }
    data_sources(spec, path, errors);
    if !text(&spec["volumeAttributesClassName"]).is_empty() {
        let path = format!("{path}.volumeAttributesClassName");
        errors.name(&path, &spec["volumeAttributesClassName"], NameRule::Subdomain);
    }
}

/// Validates the access modes: known ones (`FieldValueNotSupported`), and `ReadWriteOncePod` only alone
/// (`FieldValueForbidden`), since it promises a single Pod. Errors are at the list. `PersistentVolume` uses this
/// function, too.
pub(crate) fn access_modes(list: &Value, path: &str, errors: &mut Errors) {
    const ALONE: &str = "ReadWriteOncePod";
    let modes = declared::values("core.v1.PersistentVolumeClaimSpec", "accessModes");
    for (_, mode) in entries(list) {
        errors.one_of(path, mode, &modes);
    }
    let is_alone = entries(list).any(|(_, mode)| mode == ALONE);
    if is_alone && entries(list).any(|(_, mode)| mode != ALONE) {
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

/// Validates `dataSource` and `dataSourceRef`, which must agree.
///
/// Name and kind are required in both. Without a group only `PersistentVolumeClaim` is allowed.
/// With `dataSourceRef.namespace` the older `dataSource` cannot express the reference and must be
/// absent. Errors about both fields are at the spec.
fn data_sources(spec: &Value, path: &str, errors: &mut Errors) {
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    for (from, name) in [(source, "dataSource"), (reference, "dataSourceRef")] {
        if from.is_null() {
            continue;
        }
        let path = format!("{path}.{name}");
        for field in ["name", "kind"].into_iter().filter(|field| text(&from[*field]).is_empty()) {
            errors.required(&format!("{path}.{field}"), "");
        }
        let group = text(&from["apiGroup"]);
        if group.is_empty() && text(&from["kind"]) != "PersistentVolumeClaim" {
            let kind = text(&from["kind"]).into();
            errors.invalid(&path, &kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        } else if !group.is_empty() {
            errors.name(&format!("{path}.apiGroup"), &from["apiGroup"], NameRule::Subdomain);
        }
        if !text(&from["namespace"]).is_empty() {
            errors.name(&format!("{path}.namespace"), &from["namespace"], NameRule::Label);
        }
    }
    let fields = ["apiGroup", "kind", "name"];
    if !source.is_null() && !text(&reference["namespace"]).is_empty() {
        errors.invalid(path, source, "may not be specified when dataSourceRef.namespace is specified");
    } else if !source.is_null()
        && !reference.is_null()
        && fields.iter().any(|field| source[*field] != reference[*field])
    {
        errors.invalid(path, source, "must match dataSourceRef");
    }
}
