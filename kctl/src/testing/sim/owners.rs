//! The owners of slots according to the server, for the checker `only the owner writes`.

use std::collections::BTreeMap;

use kctl_apiserver::Change;
use kctl_runtime::{key::ObjectKey, shard::Slots};

/// The holders of the Leases of slots.
#[derive(Default)]
pub(super) struct Owners {
    /// `None` unless the instances share the keys.
    pub(super) slots: Option<Slots>,
    holders: BTreeMap<u32, String>,
}

impl Owners {
    /// Records the holder from a change of a slot's Lease.
    pub(super) fn learn(&mut self, change: &Change) {
        let Some(slot) = change.name.rsplit_once("-slot-").and_then(|(_app, slot)| slot.parse().ok()) else { return };
        let holder = change.after.as_ref().and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        // A Lease that was deleted by hand has no holder, but the owner of its slot is still at work.
        if let Some(holder) = holder {
            self.holders.insert(slot, holder.to_owned());
        }
    }

    /// Returns the slot of a key, such as `default/web`, with the holder of its Lease.
    pub(super) fn lookup(&self, key: &str) -> Option<(u32, &str)> {
        let (namespace, name) = key.split_once('/').map_or((None, key), |(namespace, name)| (Some(namespace), name));
        let slot = self.slots?.of(&ObjectKey::new(namespace, name));
        Some((slot, self.holders.get(&slot).map_or("", String::as_str)))
    }
}
