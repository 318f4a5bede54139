//! Expansion of `resource.rs`.
#[allow(clippy::derive_partial_eq_without_eq, reason = "a field may be a float")]
#[derive(
    ::core::fmt::Debug,
    ::core::cmp::PartialEq,
    ::kctl::__private_0_1::serde::Serialize,
    ::kctl::__private_0_1::serde::Deserialize,
    ::kctl::__private_0_1::schemars::JsonSchema,
    ::kctl::__private_0_1::kube::CustomResource
)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    attr = "cfg_attr(all(), schemars(transform = ::kctl::__private_0_1::Structure))",
    crates(
        kube = ::kctl::__private_0_1::kube,
        kube_core = ::kctl::__private_0_1::kube::core,
        k8s_openapi = ::kctl::__private_0_1::k8s_openapi,
        schemars = ::kctl::__private_0_1::schemars,
        serde = ::kctl::__private_0_1::serde,
        serde_json = ::kctl::__private_0_1::serde_json,
    )
)]
#[serde(crate = "::kctl::__private_0_1::serde", rename_all = "camelCase")]
#[schemars(crate = "::kctl::__private_0_1::schemars")]
#[schemars(
    transform = ::kctl::__private_0_1::Markers(
        "{\"root\":{\"rule\":[{\"rule\":\"self.metadata.name.size() < 20\",\"message\":\"the name is too long\"}]}}"
    )
)]
/// A web site.
#[derive(Default, Clone)]
#[schemars(
    transform = ::kctl::__private_0_1::Markers(
        "{\"rule\":[{\"rule\":\"self.min <= self.max\"}]}"
    )
)]
pub struct SiteSpec {
    #[schemars(
        transform = ::kctl::__private_0_1::Markers(
            "{\"min_length\":1,\"pattern\":\"^[a-z]+$\"}"
        )
    )]
    pub host: String,
    /// Replicas at night.
    #[serde(skip_serializing_if = "::core::option::Option::is_none")]
    #[schemars(transform = ::kctl::__private_0_1::Markers("{\"minimum\":0}"))]
    pub min: Option<i32>,
    #[serde(skip_serializing_if = "::core::option::Option::is_none")]
    #[schemars(transform = ::kctl::__private_0_1::Markers("{\"omitted\":true}"))]
    pub mode: Option<Mode>,
}
