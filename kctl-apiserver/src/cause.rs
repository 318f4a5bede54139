//! Field errors of an object, with the messages of kube-apiserver.

use serde_json::Value;

use crate::go;

/// One entry of `details.causes` in a `Status` with the reason `Invalid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The reason of the entry, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The message, without the path of the field.
    pub message: String,
    /// The path of the field, or `<nil>` if kube-apiserver names no field.
    pub field: String,
}

impl Cause {
    pub(crate) fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }

    pub(crate) fn required(field: &str, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, with_detail("Required value", detail))
    }

    pub(crate) fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", go::value(value)))
    }

    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, with_detail("Forbidden", detail))
    }

    pub(crate) fn duplicate(field: &str, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", go::value(value)))
    }

    pub(crate) fn not_supported(field: &str, value: &Value, supported: &[String]) -> Self {
        let supported: Vec<String> = supported.iter().map(|text| go::quote(text)).collect();
        let message = format!("Unsupported value: {}: supported values: {}", go::value(value), supported.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    /// An error of the upstream validator that names no field.
    pub(crate) fn nameless(detail: &str) -> Self {
        Self::new("FieldValueInvalid", "<nil>", format!("Invalid value: \"\": {detail}"))
    }
}

pub(crate) fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}
