//! Group, version and kind of an object: the key of rules in layers.

use std::fmt;

use serde_json::Value;

/// The API group, version and kind of an object, as its `apiVersion` and `kind` have them.
///
/// ```
/// use kctl_interpreter::kind::Gvk;
/// use serde_json::json;
///
/// let deployment = Gvk::from_object(&json!({ "apiVersion": "apps/v1", "kind": "Deployment" }));
/// assert_eq!((deployment.group.as_str(), deployment.api_version().as_str()), ("apps", "apps/v1"));
/// assert_eq!(deployment.to_string(), "apps/v1, Kind=Deployment");
///
/// let pod = Gvk::from_object(&json!({ "apiVersion": "v1", "kind": "Pod" }));
/// assert_eq!((pod.group.as_str(), pod.api_version().as_str()), ("", "v1"));
/// assert_eq!(pod.to_string(), "/v1, Kind=Pod");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk {
    /// The API group, such as `apps`; empty for the core group.
    pub group: String,
    /// The version in the group, such as `v1`.
    pub version: String,
    /// The kind in CamelCase, such as `Deployment`.
    pub kind: String,
}

impl Gvk {
    /// Reads `apiVersion` and `kind` of an object.
    ///
    /// It never fails: a field that is absent or not a string becomes an empty string. Only rules for every kind match an empty
    /// one, such as the native rules of `InterpretStatus` and `Prune`.
    pub fn from_object(object: &Value) -> Self {
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
