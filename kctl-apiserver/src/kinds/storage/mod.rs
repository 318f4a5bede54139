//! Kinds of `storage.k8s.io`.
//!
//! The kinds describe storage to schedulers and CSI drivers. Volumes and claims themselves belong
//! to the core group.

pub(crate) mod csi_driver;
pub(crate) mod csi_node;
pub(crate) mod csi_storage_capacity;
pub(crate) mod storage_class;
pub(crate) mod volume_attachment;
pub(crate) mod volume_attributes_class;

use serde_json::{Value, json};

use crate::field_errors::{Errors, pairs};

/// Adds the finalizer of the admission plugin `StorageObjectInUseProtection`. `name` is the short name of the kind.
///
/// The names are `pv`, `pvc` and `vac`, as in `kubernetes.io/pvc-protection`. A controller removes
/// the finalizer when the object is no longer in use. A finalizer that was sent is not added twice.
pub(in crate::kinds) fn protect(name: &str, object: &mut Value) {
    let finalizer = Value::from(format!("kubernetes.io/{name}-protection"));
    match &mut object["metadata"]["finalizers"] {
        Value::Array(list) if list.contains(&finalizer) => {}
        Value::Array(list) => list.push(finalizer),
        none => *none = json!([finalizer]),
    }
}

/// Validates the parameters that a class passes to its driver.
///
/// Only the keys are validated, which may not be empty. The driver interprets the parameters.
pub(crate) fn parameters(parameters: &Value, errors: &mut Errors) {
    for (name, _) in pairs(parameters).filter(|(name, _)| name.is_empty()) {
        errors.invalid("parameters", &name.into(), "field can not be empty.");
    }
}
