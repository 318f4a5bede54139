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

use serde_json::Value;

use crate::field_errors::{Errors, pairs};

/// Validates the parameters that a class passes to its driver.
///
/// Only the keys are validated, which may not be empty. The driver interprets the parameters.
pub(crate) fn parameters(parameters: &Value, errors: &mut Errors) {
    for (name, _) in pairs(parameters).filter(|(name, _)| name.is_empty()) {
        errors.invalid("parameters", &name.into(), "field can not be empty.");
    }
}
