//! Removes the objects that belong to another object: a Service has `Endpoints` with its name.
//!
//! Called after every removal of an object, whether a delete ended it or an update took its last
//! finalizer. The garbage collector would not do it: `Endpoints` have no owner reference to their
//! Service, only the same name.

use super::delete::delete;
use crate::{
    deletion::{Grace, Propagation},
    kinds::core::{endpoints, service},
    status::GroupResource,
    store::{Key, Store},
};

/// Removes the `Endpoints` of a Service that is removed (`REST.afterDelete` of `pkg/registry/core/service/storage`).
///
/// The `Endpoints` go through the usual delete, so their finalizers hold them. For any other kind,
/// and for a Service without `Endpoints`, nothing happens.
pub(super) fn remove(store: &mut Store, of: &GroupResource, key: &Key) {
    if !service::KIND.is_of(of) {
        return;
    }
    let of = endpoints::KIND.group_resource();
    if let (Some(resource), Some(endpoints)) = (store.registry.any_version(&of), store.get(&of, key)) {
        delete(store, &resource, key, &endpoints, Propagation::Default, Grace::Default);
    }
}
