//! How controllers write objects: as field managers, through the subresource that they would write through.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    apply,
    kinds::Resource,
    status::GroupResource,
    store::{Key, State},
    verbs::settle,
};

/// Who writes, and through which subresource.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub(super) manager: &'static str,
    pub(super) subresource: &'static str,
}

impl Writer {
    /// The manager of most of a cluster's controllers.
    pub(super) const fn of_manager(subresource: &'static str) -> Self {
        Self { manager: "kube-controller-manager", subresource }
    }

    /// Returns a new object with its managedFields: all that it has is the writer's.
    pub(super) fn created(self, state: &State, of: &GroupResource, mut new: Value) -> Value {
        let api_version = new["apiVersion"].as_str().unwrap_or_default().to_owned();
        let Some(resource) = state.registry.any_version(of) else { return new };
        let now = state.clock.seconds();
        apply::update(&self.request(&resource, &api_version, &now), None, &mut new);
        new
    }

    fn request<'a>(self, resource: &'a Resource, api_version: &'a str, now: &'a str) -> apply::Request<'a> {
        apply::Request {
            schema: resource.schema(),
            manager: self.manager,
            subresource: self.subresource,
            api_version,
            versions: &apply::BuiltInKinds,
            now,
            has_status: resource.has_status(),
            resets: apply::Resets::NOTHING,
            force: false,
        }
    }

    /// Writes a changed object: what has been changed is the writer's, and what has been taken away is nobody's any more.
    pub(super) fn write(self, state: &mut State, of: &GroupResource, key: &Key, old: &Arc<Value>, mut new: Value) {
        let api_version = old["apiVersion"].as_str().unwrap_or_default().to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) =
            state.registry.get(group, version, &of.resource).or_else(|| state.registry.any_version(of))
        else {
            return;
        };
        let now = state.clock.seconds();
        let request = self.request(&resource, &api_version, &now);
        apply::update(&request, Some(old), &mut new);
        settle(state, of, key, old, new);
    }
}
