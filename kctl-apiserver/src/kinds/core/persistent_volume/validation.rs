//! Validation of `PersistentVolume`s, and of those inside of `VolumeAttachment`s.
//!
//! Upstream: `ValidatePersistentVolume` and `ValidatePersistentVolumeUpdate` in
//! `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    kinds::core::persistent_volume_claim::validation::validate_amount,
    names::NameRule,
    validation::{
        affinity, entries,
        immutable::immutable_field,
        paths, resources,
        volume_claim::access_modes,
        volume_source::{self, SourceOwner},
    },
};

/// Beta names of node labels with the stable names that have replaced them.
///
/// An update may replace one by the other in the node affinity, which is immutable otherwise.
const RENAMED: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

/// Validates an update of a volume.
///
/// | field | may it change? |
/// |---|---|
/// | source, such as `csi` or `nfs` | no (`FieldValueForbidden`) |
/// | `volumeMode` | no |
/// | `nodeAffinity` | it may be added; then only beta names of labels may be replaced |
/// | `volumeAttributesClassName` | yes, but it cannot be unset |
/// | capacity, access modes, reclaim policy, claim | yes |
///
/// Two errors have the paths `volumeMode` and `nodeAffinity` without `spec`, as in kube-apiserver.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    if SOURCES.iter().any(|source| was[*source] != is[*source]) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden("spec.persistentvolumesource", detail);
    }
    immutable_field("volumeMode", &was["volumeMode"], &is["volumeMode"], errors);
    if !was["nodeAffinity"].is_null() && !is_renamed(&was["nodeAffinity"], &is["nodeAffinity"]) {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.invalid("nodeAffinity", &is["nodeAffinity"], detail);
    }
    let class = "volumeAttributesClassName";
    if !was[class].is_null() && is[class].is_null() {
        errors.forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden");
    }
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
            if RENAMED.iter().any(|(beta, name)| before["key"] == *beta && after["key"] == *name) {
                before["key"] = after["key"].clone();
            }
        }
    }
    was == is
}

/// Validates a volume: access modes, capacity, source, affinity and class.
///
/// Access modes, a capacity and one source are required. Most sources have the rules of the same
/// source in a Pod.
///
/// | field | rule |
/// |---|---|
/// | `accessModes` | at least one |
/// | `capacity` | `storage` above 0, and nothing else |
/// | `nodeAffinity` | `required` must be set |
/// | source | exactly one, apart from `flexVolume` |
/// | `persistentVolumeReclaimPolicy` | not `Recycle` for the host path `/` |
/// | `volumeAttributesClassName` | not empty, and only for CSI |
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required("spec.accessModes", "");
    }
    access_modes(&spec["accessModes"], "spec.accessModes", errors);
    capacity(&spec["capacity"], errors);
    affinity_of_volume(&spec["nodeAffinity"], errors);
    sources(text(&object["metadata"]["name"]), spec, "spec", errors);
    recycling(spec, "spec", errors);
    if !text(&spec["storageClassName"]).is_empty() {
        errors.name("spec.storageClassName", &spec["storageClassName"], NameRule::Subdomain);
    }
    attributes(spec, errors);
}

/// Validates an inline volume of a `VolumeAttachment` (`ValidatePersistentVolumeSpec` of an inline volume).
///
/// A `VolumeAttachment` has one for volumes of a Pod that were migrated to CSI. Only a CSI source
/// is valid; fields about binding and reclaiming make no sense there and are `FieldValueForbidden`.
pub(crate) fn inline_volume(spec: &Value, path: &str, errors: &mut Errors) {
    let field = |name: &str| format!("{path}.{name}");
    let unsaid = "may not be specified in the context of inline volumes";
    if !spec["claimRef"].is_null() {
        errors.forbidden(&field("claimRef"), unsaid);
    }
    if pairs(&spec["capacity"]).next().is_some() {
        errors.forbidden(&field("capacity"), unsaid);
    }
    if spec["csi"].is_null() {
        errors.required(&field("csi"), "has to be specified in the context of inline volumes");
    }
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required(&field("accessModes"), "");
    }
    access_modes(&spec["accessModes"], &field("accessModes"), errors);
    if !["", "Retain"].contains(&text(&spec["persistentVolumeReclaimPolicy"])) {
        let detail = "may only be Retain in the context of inline volumes";
        errors.forbidden(&field("persistentVolumeReclaimPolicy"), detail);
    }
    if !spec["nodeAffinity"].is_null() {
        errors.forbidden(&field("nodeAffinity"), unsaid);
    }
    sources("", spec, path, errors);
    recycling(spec, path, errors);
    if !text(&spec["storageClassName"]).is_empty() {
        errors.forbidden(&field("storageClassName"), unsaid);
    }
    if !spec["volumeMode"].is_null() && spec["volumeMode"] != "Filesystem" {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.forbidden(&field("volumeMode"), detail);
    }
}

