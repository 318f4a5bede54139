//! One object in several versions of its kind.

use serde_json::Value;

use crate::{kinds::Resource, request::Call, status::Refusal};

/// An object in the version of a resource.
pub(crate) fn convert(_call: &Call, to: &Resource, object: &Value) -> Result<Value, Refusal> {
    Ok(super::read::in_version(to, object).unwrap_or_else(|| object.clone()))
}
