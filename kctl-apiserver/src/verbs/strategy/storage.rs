//! What claims are filled from, and what protects volumes.

use serde_json::{Value, json};

use super::set;
use crate::kinds::Resource;

/// What a claim is filled from: two fields tell the same, and one of them takes few kinds, where it was not there before
/// (`EnforceDataSourceBackwardsCompatibility` and `NormalizeDataSources`).
pub(super) fn settle_sources(before: Option<&Value>, spec: &mut Value) {
    let is_taken = |source: &Value| {
        let (group, kind) = (source["apiGroup"].as_str().unwrap_or_default(), source["kind"].as_str());
        matches!(
            (group, kind),
            ("", Some("PersistentVolumeClaim")) | ("snapshot.storage.k8s.io", Some("VolumeSnapshot"))
        )
    };
    let has = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    // `CrossNamespaceVolumeDataSource` is off by default.
    if has(&spec["dataSourceRef"]["namespace"]) {
        set(spec, "dataSourceRef", None);
    }
    let was_there = before.is_some_and(|source| !source.is_null());
    if !was_there && spec["dataSourceRef"].is_null() && !is_taken(&spec["dataSource"]) {
        set(spec, "dataSource", None);
    }
    share_sources(spec);
}

/// The two fields tell the same, where one of them is not there.
fn share_sources(spec: &mut Value) {
    let (source, reference) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    match (source, reference) {
        (Some(source), None) if !source.is_null() => set(spec, "dataSourceRef", Some(source)),
        (None, Some(mut reference)) if !reference.is_null() => {
            set(&mut reference, "namespace", None);
            set(spec, "dataSource", Some(reference));
        }
        _ => {}
    }
}

/// What the admission plugin `StorageObjectInUseProtection` adds.
pub(super) fn protect_storage(resource: &Resource, object: &mut Value) {
    let name = match resource.of.resource.as_str() {
        "persistentvolumes" => "pv",
        "volumeattributesclasses" => "vac",
        _ => "pvc",
    };
    let finalizer = Value::from(format!("kubernetes.io/{name}-protection"));
    match &mut object["metadata"]["finalizers"] {
        Value::Array(list) if list.contains(&finalizer) => {}
        Value::Array(list) => list.push(finalizer),
        none => *none = json!([finalizer]),
    }
}
