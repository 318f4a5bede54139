//! The rules of fields. Each adds errors at the path of its field, or of the items that it names, and accepts an absent
//! field unless it says otherwise.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Field;
use crate::{
    field_errors::text,
    names::{NameRule, check_label_value},
};

impl<'a> Field<'a> {
    /// Requires a value: not absent, and not an empty string, list or map. Returns `true` if there is one.
    pub(crate) fn require_value(&self) -> bool {
        self.required_if(self.is_empty());
        !self.is_empty()
    }

    /// Requires values for the fields with these names below this one.
    pub(crate) fn require_children(&self, names: &[&str]) {
        self.check_children(names, |field| field.required_if(field.is_empty()));
    }

    /// Reports a value that differs from the old one (`ValidateImmutableField`). An absent field equals `null`.
    pub(crate) fn immutable(&self, old: &Value) {
        self.invalid_if(self.value != old, "field is immutable");
    }

    /// Bounds a string, in bytes.
    pub(crate) fn max_bytes(&self, most: usize) {
        if self.text().len() > most {
            self.too_long(most);
        }
    }

    /// Bounds the number of items of a list.
    pub(crate) fn max_items(&self, most: usize) {
        let n_items = self.value.as_array().map_or(0, Vec::len);
        if n_items > most {
            self.with_errors(|errors, path| errors.too_many(path, n_items, most));
        }
    }

    /// Reports each item whose key equals the key of an earlier item. A key that is not a string counts as the empty
    /// one.
    pub(crate) fn unique<'b>(&'b self, key: impl Fn(&'b Value) -> &'b Value) {
        self.unique_by(|item| text(key(item)));
    }

    /// Reports each item whose key, of any type, equals the key of an earlier item.
    pub(crate) fn unique_by<K: Ord>(&self, key: impl Fn(&'a Value) -> K) {
        let mut keys = BTreeSet::new();
        for item in self.items() {
            item.duplicate_if(!keys.insert(key(item.value)));
        }
    }

    /// Reports the field with this name in each item, if an item before it has the same string there. An absent field
    /// counts as the empty string.
    pub(crate) fn unique_at(&self, name: &str) {
        let mut taken = BTreeSet::new();
        for field in self.items().map(|item| item.at(name)) {
            field.duplicate_if(!taken.insert(field.text()));
        }
    }

    /// Requires a string that is one of a few: `Required value` for an empty one.
    pub(crate) fn required_one_of(&self, supported: &[&str]) {
        if self.require_value() {
            self.one_of(supported);
        }
    }

    /// An absent field counts as the empty string.
    pub(crate) fn always_one_of(&self, supported: &[&str]) {
        self.unsupported_if(!supported.contains(&self.text()), supported);
    }

    pub(crate) fn one_of(&self, supported: &[&str]) {
        self.with_errors(|errors, path| errors.one_of(path, self.value, supported));
    }

    /// Upstream: `ValidateNonnegativeField`.
    pub(crate) fn not_negative(&self) {
        self.at_least(0);
    }

    /// Bounds a number from below.
    pub(crate) fn at_least(&self, least: i64) {
        let is_less = self.as_i64().is_some_and(|number| number < least);
        self.invalid_if(is_less, format_args!("must be greater than or equal to {least}"));
    }

    /// Both bounds are inclusive.
    pub(crate) fn in_range(&self, least: i64, most: i64) {
        let is_outside = self.as_i64().is_some_and(|number| !(least..=most).contains(&number));
        self.invalid_if(is_outside, format_args!("must be between {least} and {most}, inclusive"));
    }

    /// Checks a number of at least 0, or a percentage (`ValidatePositiveIntOrPercent`).
    pub(crate) fn non_negative_int_or_percent(&self) {
        let digits = self.text().strip_suffix('%').unwrap_or_default();
        let is_percent = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        self.invalid_if(self.is_string() && !is_percent, "must be a percentage such as 25%");
        self.not_negative();
    }

    /// Checks that a percentage is at most 100% (`IsNotMoreThan100Percent`).
    pub(crate) fn at_most_100_percent(&self) {
        let percent = self.text().strip_suffix('%').and_then(|number| number.parse::<u64>().ok());
        self.invalid_if(percent.is_some_and(|percent| percent > 100), "must not be greater than 100%");
    }

    /// An absent name counts as the empty one.
    pub(crate) fn name(&self, rule: NameRule) {
        self.with_errors(|errors, path| errors.name(path, self.value, rule));
    }

    /// Accepts an empty name.
    pub(crate) fn name_if_set(&self, rule: NameRule) {
        if !self.text().is_empty() {
            self.name(rule);
        }
    }

    /// Requires a kind: a DNS-1035 label, except that it may have uppercase letters.
    pub(crate) fn kind_name(&self) {
        if let Some(message) = NameRule::Label1035.check(&self.text().to_lowercase()) {
            self.invalid(message);
        }
    }

    /// Requires a name: `Required value` for an empty one.
    pub(crate) fn required_name(&self, rule: NameRule) {
        if self.require_value() {
            self.name(rule);
        }
    }

    /// An absent name counts as the empty one.
    pub(crate) fn qualified_name(&self) {
        self.with_errors(|errors, path| errors.qualified_name(path, self.text()));
    }

    /// An absent value counts as the empty one, which is valid.
    pub(crate) fn label_value(&self) {
        if let Some(rule) = check_label_value(self.text()) {
            self.invalid(rule);
        }
    }

    /// Requires a name with a domain before a slash (`IsDomainPrefixedPath`).
    pub(crate) fn domain_prefixed(&self) {
        if !self.require_value() {
            return;
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
        let (domain, path) = self.text().split_once('/').unwrap_or_default();
        let is_valid = NameRule::Subdomain.check(domain).is_none() && !path.is_empty() && path.bytes().all(allowed);
        self.invalid_if(!is_valid, "must be a DNS subdomain and a URL path, such as acme.io/foo");
    }

    pub(crate) fn labels(&self) {
        self.with_errors(|errors, path| errors.labels(path, self.value));
    }

    pub(crate) fn annotations(&self) {
        self.with_errors(|errors, path| errors.annotations(path, self.value));
    }
}
