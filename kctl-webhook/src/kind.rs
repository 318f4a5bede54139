//! The trait of kinds that admission and conversion functions can be about.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::GroupVersionKind;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A kind that functions can be about: a custom resource, or a built-in kind of `k8s-openapi`.
///
/// The blanket implementation covers each type with `kube::Resource` and serde.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_webhook::Kind;
///
/// assert_eq!(Deployment::gvk().api_version(), "apps/v1");
/// assert_eq!(<Deployment as Kind>::plural(), "deployments");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: write the name of a type with `#[resource(…)]`, or of a built-in kind",
    note = "code: K0030"
)]
pub trait Kind: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the API group, version and kind.
    fn gvk() -> GroupVersionKind;

    /// Returns the plural, which is the name of the resource in URLs and roles.
    fn plural() -> String;
}

#[diagnostic::do_not_recommend]
impl<K> Kind for K
where
    K: kube::Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    fn gvk() -> GroupVersionKind {
        GroupVersionKind::gvk(&K::group(&()), &K::version(&()), &K::kind(&()))
    }

    fn plural() -> String {
        <K as kube::Resource>::plural(&()).into_owned()
    }
}

/// Returns the CRD of a custom resource.
pub type MakeDefinition = fn() -> CustomResourceDefinition;

/// The CRD of a kind; empty for built-in kinds. Generated code fills it in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Definition {
    /// Returns the CRD that the derive of the kind makes.
    pub crd: Option<MakeDefinition>,
    /// Returns the JSON schema with its descriptions.
    pub schema: Option<fn() -> Value>,
}

/// Formats a kind as Kubernetes does (`GroupVersionKind.String` in
/// `k8s.io/apimachinery/pkg/runtime/schema/group_version.go`): `apps.example.com/v1, Kind=PodSet`.
pub(crate) fn format_kind(kind: &GroupVersionKind) -> String {
    format!("{}, Kind={}", kind.api_version(), kind.kind)
}

/// Formats an object for messages: `PodSet default/web`. Parts that are empty are left out.
pub(crate) fn format_object(kind: &str, namespace: &str, name: &str) -> String {
    match (namespace, name) {
        ("", name) => format!("{kind} {name}").trim().to_owned(),
        (namespace, "") => format!("{kind} in {namespace}").trim().to_owned(),
        (namespace, name) => format!("{kind} {namespace}/{name}").trim().to_owned(),
    }
}

/// Formats the type of a review that was not expected, for messages.
pub(crate) fn format_review(api_version: &str, kind: &str) -> String {
    match format!("{api_version} {kind}").trim() {
        "" => "neither apiVersion nor kind".to_owned(),
        found => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_of_an_object_are_left_out() {
        for (kind, namespace, name, expected) in [
            ("PodSet", "default", "web", "PodSet default/web"),
            ("Node", "", "n1", "Node n1"),
            ("PodSet", "default", "", "PodSet in default"),
            ("Node", "", "", "Node"),
            ("", "default", "web", "default/web"),
        ] {
            assert_eq!(format_object(kind, namespace, name), expected);
        }
    }
}
