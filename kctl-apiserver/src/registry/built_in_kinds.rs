//! The built-in kinds as the store needs them. A store gets them when it is created, so that it does not import the
//! rules of kinds.

use std::{collections::HashMap, sync::Arc};

use super::{Kind, Registry};
use crate::status::GroupResource;

/// The built-in kinds, found by name. All servers of a process share one value.
pub(crate) struct BuiltInKinds {
    /// The resources of the built-in kinds. A server without custom resources serves exactly these.
    pub(crate) registry: Arc<Registry>,
    /// The kinds whose objects the store itself reads.
    pub(crate) roles: StoreRoles,
    /// All built-in kinds by group and plural name.
    by_name: HashMap<(&'static str, &'static str), &'static Kind>,
    /// The kinds whose objects are in the table of another kind, each with the resource of that table.
    in_other_table: Vec<(&'static Kind, GroupResource)>,
}

/// The kinds with a role in the store: their objects decide about other objects, or about what is served.
#[derive(Clone, Copy)]
pub(crate) struct StoreRoles {
    /// `CustomResourceDefinition`, whose objects define custom resources.
    pub(crate) definition: &'static Kind,
    /// `APIService`, whose objects may move a group to another server.
    pub(crate) api_service: &'static Kind,
    /// `Namespace`, whose deletion waits for the objects in it.
    pub(crate) namespace: &'static Kind,
    /// `Service`, whose objects have cluster IPs.
    pub(crate) service: &'static Kind,
}

impl BuiltInKinds {
    /// Indexes the kinds by their names and tables, and creates their registry.
    pub(crate) fn new(all: &[&'static Kind], roles: StoreRoles) -> Self {
        let owners = all.iter().filter_map(|kind| Some((*kind, kind.shared_table?.owner)));
        let moved = owners.filter(|(kind, owner)| !std::ptr::eq(*kind, *owner));
        Self {
            registry: Arc::new(Registry::from_kinds(all)),
            roles,
            by_name: all.iter().map(|kind| ((kind.group, kind.resource), *kind)).collect(),
            in_other_table: moved.map(|(kind, owner)| (kind, owner.group_resource())).collect(),
        }
    }

    /// Returns a built-in kind. Callers that have a `Resource` use the kind in it instead. `None` means that the
    /// resource is custom or unknown. A custom resource with the plural of a built-in kind, such as
    /// `services.example.com`, is not found, because its group differs.
    pub(crate) fn find(&self, resource: &GroupResource) -> Option<&'static Kind> {
        self.by_name.get(&(resource.group.as_str(), resource.resource.as_str())).copied()
    }

    /// Returns the resource whose table has the objects of a resource. Events of both groups share one table, as they
    /// share one prefix in etcd.
    ///
    /// Every read of the store calls this. It compares names with the few kinds in the list, which is faster than
    /// [`Self::find`].
    pub(crate) fn table_of<'a>(&'a self, resource: &'a GroupResource) -> &'a GroupResource {
        self.in_other_table.iter().find(|(kind, _)| kind.is_of(resource)).map_or(resource, |(_, table)| table)
    }
}
