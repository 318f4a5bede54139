//! Group, version and kind of an object: what a layer looks its rules up by.

use std::fmt;

use serde_json::Value;

/// The group, version and kind that an object says it has.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// Empty for the core group.
    pub group: String,
    /// Such as `v1`.
    pub version: String,
    /// Such as `Deployment`.
    pub kind: String,
}

impl Gvk {
    /// Reads `apiVersion` and `kind`. An absent field becomes an empty string.
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        Self { group: group.to_owned(), version: version.to_owned(), kind: text("kind").to_owned() }
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// As Kubernetes prints it: `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` for the core group.
impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
