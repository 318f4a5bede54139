//! Removes the objects that belong to another object: a Service has `Endpoints` with its name.

use super::delete::delete;
use crate::{
    deletion::{Grace, Propagation},
    status::GroupResource,
    store::{Key, State},
};

/// Removes the `Endpoints` of a Service that is removed (`REST.afterDelete` of `pkg/registry/core/service/storage`).
pub(super) fn remove(state: &mut State, of: &GroupResource, key: &Key) {
    if !of.group.is_empty() || of.resource != "services" {
        return;
    }
    let of = GroupResource::new("", "endpoints");
    if let (Some(resource), Some(endpoints)) = (state.registry.any_version(&of), state.get(&of, key)) {
        delete(state, &resource, key, &endpoints, Propagation::Default, Grace::Default);
    }
}
