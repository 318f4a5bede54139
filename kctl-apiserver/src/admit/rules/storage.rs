//! Rules of claims, volumes, classes of storage and drivers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    Errors, affinity, attached, declared, entries, pairs, resources, text,
    volume_source::{self, Of},
};
use crate::{names::NameRule, quantity::Quantity};

pub(crate) fn claim(object: &Value, errors: &mut Errors) {
    claim_spec(&object["spec"], "spec", errors);
}

/// What a claim asks for, also in templates of claims.
pub(crate) fn claim_spec(spec: &Value, at: &str, errors: &mut Errors) {
    let modes_at = format!("{at}.accessModes");
    if entries(&spec["accessModes"]).next().is_none() {
        errors.required(&modes_at, "at least 1 access mode is required");
    }
    super::selector::selector(&spec["selector"], &format!("{at}.selector"), errors);
    access_modes(&spec["accessModes"], &modes_at, errors);
    let (storage, storage_at) = (&spec["resources"]["requests"]["storage"], format!("{at}.resources[storage]"));
    match resources::size(storage) {
        None => errors.required(&storage_at, ""),
        Some(size) if size <= 0 => errors.invalid(&storage_at, storage, "must be greater than zero"),
        Some(_) => {}
    }
    if !text(&spec["storageClassName"]).is_empty() {
        errors.name(&format!("{at}.storageClassName"), &spec["storageClassName"], NameRule::Subdomain);
    }
    data_sources(spec, at, errors);
    if !text(&spec["volumeAttributesClassName"]).is_empty() {
        let at = format!("{at}.volumeAttributesClassName");
        errors.name(&at, &spec["volumeAttributesClassName"], NameRule::Subdomain);
    }
}

pub(crate) fn access_modes(list: &Value, at: &str, errors: &mut Errors) {
    const ALONE: &str = "ReadWriteOncePod";
    let modes = declared::values("core.v1.PersistentVolumeClaimSpec", "accessModes");
    for (_, mode) in entries(list) {
        errors.one_of(at, mode, &modes);
    }
    let is_alone = entries(list).any(|(_, mode)| mode == ALONE);
    if is_alone && entries(list).any(|(_, mode)| mode != ALONE) {
        errors.forbidden(at, "may not use ReadWriteOncePod with other access modes");
    }
}