/// Rejects the reclaim policy `Recycle` for the host path `/`: the recycler would delete all files
/// of the node.
fn recycling(spec: &Value, path: &str, errors: &mut Errors) {
    if spec["hostPath"]["path"] == "/" && spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        let path = format!("{path}.persistentVolumeReclaimPolicy");
        errors.forbidden(&path, "may not be 'recycle' for a hostPath mount of '/'");
    }
}

/// Validates the `VolumeAttributesClass` of a volume, which only volumes of CSI drivers have.
fn attributes(spec: &Value, errors: &mut Errors) {
    let (class, path) = (&spec["volumeAttributesClassName"], "spec.volumeAttributesClassName");
    if class.is_null() {
        return;
    }
    if text(class).is_empty() {
        errors.required(path, "an empty string is disallowed");
    } else {
        errors.name(path, class, NameRule::Subdomain);
    }
    if spec["csi"].is_null() {
        errors.required("spec.csi", "has to be specified when using volumeAttributesClassName");
    }
}

/// Validates `spec.capacity`: exactly the resource `storage`, with an amount above 0.
fn capacity(capacity: &Value, errors: &mut Errors) {
    let path = "spec.capacity";
    if pairs(capacity).next().is_none() {
        errors.required(path, "");
    }
    if capacity["storage"].is_null() || pairs(capacity).count() > 1 {
        errors.unsupported(path, capacity, &["storage"]);
    }
    for (name, amount) in pairs(capacity) {
        let path = format!("{path}[{name}]");
        validate_amount(amount, &path, errors);
        if resources::size(amount).is_some_and(|size| size <= 0) {
            errors.invalid(&path, amount, "must be greater than zero");
        }
    }
}

/// Validates the nodes from which a volume is reachable. Only required terms exist; preferred ones
/// would have no effect.
fn affinity_of_volume(affinity: &Value, errors: &mut Errors) {
    if affinity.is_null() {
        return;
    }
    if affinity["required"].is_null() {
        return errors.required("spec.nodeAffinity.required", "must specify required node constraints");
    }
    affinity::node_selector(&affinity["required"], "spec.nodeAffinity.required", errors);
}

/// Fields of the spec that hold a source of storage, in the order in which kube-apiserver validates
/// them.
///
/// The first of several sources is valid; all others are
/// `FieldValueForbidden`.
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

/// The only source that kube-apiserver does not reject in addition to another one.
const FLEX: &str = "flexVolume";

/// Validates that the volume has exactly one source, and validates it.
///
/// Errors of tags below a superfluous source are dropped, because kube-apiserver does not look into
/// it. `name` is the name of the volume, which some sources use in their errors.
fn sources(name: &str, spec: &Value, path: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().copied().filter(|source| spec[*source].is_object()).peekable();
    if given.peek().is_none() {
        return errors.required(path, "must specify a volume type");
    }
    for (index, source) in given.enumerate() {
        if index > 0 && source != FLEX {
            errors.leave_out(&format!("{path}.{source}."));
            let told = if source == "cephfs" { "cephFS" } else { source };
            errors.forbidden(&format!("{path}.{told}"), "may not specify more than 1 volume type");
        } else if source == "local" {
            local(spec, path, errors);
        } else {
            volume_source::source(source, &spec[source], SourceOwner::Cluster(name), path, errors);
        }
    }
}

/// Validates a `local` volume: a path without `..`, and node affinity, because the path exists on
/// one node only.
fn local(spec: &Value, field_path: &str, errors: &mut Errors) {
    let (path, path_field) = (&spec["local"]["path"], format!("{field_path}.local.path"));
    if text(path).is_empty() {
        errors.required(&path_field, "");
    } else {
        paths::without_backsteps(path, &path_field, errors);
    }
    if spec["nodeAffinity"].is_null() {
        errors.required(&format!("{field_path}.nodeAffinity"), "Local volume requires node affinity");
    }
}
