//! `PersistentVolumeClaim` of the core group: a request for storage that binds to a `PersistentVolume`.
//!
//! The server adds the protection finalizer, keeps `dataSource` and `dataSourceRef` equal, and counts claims and
//! requested storage in quotas, in total and by storage class.
//!
//! - The spec is immutable, apart from requests and `volumeAttributesClassName` of a bound claim.
//! - A delete returns the object; the finalizer `kubernetes.io/pvc-protection` keeps a claim that a Pod uses.
//!
//! Upstream: `pkg/registry/core/persistentvolumeclaim/strategy.go` and `pkg/apis/core/validation/validation.go`.

mod quota;
pub(crate) mod validation;

use serde_json::{Value, json};

use crate::{
    defaulting::{add, fill, part},
    feature_gates::{self, Gate},
    json_path::set,
    kinds::core::persistent_volume::{
        CLASS_ANNOTATION, CLASS_IS_A_FIELD,
        table::{access_modes, phase, storage, storage_class_name},
    },
    registry::kind::{
        Cell, Defaults, DeleteStrategy, Environment, Kind, ManagedFields, OwnedState, Plugin, Quota, Strategy,
        Subresource, TableColumns, Validation,
    },
    table::{fields::text, labels::UNSET},
    validation::warnings::claim,
};

pub(crate) static KIND: Kind = Kind {
    resource: "persistentvolumeclaims",
    kind: "PersistentVolumeClaim",
    admission: &[
        Plugin::LimitRangerForClaims,
        Plugin::DefaultStorageClass,
        Plugin::StorageObjectInUseProtection("kubernetes.io/pvc-protection"),
        Plugin::PersistentVolumeClaimResize,
    ],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { prepare_create, prepare_update, ..Strategy::DEFAULT },
    validation: Validation {
        validate: validation::validate,
        validate_update: validation::validate_update,
        validate_status: |_, new, errors| validation::validate_status(new, errors),
        warn: |_, object, warnings| warn(object, warnings),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/spec/dataSource", "/spec/dataSourceRef"],
        complete_sent: Some(complete_sent),
        owned_state: OwnedState::SentWithoutFilledIn,
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|claim, _| phase(claim).into()),
        Cell::Text("/spec/volumeName"),
        Cell::Computed(|claim, _| cell_if_bound(claim, storage, "/status/capacity/storage").into()),
        Cell::Computed(|claim, _| cell_if_bound(claim, access_modes, "/status/accessModes").into()),
        Cell::Computed(|claim, _| storage_class_name(claim).into()),
        Cell::TextOr("/spec/volumeAttributesClassName", UNSET),
        Cell::Age,
        Cell::TextOr("/spec/volumeMode", UNSET),
    ]),
    quota: QUOTA,
    ..Kind::DEFAULT
};

/// Counts claims and their requested storage, in total and by storage class. A change of the status may change the
/// usage: a volume that was made larger counts with its allocated size.
const QUOTA: Quota = Quota {
    counts: quota::counts,
    usage: |claim, _| quota::usage(claim),
    changes_usage: |subresource, _, _| subresource.is_main() || subresource.is_status(),
    frees_usage: Some(|old, new, _| old.is_some_and(|old| old["status"] != new["status"])),
    is_in_scope: quota::is_in_scope,
    ..Quota::DEFAULT
};

/// Adds the group of the data source, which Go writes as null if it is absent.
fn complete_sent(sent: &mut Value) {
    if let Some(Value::Object(source)) = sent["spec"].get_mut("dataSourceRef") {
        source.entry("apiGroup").or_insert(Value::Null);
    }
}

/// Resets the status to the phase `Pending` and normalizes the data source (`persistentvolumeclaimStrategy`).
fn prepare_create(_: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Pending" });
    normalize_data_sources(None, &mut object["spec"]);
}

/// Normalizes the data source in an update of the claim. A write of the status does not change the spec.
fn prepare_update(subresource: Subresource, old: &Value, new: &mut Value) {
    if subresource.is_main() {
        normalize_data_sources(old["spec"].get("dataSource"), &mut new["spec"]);
    }
}

/// Normalizes `dataSource` and `dataSourceRef`, which name the same source. `dataSource` accepts only a few kinds,
/// unless the stored claim has another kind (`EnforceDataSourceBackwardsCompatibility` and `NormalizeDataSources`). An
/// unknown kind in `dataSource` is dropped without an error; `dataSourceRef` accepts any kind. References to other
/// namespaces are dropped unless the feature gate `CrossNamespaceVolumeDataSource` is on.
fn normalize_data_sources(before: Option<&Value>, spec: &mut Value) {
    let is_taken = |source: &Value| {
        let kind = (source["apiGroup"].as_str().unwrap_or_default(), source["kind"].as_str().unwrap_or_default());
        [("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")].contains(&kind)
    };
    let has = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
    let allows_namespace = feature_gates::is_enabled(Gate::CrossNamespaceVolumeDataSource);
    if !allows_namespace && has(&spec["dataSourceRef"]["namespace"]) {
        set(spec, "dataSourceRef", None);
    }
    let was_there = before.is_some_and(|source| !source.is_null());
    if !was_there && spec["dataSourceRef"].is_null() && !is_taken(&spec["dataSource"]) {
        set(spec, "dataSource", None);
    }
    share_sources(spec);
}

/// Copies one of the two fields to the other if that is absent. A reference with a namespace is not copied, because
/// `dataSource` has no namespace.
fn share_sources(spec: &mut Value) {
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) if !source.is_null() => set(spec, "dataSourceRef", Some(source)),
        (None, Some(mut reference)) if !reference.is_null() && text(&reference, "/namespace").is_empty() => {
            set(&mut reference, "namespace", None);
            set(spec, "dataSource", Some(reference));
        }
        _ => {}
    }
}

/// Returns a cell about the volume, which is empty until the claim names one.
fn cell_if_bound(claim: &Value, cell: fn(&Value, &str) -> String, pointer: &str) -> String {
    if text(claim, "/spec/volumeName").is_empty() { String::new() } else { cell(claim, pointer) }
}

/// Fills in the defaults of a claim (`SetDefaults_PersistentVolumeClaim`). The claim templates of a `StatefulSet` and
/// of ephemeral volumes get them as well.
pub(crate) fn default(object: &mut Value) {
    add(part(object, "spec"), "volumeMode", "Filesystem");
    fill(part(object, "status"), "phase", "Pending");
}

/// Warns about a `PersistentVolumeClaim`.
fn warn(object: &Value, texts: &mut Vec<String>) {
    claim(&object["spec"], "spec", texts);
    if object["metadata"]["annotations"].get(CLASS_ANNOTATION).is_some() {
        texts.push(format!("metadata.annotations[{CLASS_ANNOTATION}]: {CLASS_IS_A_FIELD}"));
    }
}

/// Returns the class that a claim names (`GetPersistentVolumeClaimClass`). An empty string is also a class, which
/// disables dynamic provisioning. This function returns `""` for it and for an absent class.
pub(crate) fn class_of_claim(claim: &Value) -> &str {
    let by_annotation = claim["metadata"]["annotations"][CLASS_ANNOTATION].as_str();
    by_annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
