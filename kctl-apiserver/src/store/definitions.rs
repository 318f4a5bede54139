//! Decides what a change of a `CustomResourceDefinition` means for the resources that are served.

use std::sync::LazyLock;

use serde_json::Value;

use super::Event;
use crate::{
    crd,
    kinds::{apiextensions::custom_resource_definition, apiregistration::api_service},
    status::GroupResource,
};

/// The resource whose objects define others: `CustomResourceDefinitions`.
pub(crate) static DEFINITIONS: LazyLock<GroupResource> =
    LazyLock::new(|| custom_resource_definition::KIND.group_resource());

/// The resource whose objects may leave a group to another server.
pub(crate) static API_SERVICES: LazyLock<GroupResource> = LazyLock::new(|| api_service::KIND.group_resource());

/// What follows from a change of a `CustomResourceDefinition`.
#[derive(Default)]
pub(super) struct Redefinition {
    /// The resource is served, or was so until now.
    pub(super) is_served: bool,
    /// The resource that is no longer served as it was: then the real server ends all watches of it, without a word
    /// (upstream, `customresource_handler.go`). Metadata and conditions do not count.
    pub(super) anew: Option<GroupResource>,
}

impl Redefinition {
    pub(super) fn by(event: &Event) -> Self {
        let after = event.object.value();
        let Some(before) = event.before.as_ref().map(|before| before.value()) else {
            return Self { is_served: crd::is_established(&after), ..Self::default() };
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (spec, names) = (&before["spec"], "acceptedNames");
        let is_renamed = before["status"][names] != after["status"][names];
        let of = || GroupResource::new(&text(&spec["group"]), &text(&spec["names"]["plural"]));
        Self {
            is_served: crd::is_established(&before) || crd::is_established(&after),
            anew: (event.deleted || *spec != after["spec"] || is_renamed).then(of),
        }
    }
}