/// Where the content of a volume comes from. What is told by one of the two fields is in the other one, too.
fn data_sources(spec: &Value, at: &str, errors: &mut Errors) {
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    for (from, name) in [(source, "dataSource"), (reference, "dataSourceRef")] {
        if from.is_null() {
            continue;
        }
        let at = format!("{at}.{name}");
        for field in ["name", "kind"].into_iter().filter(|field| text(&from[*field]).is_empty()) {
            errors.required(&format!("{at}.{field}"), "");
        }
        let group = text(&from["apiGroup"]);
        if group.is_empty() && text(&from["kind"]) != "PersistentVolumeClaim" {
            let kind = text(&from["kind"]).into();
            errors.invalid(&at, &kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
        } else if !group.is_empty() {
            errors.name(&format!("{at}.apiGroup"), &from["apiGroup"], NameRule::Subdomain);
        }
        if !text(&from["namespace"]).is_empty() {
            errors.name(&format!("{at}.namespace"), &from["namespace"], NameRule::Label);
        }
    }
    let fields = ["apiGroup", "kind", "name"];
    if !source.is_null() && !text(&reference["namespace"]).is_empty() {
        errors.shown(at, "{}", "may not be specified when dataSourceRef.namespace is specified");
    } else if !source.is_null()
        && !reference.is_null()
        && fields.iter().any(|field| source[*field] != reference[*field])
    {
        errors.shown(at, "{}", "must match dataSourceRef");
    }
}

pub(crate) fn volume(object: &Value, errors: &mut Errors) {
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

/// A volume that is written out where it is attached (`ValidatePersistentVolumeSpec` of one that is inline).
pub(crate) fn inline_volume(spec: &Value, at: &str, errors: &mut Errors) {
    let field = |name: &str| format!("{at}.{name}");
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
    sources("", spec, at, errors);
    recycling(spec, at, errors);
    if !text(&spec["storageClassName"]).is_empty() {
        errors.forbidden(&field("storageClassName"), unsaid);
    }
    if !spec["volumeMode"].is_null() && spec["volumeMode"] != "Filesystem" {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.forbidden(&field("volumeMode"), detail);
    }
}

/// Nobody empties the whole of a node.
fn recycling(spec: &Value, at: &str, errors: &mut Errors) {
    if spec["hostPath"]["path"] == "/" && spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        let at = format!("{at}.persistentVolumeReclaimPolicy");
        errors.forbidden(&at, "may not be 'recycle' for a hostPath mount of '/'");
    }
}

/// The class of a volume's attributes, which drivers alone have.
fn attributes(spec: &Value, errors: &mut Errors) {
    let (class, at) = (&spec["volumeAttributesClassName"], "spec.volumeAttributesClassName");
    if class.is_null() {
        return;
    }
    if text(class).is_empty() {
        errors.required(at, "an empty string is disallowed");
    } else {
        errors.name(at, class, NameRule::Subdomain);
    }
    if spec["csi"].is_null() {
        errors.required("spec.csi", "has to be specified when using volumeAttributesClassName");
    }
}

fn capacity(capacity: &Value, errors: &mut Errors) {
    let at = "spec.capacity";
    if pairs(capacity).next().is_none() {
        errors.required(at, "");
    }
    if capacity["storage"].is_null() || pairs(capacity).count() > 1 {
        errors.unsupported(at, &capacity.to_string(), &["storage"]);
    }
    for (name, amount) in pairs(capacity) {
        let at = format!("{at}[{name}]");
        amount_of_claim(amount, &at, errors);
        if resources::size(amount).is_some_and(|size| size <= 0) {
            errors.invalid(&at, amount, "must be greater than zero");
        }
    }
}

fn affinity_of_volume(affinity: &Value, errors: &mut Errors) {
    if affinity.is_null() {
        return;
    }
    if affinity["required"].is_null() {
        return errors.required("spec.nodeAffinity.required", "must specify required node constraints");
    }
    affinity::node_selector(&affinity["required"], "spec.nodeAffinity.required", errors);
}

/// The sources of volumes in the order in which the real server looks for them, which is not that of pods.
pub(crate) const SOURCES: &[&str] = &[
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
/// The source that the real server takes beside another one.
const FLEX: &str = "flexVolume";

fn sources(name: &str, spec: &Value, at: &str, errors: &mut Errors) {
    let mut given = SOURCES.iter().copied().filter(|source| spec[*source].is_object()).peekable();
    if given.peek().is_none() {
        return errors.required(at, "must specify a volume type");
    }
    for (index, source) in given.enumerate() {
        if index > 0 && source != FLEX {
            errors.leave_out(&format!("{at}.{source}."));
            let told = if source == "cephfs" { "cephFS" } else { source };
            errors.forbidden(&format!("{at}.{told}"), "may not specify more than 1 volume type");
        } else if source == "local" {
            local(spec, at, errors);
        } else {
            volume_source::source(source, &spec[source], Of::Cluster(name), at, errors);
        }
    }
}

fn local(spec: &Value, at: &str, errors: &mut Errors) {
    let (path, path_at) = (&spec["local"]["path"], format!("{at}.local.path"));
    if text(path).is_empty() {
        errors.required(&path_at, "");
    } else {
        super::paths::without_backsteps(path, &path_at, errors);
    }
    if spec["nodeAffinity"].is_null() {
        errors.required(&format!("{at}.nodeAffinity"), "Local volume requires node affinity");
    }
}

pub(crate) fn class(object: &Value, errors: &mut Errors) {
    errors.qualified_name_if_set("provisioner", &text(&object["provisioner"]).to_lowercase());
    attached::parameters(&object["parameters"], errors);
    // `Recycle` is for PersistentVolumes alone.
    if object["reclaimPolicy"] == "Recycle" {
        errors.one_of("reclaimPolicy", &object["reclaimPolicy"], &["Delete", "Retain"]);
    }
    topologies(&object["allowedTopologies"], errors);
}

/// Where volumes of a class may be: terms of which no two allow the same.
fn topologies(terms: &Value, errors: &mut Errors) {
    // Upstream begins with as many terms that ask for nothing as there are terms.
    let mut known = vec![BTreeMap::new(); entries(terms).count()];
    for (index, term) in entries(terms) {
        let at = format!("allowedTopologies[{index}].matchLabelExpressions");
        let mut asked: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (nth, requirement) in entries(&term["matchLabelExpressions"]) {
            let (at, key) = (format!("{at}[{nth}]"), text(&requirement["key"]));
            let values: Vec<&str> = entries(&requirement["values"]).map(|(_, value)| text(value)).collect();
            if values.is_empty() {
                errors.required(&format!("{at}.values"), "");
            }
            for (nth, value) in values.iter().enumerate().filter(|(nth, value)| values[..*nth].contains(value)) {
                errors.duplicate(&format!("{at}.values[{nth}]"), &Value::from(*value).to_string());
            }
            errors.qualified_name(&format!("{at}.key"), key);
            if asked.insert(key, values.into_iter().collect()).is_some() {
                errors.duplicate(&format!("{at}.key"), &Value::from(key).to_string());
            }
        }
        for _ in known.iter().filter(|other| **other == asked) {
            errors.duplicate(&at, "\"\"");
        }
        known.push(asked);
    }
}

pub(crate) fn csi_driver(object: &Value, errors: &mut Errors) {
    /// Seconds for which the token of a pod lives at least.
    const TOKEN_SECONDS_MIN: i64 = 600;
    /// Seconds between two looks at what a node can take.
    const UPDATE_SECONDS_MIN: i64 = 10;
    let spec = &object["spec"];
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.one_of("spec.fsGroupPolicy", &spec["fsGroupPolicy"], &policies);
    let mut audiences = Vec::new();
    for (index, request) in entries(&spec["tokenRequests"]) {
        let at = format!("spec.tokenRequests[{index}]");
        let (audience, seconds) = (text(&request["audience"]), &request["expirationSeconds"]);
        if audiences.contains(&audience) {
            errors.duplicate(&format!("{at}.audience"), &format!("{audience:?}"));
            continue;
        }
        audiences.push(audience);
        if seconds.as_i64().is_some_and(|seconds| seconds < TOKEN_SECONDS_MIN) {
            let detail = "may not specify a duration less than 10 minutes";
            errors.invalid(&format!("{at}.expirationSeconds"), seconds, detail);
        }
    }
    for (_, mode) in entries(&spec["volumeLifecycleModes"]) {
        errors.one_of("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
    }
    let period = &spec["nodeAllocatableUpdatePeriodSeconds"];
    if period.as_i64().is_some_and(|seconds| seconds < UPDATE_SECONDS_MIN) {
        let detail = format!("must be greater than or equal to {UPDATE_SECONDS_MIN} seconds");
        errors.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, &detail);
    }
    let in_secrets = &spec["serviceAccountTokenInSecrets"];
    if !in_secrets.is_null() && entries(&spec["tokenRequests"]).next().is_none() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid("spec.serviceAccountTokenInSecrets", in_secrets, detail);
    }
}

/// What becomes of a claim (`ValidatePersistentVolumeClaimStatusUpdate`).
pub(crate) fn status_of_claim(object: &Value, errors: &mut Errors) {
    let resizes = declared::values("core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses");
    let status = &object["status"];
    for (name, amount) in pairs(&status["capacity"]) {
        amount_of_claim(amount, &format!("status.capacity[{name}]"), errors);
    }
    let at = "status.allocatedResourceStatuses";
    for (name, resize) in pairs(&status["allocatedResourceStatuses"]) {
        key_of_claim(name, at, errors);
        if !resizes.contains(&text(resize)) {
            errors.unsupported(at, &Value::from(name).to_string(), &resizes);
        }
    }
    let at = "status.allocatedResources";
    for (name, amount) in pairs(&status["allocatedResources"]) {
        if key_of_claim(name, at, errors) {
            amount_of_claim(amount, &format!("{at}[{name}]"), errors);
        }
    }
}

/// Whether something may be what a claim has of a volume.
fn key_of_claim(name: &str, at: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.qualified_name(at, name);
    if errors.len() == before && resources::is_native(name) && name != "storage" {
        errors.unsupported(at, &Value::from(name).to_string(), &["storage"]);
    }
    errors.len() == before
}

fn amount_of_claim(amount: &Value, at: &str, errors: &mut Errors) {
    let units = Quantity::parse(text(amount)).map_or(0, Quantity::units);
    if units < 0 {
        errors.shown(at, &units.to_string(), "must be a valid resource quantity");
    }
}
