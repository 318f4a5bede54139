//! A kind that functions can be about.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::GroupVersionKind;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A kind that functions can be about: a custom resource, or a kind of k8s-openapi.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes kind",
    label = "not a kind",
    note = "help: write the name of a type with `#[resource(…)]`, or of a built-in kind",
    note = "code: K0030"
)]
pub trait Kind: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Returns the group, version and kind.
    fn gvk() -> GroupVersionKind;

    /// Returns the name of the resource in paths.
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

/// Makes the definition of a custom resource.
pub type MakeDefinition = fn() -> CustomResourceDefinition;

/// How a kind is defined, where it is a custom resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Definition {
    /// The definition.
    pub crd: Option<MakeDefinition>,
    /// The JSON schema.
    pub schema: Option<fn() -> Value>,
}

/// `apps.example.com/v1, Kind=PodSet`.
pub(crate) fn shown(kind: &GroupVersionKind) -> String {
    format!("{}, Kind={}", kind.api_version(), kind.kind)
}
