//! The field errors that validation of one object collects, with the types of
//! `k8s.io/apimachinery/pkg/util/validation/field`.

use std::ops::{Deref, DerefMut};

use serde_json::Value;

pub(crate) use crate::field_error::FieldError;
use crate::names::{NameRule, check_label_value, check_qualified_name};

/// The field errors of one object, in the order in which they were found (`field.ErrorList`).
///
/// Methods add one error each. `field` is the whole path, such as `spec.ports[0].name`. A `value` is printed as JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Errors(Vec<FieldError>);

impl Deref for Errors {
    type Target = Vec<FieldError>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Errors {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl IntoIterator for Errors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<FieldError> for Errors {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self(errors.into_iter().collect())
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
        self.0.iter().any(|cause| cause.reason == "FieldValueTooMany" && cause.field == list)
    }

    /// Removes the errors of declarative rules (tags) below a path whose value kube-apiserver does not validate.
    ///
    /// Declarative rules run before the functions, so such errors exist already when a function decides.
    pub(crate) fn leave_out(&mut self, path: &str) {
        self.0.retain(|cause| !cause.field.starts_with(path));
    }

    /// Adds an error of any type.
    fn add(&mut self, reason: &'static str, field: &str, message: String) {
        self.0.push(FieldError::new(reason, field, message));
    }

    /// Adds `Invalid value`.
    pub(crate) fn invalid(&mut self, field: &str, value: &Value, detail: &str) {
        self.0.push(FieldError::invalid(field, value, detail));
    }

    /// Adds `Invalid value` without the value, which is long or confidential.
    pub(crate) fn invalid_as_such(&mut self, field: &str, detail: &str) {
        self.add("FieldValueInvalid", field, format!("Invalid value: {detail}"));
    }

    /// Adds `Internal error`.
    pub(crate) fn internal(&mut self, field: &str, why: &str) {
        self.add("InternalError", field, format!("Internal error: {why}"));
    }

    /// Adds `Required value`.
    pub(crate) fn required(&mut self, field: &str, detail: &str) {
        self.0.push(FieldError::required(field, detail));
    }

    /// Adds `Forbidden`.
    pub(crate) fn forbidden(&mut self, field: &str, detail: &str) {
        self.0.push(FieldError::forbidden(field, detail));
    }

    /// Adds `Duplicate value`, for the second item with the same key.
    ///
    /// The first item is never reported.
    pub(crate) fn duplicate(&mut self, field: &str) {
        self.0.push(FieldError::duplicate(field));
    }

    /// Adds `Not found`.
    pub(crate) fn not_found(&mut self, field: &str, value: &Value) {
        self.add("FieldValueNotFound", field, format!("Not found: {value}"));
    }

    /// Adds `Unsupported value` with the supported ones, in the given order.
    pub(crate) fn unsupported(&mut self, field: &str, value: &Value, supported: &[&str]) {
        self.0.push(FieldError::not_supported(field, value, supported));
    }

    /// Adds `Too many`, for a list longer than its limit.
    pub(crate) fn too_many(&mut self, field: &str, found: usize, most: usize) {
        self.0.push(FieldError::too_many(field, found, most));
    }

    /// Adds `Too long`, for a string longer than its limit in bytes.
    ///
    /// The message contains the limit but not the value, which may be long.
    pub(crate) fn too_long(&mut self, field: &str, most: usize) {
        self.0.push(FieldError::too_long(field, most));
    }

    /// Requires a string that is one of a few.
    ///
    /// Adds at most one error: `Required value` for an empty string, `Unsupported value` for any other.
    pub(crate) fn required_one_of(&mut self, field: &str, value: &Value, supported: &[&str]) {
        if text(value).is_empty() {
            self.required(field, "");
        } else {
            self.one_of(field, value, supported);
        }
    }

    /// Requires a string that is one of a few; an absent one counts as empty.
    pub(crate) fn always_one_of(&mut self, field: &str, value: &Value, supported: &[&str]) {
        if !supported.contains(&text(value)) {
            self.unsupported(field, value, supported);
        }
    }

    /// Checks that a string is one of a few. An absent one is valid.
    pub(crate) fn one_of(&mut self, field: &str, value: &Value, supported: &[&str]) {
        if value.as_str().is_some_and(|value| !supported.contains(&value)) {
            self.unsupported(field, value, supported);
        }
    }

    /// Checks that a number is at least 0 (`ValidateNonnegativeField`).
    pub(crate) fn not_negative(&mut self, field: &str, value: &Value) {
        if value.as_i64().is_some_and(|number| number < 0) {
            self.invalid(field, value, "must be greater than or equal to 0");
        }
    }

    /// Checks that a number is within inclusive bounds.
    ///
    /// An absent number is valid.
    pub(crate) fn in_range(&mut self, field: &str, value: &Value, least: i64, most: i64) {
        if value.as_i64().is_some_and(|number| !(least..=most).contains(&number)) {
            self.invalid(field, value, &format!("must be between {least} and {most}, inclusive"));
        }
    }

    /// Checks a name by the rule of its kind.
    pub(crate) fn name(&mut self, field: &str, value: &Value, rule: NameRule) {
        if let Some(message) = rule.check(text(value)) {
            self.invalid(field, value, message);
        }
    }

    /// Requires a name.
    ///
    /// An empty name is reported as required; any other name has to follow the rule.
    pub(crate) fn required_name(&mut self, field: &str, value: &Value, rule: NameRule) {
        if text(value).is_empty() {
            self.required(field, "");
        } else {
            self.name(field, value, rule);
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

    /// Checks a number of at least 0, or a percentage (`ValidatePositiveIntOrPercent`).
    pub(crate) fn count_or_percent(&mut self, field: &str, value: &Value) {
        if let Some(text) = value.as_str() {
            let digits = text.strip_suffix('%').unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                self.invalid(field, value, "must be a percentage such as 25%");
            }
        } else {
            self.not_negative(field, value);
        }
    }

    /// Checks a name with a domain before a slash (`IsDomainPrefixedPath`).
    pub(crate) fn domain_prefixed(&mut self, field: &str, value: &Value) {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        match text(value).split_once('/') {
            _ if text(value).is_empty() => self.required(field, ""),
            Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
                self.name(field, &domain.into(), NameRule::Subdomain);
                let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
                if !path.bytes().all(allowed) {
                    self.invalid(field, &path.into(), "must have only characters of a URL path after the domain");
                }
            }
            _ => self.invalid(field, value, detail),
        }
    }

    /// Checks that a percentage is at most 100% (`IsNotMoreThan100Percent`).
    pub(crate) fn at_most_all(&mut self, field: &str, value: &Value) {
        let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<u64>().ok());
        if percent.is_some_and(|percent| percent > 100) {
            self.invalid(field, value, "must not be greater than 100%");
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
