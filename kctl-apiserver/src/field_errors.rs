//! The field errors that validation of one object collects, with the types of
//! `k8s.io/apimachinery/pkg/util/validation/field`.

use std::{
    collections::BTreeSet,
    ops::{Deref, DerefMut},
};

use serde_json::Value;

pub(crate) use crate::field_error::FieldError;
use crate::names::{NameRule, check_label_value, check_qualified_name};

/// The field errors of one object, in the order in which they were found (`field.ErrorList`).
///
/// Methods add one error each. `field` is the whole path, such as `spec.ports[0].name`. A `value` is printed as JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    found: Vec<FieldError>,
    /// The paths of lists that are too long. Every list with items is looked up here; a search in `found` would take
    /// quadratic time.
    too_long: BTreeSet<String>,
}

impl Deref for Errors {
    type Target = Vec<FieldError>;

    fn deref(&self) -> &Self::Target {
        &self.found
    }
}

impl DerefMut for Errors {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.found
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

impl FromIterator<FieldError> for Errors {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self { found: errors.into_iter().collect(), too_long: BTreeSet::new() }
    }
}

impl Errors {
    /// Returns the errors that a function finds.
    pub(crate) fn collect(validate: impl FnOnce(&mut Self)) -> Self {
        let mut errors = Self::default();
        validate(&mut errors);
        errors
    }

    /// Returns `true` if a list was found too long. Then nothing else is reported about it.
    pub(crate) fn is_too_long(&self, list: &str) -> bool {
        self.too_long.contains(list)
    }

    /// Removes all errors found so far below paths whose values kube-apiserver does not validate.
    ///
    /// Declarative rules (tags) run before the functions, so their errors exist already when a function decides.
    pub(crate) fn discard_errors_below(&mut self, paths: &BTreeSet<String>) {
        let is_below = |field: &str| field.match_indices(['.', '[']).any(|(end, _)| paths.contains(&field[..end]));
        self.found.retain(|error| !is_below(&error.field));
    }

    /// Adds an error of any type.
    fn add(&mut self, reason: &'static str, field: &str, message: String) {
        self.found.push(FieldError::new(reason, field, message));
    }

    /// Adds `Invalid value`.
    pub(crate) fn invalid(&mut self, field: &str, value: &Value, detail: &str) {
        self.found.push(FieldError::invalid(field, value, detail));
    }

    /// Adds `Invalid value` without the value, which is long or confidential.
    pub(crate) fn invalid_without_value(&mut self, field: &str, detail: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {detail}"));
    }

    /// Adds `Internal error`.
    pub(crate) fn internal(&mut self, field: &str, why: &str) {
        self.add("InternalError", field, format!("Internal error: {why}"));
    }

    /// Adds `Required value`.
    pub(crate) fn required(&mut self, field: &str, detail: &str) {
        self.found.push(FieldError::required(field, detail));
    }

    /// Adds `Forbidden`.
    pub(crate) fn forbidden(&mut self, field: &str, detail: &str) {
        self.found.push(FieldError::forbidden(field, detail));
    }

    /// Adds `Duplicate value`, for the second item with the same key.
    pub(crate) fn duplicate(&mut self, field: &str) {
        self.found.push(FieldError::duplicate(field));
    }

    /// Adds `Not found`.
    pub(crate) fn not_found(&mut self, field: &str, value: &Value) {
        self.add("FieldValueNotFound", field, format!("Not found: {value}"));
    }

    /// Adds `Unsupported value` with the supported ones, in the given order.
    pub(crate) fn unsupported(&mut self, field: &str, value: &Value, supported: &[&str]) {
        self.found.push(FieldError::not_supported(field, value, supported));
    }

    /// Adds `Too many`, for a list longer than its limit.
    pub(crate) fn too_many(&mut self, field: &str, found: usize, most: usize) {
        self.too_long.insert(field.to_owned());
        self.found.push(FieldError::too_many(field, found, most));
    }

    /// Adds `Too long`, for a string longer than its limit in bytes.
    pub(crate) fn too_long(&mut self, field: &str, most: usize) {
        self.found.push(FieldError::too_long(field, most));
    }

    /// Checks that a string is one of a few. An absent one is valid.
    pub(crate) fn one_of(&mut self, field: &str, value: &Value, supported: &[&str]) {
        if value.as_str().is_some_and(|value| !supported.contains(&value)) {
            self.unsupported(field, value, supported);
        }
    }

    /// Checks a name by the rule of its kind.
    pub(crate) fn name(&mut self, field: &str, value: &Value, rule: NameRule) {
        if let Some(message) = rule.check(text(value)) {
            self.invalid(field, value, message);
        }
    }

    /// Checks the key of a label or annotation (`ValidateQualifiedName`).
    pub(crate) fn qualified_name(&mut self, field: &str, name: &str) {
        if let Some(message) = check_qualified_name(name) {
            self.invalid(field, &name.into(), message);
        }
    }

    /// Checks keys and values of labels (`ValidateLabels`).
    pub(crate) fn labels(&mut self, field: &str, labels: &Value) {
        for (key, value) in pairs(labels) {
            self.qualified_name(field, key);
            if let Some(message) = check_label_value(text(value)) {
                self.invalid(field, value, message);
            }
        }
    }

    /// Checks keys of annotations, whose prefixes may have upper-case letters.
    pub(crate) fn annotations(&mut self, field: &str, annotations: &Value) {
        for (key, _) in pairs(annotations) {
            if let Some(message) = check_qualified_name(&key.to_lowercase()) {
                self.invalid(field, &key.into(), message);
            }
        }
    }
}

/// Returns the pairs of a map, or nothing for another value.
pub(crate) fn pairs(map: &Value) -> impl Iterator<Item = (&str, &Value)> {
    map.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// Returns a string, or the empty one for another value.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
