//! Writes objects as a field manager, through a subresource: the writes of the server itself and of its controllers.
//!
//! Clients see these writes with the names that the components of a real cluster have. So
//! `kubectl get --show-managed-fields` looks the same, and server-side apply by a user conflicts with the same
//! managers.

use std::sync::Arc;

use serde_json::Value;

use super::update;
use crate::{
    apply,
    registry::{Resource, kind::Subresource},
    status::GroupResource,
    store::{Key, Store},
};

/// A field manager, and the subresource through which it writes.
#[derive(Clone, Copy)]
pub(crate) struct Writer {
    /// The name in `managedFields`.
    pub(crate) manager: &'static str,
    /// The subresource in `managedFields`.
    pub(crate) subresource: Subresource,
}

impl Writer {
    /// Returns the field manager that most controllers of kube-controller-manager use.
    pub(crate) const fn for_manager(subresource: Subresource) -> Self {
        Self { manager: "kube-controller-manager", subresource }
    }

    /// Returns a new object with managedFields: the writer owns all of its fields. For a resource that is not served it
    /// is returned unchanged, without `managedFields`.
    pub(crate) fn with_managed_fields(self, store: &Store, group_resource: &GroupResource, mut new: Value) -> Value {
        let api_version = new["apiVersion"].as_str().unwrap_or_default().to_owned();
        let Some(resource) = store.registry.any_version(group_resource) else { return new };
        let now = store.clock.seconds();
        apply::update(&self.request(&resource, &api_version, &now), None, &mut new);
        new
    }

    /// Returns the writer as the apply engine takes it. The entries are `Update` and not `Apply`, so they never
    /// conflict.
    fn request<'a>(self, resource: &'a Resource, api_version: &'a str, now: &'a str) -> apply::Request<'a> {
        apply::Request {
            schema: resource.schema(),
            manager: self.manager,
            subresource: self.subresource,
            api_version,
            versions: &resource.kind.storage,
            now,
            has_status: resource.has_status(),
            resets: apply::Resets::NOTHING,
            force: false,
        }
    }

    /// Changes a stored object, as [`Self::write`]. Without the object, nothing is written.
    pub(crate) fn edit(self, store: &mut Store, resource: &GroupResource, key: &Key, change: impl FnOnce(&mut Value)) {
        let Some(old) = store.get(resource, key) else { return };
        let mut new = Value::clone(&old);
        change(&mut new);
        self.write(store, resource, key, &old, new);
    }

    /// Replaces `old` by `new`: the writer owns the changed fields, and removed fields have no owner. The schema is the
    /// one of the stored object's version; if that version is not served, any version of the resource is used. Without
    /// a schema, nothing is written.
    pub(crate) fn write(
        self,
        store: &mut Store,
        group_resource: &GroupResource,
        key: &Key,
        old: &Arc<Value>,
        mut new: Value,
    ) {
        let api_version = old["apiVersion"].as_str().unwrap_or_default().to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = store
            .registry
            .get(group, version, &group_resource.resource)
            .or_else(|| store.registry.any_version(group_resource))
        else {
            return;
        };
        let now = store.clock.seconds();
        let request = self.request(&resource, &api_version, &now);
        apply::update(&request, Some(old), &mut new);
        update(store, group_resource, key, old, new);
    }
}
