//! A resource or subresource as discovery lists it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metadata::Scope;

/// One resource or subresource in one version, as discovery lists it (`APIResource`).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiResource {
    /// The plural name, with `/SUBRESOURCE` for a subresource.
    pub(crate) name: String,
    /// The name in the singular; empty for subresources.
    pub(crate) singular_name: String,
    /// `false` for resources without a namespace.
    pub(crate) namespaced: bool,
    /// The group of a subresource with a kind of another group, such as `autoscaling/v1` Scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// The version that belongs to `group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    /// The kind that the resource or subresource takes and returns.
    pub(crate) kind: String,
    /// The verbs in the order of kube-apiserver.
    pub(crate) verbs: Vec<String>,
    /// Names for kubectl, such as `po`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) short_names: Vec<String>,
    /// Categories for kubectl, such as `all`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    /// Identifies the storage version; see `storage_version_hash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) storage_version_hash: Option<String>,
}

impl ApiResource {
    /// Creates the entry of a custom resource or of its subresource.
    pub(super) fn for_custom(name: String, kind: &str, scope: Scope, verbs: &[&str]) -> Self {
        Self {
            name,
            namespaced: scope == Scope::Namespaced,
            kind: kind.into(),
            verbs: verbs.iter().map(|verb| (*verb).into()).collect(),
            ..Self::default()
        }
    }

    /// Returns the entries of the subresources that a version in a CRD has.
    pub(super) fn subresources_of(&self, version: &Value) -> Vec<Self> {
        const VERBS: &[&str] = &["get", "patch", "update"];
        let subresource =
            |name: &str, kind: &str| Self::for_custom(format!("{}/{name}", self.name), kind, self.scope(), VERBS);
        let has = |name: &str| version["subresources"][name].is_object();
        let status = has("status").then(|| subresource("status", &self.kind));
        let (group, version) = (Some("autoscaling".into()), Some("v1".into()));
        let scale = has("scale").then(|| Self { group, version, ..subresource("scale", "Scale") });
        status.into_iter().chain(scale).collect()
    }

    /// Returns the scope of the kind.
    pub(crate) fn scope(&self) -> Scope {
        if self.namespaced { Scope::Namespaced } else { Scope::Cluster }
    }
}
