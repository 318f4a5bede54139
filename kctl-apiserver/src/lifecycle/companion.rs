//! Removes the objects that belong to another object: a Service has `Endpoints` with its name.

use super::delete::delete;
use crate::{
    deletion::{Grace, Propagation},
    kinds::core::{endpoints, service},
    status::GroupResource,
    store::{Key, Store},
};

/// Removes the `Endpoints` of a Service that is removed (`REST.afterDelete` of `pkg/registry/core/service/storage`).
pub(super) fn remove(store: &mut Store, of: &GroupResource, key: &Key) {
    if !service::KIND.is_of(of) {
        return;
    }
    let of = endpoints::KIND.group_resource();
    if let (Some(resource), Some(endpoints)) = (store.registry.any_version(&of), store.get(&of, key)) {
        delete(store, &resource, key, &endpoints, Propagation::Default, Grace::Default);
    }
}
