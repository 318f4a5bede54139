//! Validation of `PersistentVolume`s, and of those inside of `VolumeAttachment`s.
//!
//! Upstream: `ValidatePersistentVolume` and `ValidatePersistentVolumeUpdate` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    names::NameRule,
    validation::{
        affinity, paths, resources,
        volume_claim::access_modes,
        volume_source::{self, SourceOwner},
        warnings::OLD_LABELS,
    },
};

/// Validates an update of a volume.
///
/// Node affinity may be added; then only beta names of labels may be replaced. Capacity, access modes, reclaim policy
/// and claim may change. Two errors have the paths `volumeMode` and `nodeAffinity` without `spec`, as in
/// kube-apiserver.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (volume, was) = (Field::new(new, "", errors), &old["spec"]);
    let (spec, class) = (volume.at("spec"), "volumeAttributesClassName");
    let is_changed = SOURCES.iter().any(|source| was[*source] != spec[*source]);
    spec.at("persistentvolumesource").forbidden_if(is_changed, "is immutable after creation");
    volume.at("volumeMode").with(&spec["volumeMode"]).immutable(&was["volumeMode"]);
    let affinity = &spec["nodeAffinity"];
    let is_changed = !was["nodeAffinity"].is_null() && !is_renamed(&was["nodeAffinity"], affinity);
    let detail = "is immutable, except for replacing beta names of labels";
    volume.at("nodeAffinity").with(affinity).invalid_if(is_changed, detail);
    spec.at(class).forbidden_if(!was[class].is_null() && spec[class].is_null(), "may not be unset");
}

/// Returns `true` if an update only replaces beta names of node labels by the stable ones.
///
/// Terms and expressions are compared by their position.
fn is_renamed(was: &Value, is: &Value) -> bool {
    let (mut was, mut is) = (was.clone(), is.clone());
    let terms = |affinity: &Value| entries(&affinity["required"]["nodeSelectorTerms"]).count();
    if terms(&was) != terms(&is) {
        return false;
    }
    for index in 0..terms(&is) {
        let term = format!("/required/nodeSelectorTerms/{index}/matchExpressions");
        let (Some(before), Some(after)) = (was.pointer_mut(&term), is.pointer_mut(&term)) else { continue };
        let both = before.as_array_mut().into_iter().flatten().zip(after.as_array_mut().into_iter().flatten());
        for (before, after) in both {
            if OLD_LABELS.iter().any(|(old, _, new)| before["key"] == *old && after["key"] == *new) {
                before["key"] = after["key"].clone();
            }
        }
    }
    was == is
}

/// Validates a volume: access modes, capacity, source, affinity and class.
///
/// Most sources have the rules of the same source in a Pod.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    validate_modes(&spec.at("accessModes"));
    validate_capacity(&spec.at("capacity"));
    validate_node_affinity(&spec.at("nodeAffinity"));
    validate_sources(text(&object["metadata"]["name"]), &spec);
    validate_recycling(&spec);
    spec.at("storageClassName").name_if_set(NameRule::Subdomain);
    let class = spec.at("volumeAttributesClassName");
    if !class.is_null() {
        class.required_name(NameRule::Subdomain);
        // Only volumes of CSI drivers have a `VolumeAttributesClass`.
        spec.at("csi").required_with_if(spec["csi"].is_null(), "must be set when volumeAttributesClassName is set");
    }
}

/// Validates access modes. At least one is required.
fn validate_modes(modes: &Field<'_>) {
    modes.required_if(modes.is_empty());
    modes.check(access_modes);
}

/// Validates an inline volume of a `VolumeAttachment` (`ValidatePersistentVolumeSpec` of an inline volume).
///
/// A `VolumeAttachment` has one for volumes of a Pod that were migrated to CSI. Fields about binding and reclaiming
/// make no sense there.
pub(crate) fn inline_volume(spec: &Field<'_>) {
    let detail = "may not be specified for inline volumes";
    spec.check_children(&["claimRef", "nodeAffinity"], |field| field.forbidden_if(!field.is_null(), detail));
    spec.check_children(&["capacity", "storageClassName"], |field| field.forbidden_if(!field.is_empty(), detail));
    let [policy, mode, csi] = ["persistentVolumeReclaimPolicy", "volumeMode", "csi"].map(|name| spec.at(name));
    csi.required_if(csi.is_null());
    validate_modes(&spec.at("accessModes"));
    policy.forbidden_if(!["", "Retain"].contains(&policy.text()), "may only be Retain for inline volumes");
    mode.forbidden_if(!mode.is_null() && *mode != "Filesystem", "may only be Filesystem for inline volumes");
    validate_sources("", spec);
    validate_recycling(spec);
}

/// Rejects the reclaim policy `Recycle` for the host path `/`: the recycler would delete all files of the node.
fn validate_recycling(spec: &Field<'_>) {
    let (policy, is_root) = (spec.at("persistentVolumeReclaimPolicy"), spec["hostPath"]["path"] == "/");
    policy.forbidden_if(is_root && *policy == "Recycle", "may not be 'recycle' for a hostPath mount of '/'");
}

/// Validates `spec.capacity`: exactly the resource `storage`, with an amount above 0.
fn validate_capacity(capacity: &Field<'_>) {
    capacity.required_if(capacity.is_empty());
    let is_other = capacity["storage"].is_null() || capacity.entries().count() > 1;
    capacity.unsupported_if(is_other, &["storage"]);
    for (_, amount) in capacity.entries() {
        let is_too_small = resources::size(&amount).is_some_and(|size| size <= 0);
        amount.invalid_if(is_too_small, "must be greater than zero");
    }
}

/// Validates the nodes from which a volume is reachable. Only required terms exist; preferred ones would have no
/// effect.
fn validate_node_affinity(affinity: &Field<'_>) {
    let terms = affinity.at("required");
    if !affinity.is_null() && terms.is_null() {
        terms.required();
    } else if !affinity.is_null() {
        terms.check(affinity::node_selector);
    }
}

/// Fields of the spec that hold a source of storage, in the order in which `ValidatePersistentVolumeSpec`
/// (`pkg/apis/core/validation/validation.go`) validates them.
///
/// The first of several sources is valid; all others are `FieldValueForbidden`.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    FLEX,
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// The only source that kube-apiserver does not reject in addition to another source.
const FLEX: &str = "flexVolume";

/// Validates that the volume has exactly one source, and validates it.
///
/// Errors of tags below a superfluous source are dropped, because kube-apiserver does not look into
/// it. `name` is the name of the volume, which some sources use in their errors.
fn validate_sources(name: &str, spec: &Field<'_>) {
    let mut given = SOURCES.iter().copied().filter(|source| spec[*source].is_object()).peekable();
    spec.required_with_if(given.peek().is_none(), "must specify a volume type");
    for (index, source) in given.enumerate() {
        if index > 0 && source != FLEX {
            spec.at(source).discard_errors_below();
            let label = if source == "cephfs" { "cephFS" } else { source };
            spec.at(label).forbidden("may not specify more than 1 volume type");
        } else if source == "local" {
            validate_local(spec);
        } else {
            volume_source::validate_source(source, spec, SourceOwner::Cluster(name));
        }
    }
}

/// Validates a `local` volume, which needs node affinity, because the path exists on one node only.
fn validate_local(spec: &Field<'_>) {
    let (path, affinity) = (spec.at("local").at("path"), spec.at("nodeAffinity"));
    if path.require_value() {
        path.check(paths::without_backsteps);
    }
    affinity.required_with_if(affinity.is_null(), "must be set for a local volume");
}
