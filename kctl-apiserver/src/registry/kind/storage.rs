//! The version and the table in which objects of a kind are stored.

use serde_json::Value;

use super::Kind;

/// The version in which objects are stored and the rules of their kind are written.
#[derive(Debug)]
pub(crate) struct StorageVersion {
    /// The version with its group, such as `autoscaling/v2`.
    pub(crate) api_version: &'static str,
    /// Returns an object in another version with its group.
    pub(crate) convert: fn(&str, &Value) -> Value,
    /// Normalizes an object of any version as a conversion to the internal version and back does.
    pub(crate) normalize: fn(&mut Value),
    /// Returns `true` if two versions, each with its group, name or nest fields differently.
    pub(crate) differ: fn(&str, &str) -> bool,
}

/// A table with the objects of two kinds, which are versions of one type upstream.
pub(crate) struct SharedTable {
    /// The kind in whose form the objects are stored.
    pub(crate) owner: &'static Kind,
    /// The second kind of the table, whose objects are converted by `convert`.
    pub(crate) other: &'static Kind,
    /// Returns an object in another version with its group.
    pub(crate) convert: fn(&str, &Value) -> Value,
}
