//! Validation of the spec of a `PersistentVolumeClaim`, alone or as a template in Pods and
//! `StatefulSet`s.
//!
//! Upstream: `ValidatePersistentVolumeClaimSpec` in `pkg/apis/core/validation/validation.go`. The rules apply to
//! creation; an update of a claim compares with the old spec in `kinds/core/persistent_volume_claim`.

use crate::{
    field::Field,
    json_path::entries,
    names::NameRule,
    validation::{declared, resources, selector},
};

/// Validates the specification of a claim or of a claim template. The path of the storage request is
/// `resources[storage]`, without `requests`, as upstream prints it. An empty `storageClassName` is valid and means no
/// class, unlike an absent one, which admission replaces by the default class.
pub(crate) fn claim_spec(spec: &Field<'_>) {
    spec.require_children(&["accessModes"]);
    spec.at("selector").check(selector::validate_selector);
    spec.at("accessModes").check(access_modes);
    let storage = spec.at_with("resources[storage]", &spec["resources"]["requests"]["storage"]);
    match resources::size(&storage) {
        None => storage.required(),
        Some(size) => storage.invalid_if(size <= 0, "must be greater than zero"),
    }
    spec.at("storageClassName").name_if_set(NameRule::Subdomain);
    validate_data_sources(spec);
    spec.at("volumeAttributesClassName").name_if_set(NameRule::Subdomain);
}

/// Validates the access modes, also of a `PersistentVolume`. `ReadWriteOncePod` promises a single Pod, so it is alone.
/// Errors are at the list.
pub(crate) fn access_modes(list: &Field<'_>) {
    const ALONE: &str = "ReadWriteOncePod";
    let modes = declared::values("core.v1.PersistentVolumeClaimSpec", "accessModes");
    entries(list).for_each(|(_, mode)| list.with(mode).one_of(&modes));
    let has = |is_alone: bool| entries(list).any(|(_, mode)| (mode == ALONE) == is_alone);
    list.forbidden_if(has(true) && has(false), "may not use ReadWriteOncePod with other access modes");
}

/// Validates `dataSource` and `dataSourceRef`, which must agree. With `dataSourceRef.namespace` the older `dataSource`
/// cannot express the reference and must be absent. Errors about both fields are at the spec.
fn validate_data_sources(spec: &Field<'_>) {
    let both = ["dataSource", "dataSourceRef"].map(|name| spec.at(name));
    for from in both.iter().filter(|from| !from.is_null()) {
        from.require_children(&["name", "kind"]);
        let is_other = from.at("apiGroup").is_empty() && from["kind"] != "PersistentVolumeClaim";
        from.invalid_if(is_other, "must be a PersistentVolumeClaim unless apiGroup is set");
        from.at("apiGroup").name_if_set(NameRule::Subdomain);
        from.at("namespace").name_if_set(NameRule::Label);
    }
    let [source, reference] = both;
    let is_same = || ["apiGroup", "kind", "name"].iter().all(|field| source[*field] == reference[*field]);
    let has_namespace = !reference.at("namespace").is_empty();
    if !source.is_null() && !reference.is_null() && (has_namespace || !is_same()) {
        spec.with(&source).invalid("must match dataSourceRef, and be absent if dataSourceRef.namespace is set");
    }
}
