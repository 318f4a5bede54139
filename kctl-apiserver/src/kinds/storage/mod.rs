//! Kinds of `storage.k8s.io`.
//!
//! The kinds describe storage to schedulers and CSI drivers. Volumes and claims themselves belong to the core group.

pub(crate) mod csi_driver;
pub(crate) mod csi_node;
pub(crate) mod csi_storage_capacity;
pub(crate) mod storage_class;
pub(crate) mod volume_attachment;
pub(crate) mod volume_attributes_class;

use crate::field::Field;

/// Validates the parameters that a class passes to its driver. Only the keys are validated, which may not be empty. The
/// driver interprets the parameters.
fn validate_parameters(parameters: &Field<'_>) {
    parameters.invalid_if(parameters.get("").is_some(), "must not have an empty key");
}
