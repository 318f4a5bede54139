//! Custom resources: what a `CustomResourceDefinition` says, and what its schema does to an object. Reads JSON and hands
//! on field errors, the names of pruned fields and defaulted objects, as the real API server does.

use serde_json::Value;

mod default;
pub mod definition;
mod definition_rules;
mod format;
mod go;
mod lists;
mod names;
mod number;
mod pattern;
mod prune;
mod rules;
mod structural;
mod validate;

pub use default::default;
pub use definition::{Definition, accept_names, default_definition};
pub use definition_rules::{forbidden_changes, validate_definition};
pub use prune::prune;
pub use rules::Rules;
pub use validate::validate;

/// One entry of `details.causes` of a `Status` with the reason `Invalid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The kind of the error, such as `FieldValueRequired`.
    pub reason: &'static str,
    /// What is wrong, without the field.
    pub message: String,
    /// The path of the field, or `<nil>` where the real server names none.
    pub field: String,
}

impl FieldError {
    fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.to_owned() }
    }

    fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new("FieldValueRequired", field, message)
    }

    fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", go::value(value)))
    }

    fn forbidden(field: &str, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    fn duplicate(field: &str, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", go::value(value)))
    }

    fn not_supported(field: &str, value: &Value, supported: &[String]) -> Self {
        let supported: Vec<String> = supported.iter().map(|text| go::quote(text)).collect();
        let message = format!("Unsupported value: {}: supported values: {}", go::value(value), supported.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    /// An error of the upstream validator that names no field.
    fn nameless(detail: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: \"\": {detail}"), field: "<nil>".into() }
    }
}

#[cfg(test)]
mod tests;
