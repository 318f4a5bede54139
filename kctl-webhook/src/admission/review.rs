//! `AdmissionReview` of `admission.k8s.io/v1`, with the fields that are read.

use kube::core::GroupVersionKind;
use serde::Deserialize;
use serde_json::Value;

use super::request::User;

/// Supported versions; they have the same fields.
pub(super) const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
pub(super) const KIND: &str = "AdmissionReview";

/// The envelope.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    #[serde(default)]
    pub(super) api_version: String,
    #[serde(default)]
    pub(super) kind: String,
    pub(super) request: Option<Request>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) kind: RequestKind,
    #[serde(default)]
    pub(super) sub_resource: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) operation: String,
    #[serde(default)]
    pub(super) user_info: User,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
    pub(super) dry_run: Option<bool>,
    #[serde(default)]
    pub(super) options: Value,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct RequestKind {
    #[serde(default)]
    pub(super) group: String,
    #[serde(default)]
    pub(super) version: String,
    #[serde(default)]
    pub(super) kind: String,
}

impl From<&RequestKind> for GroupVersionKind {
    fn from(kind: &RequestKind) -> Self {
        Self::gvk(&kind.group, &kind.version, &kind.kind)
    }
}

impl Request {
    /// Formats the object for messages: `PodSet default/web`.
    pub(super) fn describe(&self) -> String {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { format!("{} {name}", kind.kind) } else { format!("{} {namespace}/{name}", kind.kind) }
    }
}
