//! The Leases of the app's processes, and the owners of slots according to the server, for the checker
//! `only the owner writes`. An owner is a process here; `ownership` is about owners of objects.

use std::collections::BTreeMap;

use kctl_apiserver::Change;
use kctl_runtime::{key::ObjectKey, shard::Slots};

use super::snapshot::Id;

/// The API group of Leases.
pub(super) const COORDINATION: &str = "coordination.k8s.io";
/// The namespace of the Leases of the app's processes.
pub(super) const LEASE_NAMESPACE: &str = "default";

/// A Lease that decides which process of the app works. The app may have others, which are objects like any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppLease {
    Leader,
    Slot(u32),
    /// Records that a process takes part in the distribution of slots.
    Seat,
}

/// The holders of the Leases of slots.
#[derive(Default)]
pub(super) struct Owners {
    /// The name of the app, with which the names of its Leases begin.
    app: String,
    /// `None` unless the instances share the keys.
    pub(super) slots: Option<Slots>,
    holders: BTreeMap<u32, String>,
}

impl Owners {
    /// Creates a record without holders. `slots` is `None` unless the instances share the keys.
    pub(super) fn new(app: &str, slots: Option<Slots>) -> Self {
        Self { app: app.into(), slots, holders: BTreeMap::new() }
    }

    /// Returns the Lease of the app's processes that a change on its own cluster is about; `None` for any other object.
    pub(super) fn lease(&self, change: &Change) -> Option<AppLease> {
        self.lease_of(&Id::for_change("", change))
    }

    /// Returns `true` for Events and the Leases of the app's processes, which the app writes in addition to its work.
    ///
    /// A list of the namespace of these Leases, and a create that failed, have no name: they count as requests of the
    /// election.
    pub(super) fn is_bookkeeping(&self, id: &Id) -> bool {
        let is_event = matches!((id.group.as_str(), id.resource.as_str()), ("" | "events.k8s.io", "events"));
        is_event || self.lease_of(id).is_some() || (id.name.is_empty() && is_in_lease_namespace(id))
    }

    fn lease_of(&self, id: &Id) -> Option<AppLease> {
        if !is_in_lease_namespace(id) {
            return None;
        }
        let part = id.name.strip_prefix(&self.app)?;
        if part.is_empty() {
            return Some(AppLease::Leader);
        }
        let slot = part.strip_prefix("-slot-").and_then(|slot| slot.parse().ok());
        slot.map(AppLease::Slot).or_else(|| part.starts_with("-seat-").then_some(AppLease::Seat))
    }

    /// Records the holder from a change of a slot's Lease.
    pub(super) fn record_change(&mut self, slot: u32, change: &Change) {
        let holder = change.after.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        // A Lease that was deleted by hand has no holder, but the owner of its slot is still at work.
        if let Some(holder) = holder {
            self.holders.insert(slot, holder.to_owned());
        }
    }

    /// Returns the holder of the Lease of a slot; an empty string after it was released.
    pub(super) fn holder(&self, slot: u32) -> Option<&str> {
        self.holders.get(&slot).map(String::as_str)
    }

    /// Returns the slot of a key, such as `default/web`, with the holder of its Lease.
    pub(super) fn lookup(&self, key: &str) -> Option<(u32, &str)> {
        let (namespace, name) = key.split_once('/').map_or((None, key), |(namespace, name)| (Some(namespace), name));
        let slot = self.slots?.slot_for(&ObjectKey::new(namespace, name));
        Some((slot, self.holder(slot).unwrap_or_default()))
    }
}

/// Returns `true` for any Lease in the namespace of the app's own Leases.
fn is_in_lease_namespace(id: &Id) -> bool {
    let Id { cluster, group, resource, namespace, name: _ } = id;
    let place = [cluster, group, resource, namespace].map(String::as_str);
    place == ["", COORDINATION, "leases", LEASE_NAMESPACE]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leases_of_app_processes_are_bookkeeping() {
        let cases = [
            ("", COORDINATION, "leases", "default", "web", true),
            ("", COORDINATION, "leases", "default", "web-slot-3", true),
            ("", COORDINATION, "leases", "default", "web-seat-0", true),
            ("", COORDINATION, "leases", "default", "", true),
            ("", COORDINATION, "leases", "", "", false),
            ("", COORDINATION, "leases", "default", "web-lock", false),
            ("", COORDINATION, "leases", "default", "other", false),
            ("", COORDINATION, "leases", "other", "web", false),
            ("edge", COORDINATION, "leases", "default", "web", false),
            ("", "gym.example.com", "leases", "default", "web", false),
            ("", "", "events", "default", "web.1", true),
            ("edge", "events.k8s.io", "events", "other", "web.1", true),
            ("", "fair.example.com", "events", "default", "web", false),
            ("", "", "pods", "default", "web", false),
        ];
        let owners = Owners::new("web", None);
        for (cluster, group, resource, namespace, name, expected) in cases {
            let [cluster, group, resource, namespace, name] =
                [cluster, group, resource, namespace, name].map(str::to_owned);
            let id = Id { cluster, group, resource, namespace, name };
            assert_eq!(owners.is_bookkeeping(&id), expected, "{id:?}");
        }
    }
}
