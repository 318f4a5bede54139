//! Field errors of an object: one constructor for each error type of `k8s.io/apimachinery/pkg/util/validation/field`.

use serde_json::Value;

/// One entry of `details.causes` in a `Status` with the reason `Invalid`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FieldError {
    /// The type of the error, such as `FieldValueInvalid` (`field.ErrorType`).
    pub reason: &'static str,
    /// The message, without the path of the field.
    pub message: String,
    /// The path of the field, or `<nil>` if kube-apiserver names no field.
    pub field: String,
}

impl FieldError {
    /// Creates an error of any type. `message` does not repeat the path.
    pub(crate) fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }

    /// Returns `Required value`, for a field that is absent or empty.
    pub(crate) fn required(field: &str, detail: &str) -> Self {
        Self::new("FieldValueRequired", field, with_detail("Required value", detail))
    }

    /// Returns `Invalid value`, with the value as JSON.
    pub(crate) fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, with_detail(&format!("Invalid value: {value}"), detail))
    }

    /// Returns `Forbidden`, for a field that may not be set here.
    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, with_detail("Forbidden", detail))
    }

    /// Returns `Duplicate value`, for the second item of a list with the same key.
    pub(crate) fn duplicate(field: &str) -> Self {
        Self::new("FieldValueDuplicate", field, "Duplicate value".to_owned())
    }

    /// Returns `Unsupported value`, with the supported values in the message.
    pub(crate) fn not_supported(field: &str, value: &Value, supported: &[impl std::fmt::Debug]) -> Self {
        Self::new(
            "FieldValueNotSupported",
            field,
            format!("Unsupported value: {value}: supported values: {supported:?}"),
        )
    }

    /// Returns `Too long`. As upstream, the message counts in bytes.
    pub(crate) fn too_long(field: &str, len_max: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {len_max} bytes"))
    }

    /// Returns `Too many`, with the number of items that were found.
    pub(crate) fn too_many(field: &str, found: usize, len_max: usize) -> Self {
        Self::new("FieldValueTooMany", field, format!("Too many: {found}: must have at most {len_max} items"))
    }

    /// Returns an error without a field, which upstream prints with the path `<nil>`.
    pub(crate) fn without_field(detail: &str) -> Self {
        Self::new("FieldValueInvalid", "<nil>", format!("Invalid value: {detail}"))
    }
}

/// Appends a detail to the name of an error type, unless the detail is empty.
pub(crate) fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}
