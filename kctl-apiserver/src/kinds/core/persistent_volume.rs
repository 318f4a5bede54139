//! `PersistentVolume` of the core group: storage of the cluster that a claim can bind.
//!
//! The server adds the protection finalizer, starts it as `Pending`, and records when the phase last changed.
//!
//! - The source of the storage, `volumeMode` and node affinity are immutable.
//! - A delete returns the object; the finalizer `kubernetes.io/pv-protection` keeps a bound volume.
//!
//! Upstream: `pkg/registry/core/persistentvolume/strategy.go` and `pkg/apis/core/validation/validation.go`.

pub(crate) mod table;
pub(crate) mod validation;

use serde_json::{Value, json};

use crate::{
    defaulting::{add, fill, part, pod},
    json_path::set,
    registry::kind::{Defaults, DeleteStrategy, Environment, Kind, Plugin, Strategy, TableColumns, Validation},
    validation::warnings::old_labels_of_terms,
};

/// The annotation that named the class of a volume or claim before `storageClassName`.
pub(crate) const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The warning about this annotation.
pub(crate) const CLASS_IS_A_FIELD: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

pub(crate) static KIND: Kind = Kind {
    resource: "persistentvolumes",
    kind: "PersistentVolume",
    admission: &[Plugin::StorageObjectInUseProtection("kubernetes.io/pv-protection")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { prepare_create, set_status_times, ..Strategy::DEFAULT },
    validation: Validation {
        validate: validation::validate,
        validate_update: validation::validate_update,
        warn: |_, object, warnings| warn(object, warnings),
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(table::CELLS),
    ..Kind::DEFAULT
};

/// Field of the status with the time of the last change of the phase.
const PHASE_TIME: &str = "lastPhaseTransitionTime";

/// Resets the status to the phase `Pending`. The volume controller makes it `Available` or `Bound`.
fn prepare_create(environment: &mut dyn Environment, object: &mut Value) {
    object["status"] = json!({ "phase": "Pending", PHASE_TIME: environment.now() });
}

/// Sets the time at which the phase was entered, unless the status has it
/// (`persistentvolumeStatusStrategy.PrepareForUpdate`). If the phase changes, a new time from the client is kept. A
/// repeated old time is replaced by the current one.
fn set_status_times(environment: &dyn Environment, old: &Value, new: &mut Value) {
    let (was, is) = (&old["status"], &mut new["status"]);
    if was["phase"] == is["phase"] {
        if is[PHASE_TIME].is_null() {
            set(is, PHASE_TIME, was.get(PHASE_TIME).cloned());
        }
    } else if is[PHASE_TIME].is_null() || is[PHASE_TIME] == was[PHASE_TIME] {
        is[PHASE_TIME] = environment.now().into();
    }
}

/// Fills in the defaults of a volume (`SetDefaults_PersistentVolume`). The source gets the defaults of a Pod's volume.
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    add(spec, "volumeMode", "Filesystem");
    pod::volume_source(spec);
    fill(part(object, "status"), "phase", "Pending");
}

/// Warns about deprecated fields and annotations (`pkg/api/persistentvolume/util.go`).
pub(crate) fn warn(object: &Value, texts: &mut Vec<String>) {
    /// Annotations that fields have replaced, with the end of the warning.
    const OLD_ANNOTATIONS: [(&str, &str); 2] = [
        (CLASS_ANNOTATION, CLASS_IS_A_FIELD),
        ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    /// Sources of storage that a release has deprecated or removed.
    const OLD_SOURCES: [&str; 6] = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];
    let annotations = &object["metadata"]["annotations"];
    let old = OLD_ANNOTATIONS.iter().filter(|(annotation, _)| annotations.get(annotation).is_some());
    texts.extend(old.map(|(annotation, why)| format!("metadata.annotations[{annotation}]: {why}")));
    let spec = &object["spec"];
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        texts.push("spec.persistentVolumeReclaimPolicy: Recycle is deprecated; use dynamic provisioning".into());
    }
    let terms = &spec["nodeAffinity"]["required"]["nodeSelectorTerms"];
    old_labels_of_terms(terms, "spec.nodeAffinity.required.nodeSelectorTerms", texts);
    let old = OLD_SOURCES.iter().filter(|source| spec[**source].is_object());
    texts.extend(old.map(|source| format!("spec.{source}: deprecated, and not functional since v1.31 at the latest")));
}
