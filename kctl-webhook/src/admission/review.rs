//! `AdmissionReview` of `admission.k8s.io/v1`, with the fields that are read.

use kube::core::GroupVersionKind;
use serde::Deserialize;
use serde_json::Value;

use super::user::User;
use crate::kind::format_object;

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
    /// Formats the object for messages: `PodSet default/web`. For a new object with `generateName` it has that prefix.
    pub(super) fn describe(&self) -> String {
        let field = |path: &str| [&self.object, &self.old_object].into_iter().find_map(|of| of.pointer(path)?.as_str());
        let names = [Some(self.name.as_str()), field("/metadata/name"), field("/metadata/generateName")];
        let name = names.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or_default();
        format_object(&self.kind.kind, &self.namespace, name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unnamed_object_is_described_by_its_metadata() {
        let kind = json!({ "group": "", "version": "v1", "kind": "Pod" });
        for (request, expected) in [
            (json!({ "kind": kind, "namespace": "a", "name": "web" }), "Pod a/web"),
            (json!({ "kind": kind, "namespace": "a", "object": { "metadata": { "name": "web" } } }), "Pod a/web"),
            (
                json!({ "kind": kind, "namespace": "a", "object": { "metadata": { "generateName": "web-" } } }),
                "Pod a/web-",
            ),
            (json!({ "kind": kind, "namespace": "a" }), "Pod in a"),
            (json!({ "kind": kind, "oldObject": { "metadata": { "name": "web" } } }), "Pod web"),
        ] {
            let request: Request = serde_json::from_value(request).unwrap();
            assert_eq!(request.describe(), expected);
        }
    }
}
