//! The way in which a `ResourceQuota` counts objects of a kind.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::Subresource;
use crate::amounts::Amounts;

/// Returns `true` if a change frees something that a quota counts: old, new, now.
pub(crate) type FreesUsage = fn(Option<&Value>, &Value, Timestamp) -> bool;

/// Usage in quotas.
pub(crate) struct Quota {
    /// `true` if objects are counted (`count/…`). Kinds in `DefaultIgnoredResources` are not.
    pub(crate) is_counted: bool,
    /// Returns `true` if the name in a quota is about these objects, besides `count/…`.
    pub(crate) counts: fn(&str) -> bool,
    /// Returns the usage of an object besides `count/…`.
    pub(crate) usage: fn(&Value, Timestamp) -> Amounts,
    /// Returns `true` if an update through the subresource may change the usage: subresource, old, new.
    pub(crate) changes_usage: fn(Subresource, &Value, &Value) -> bool,
    /// Returns `true` if an event of the object frees something, so that quotas are counted again: old, new, now.
    pub(crate) frees_usage: Option<FreesUsage>,
    /// Returns a message about the counted amounts that an object must specify but does not.
    pub(crate) missing: fn(&BTreeSet<&str>, &Value) -> Option<String>,
    /// Returns `true` if an object is in the scope: object, name, operator, values.
    pub(crate) is_in_scope: fn(&Value, &str, &str, &Value) -> bool,
}

impl Quota {
    /// No object of the kind uses a quota, apart from the count.
    pub(crate) const DEFAULT: Self = Self {
        is_counted: true,
        counts: |_| false,
        usage: |_, _| Amounts::new(),
        changes_usage: |_, _, _| false,
        frees_usage: None,
        missing: |_, _| None,
        is_in_scope: |_, _, _, _| false,
    };
    /// The kind is in `DefaultIgnoredResources`.
    pub(crate) const NOT_COUNTED: Self = Self { is_counted: false, ..Self::DEFAULT };
}
