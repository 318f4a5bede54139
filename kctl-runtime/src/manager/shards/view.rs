//! The slots as the rest of the process sees them: for probes, metrics and the debug page.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    KeyExplanation, ShardConfig,
    explanation::{SlotOwner, reason, reason_of_closed, reason_of_rejected, reason_of_unwatched},
    observed_leases::ObservedLeases,
    settings::disagreement,
};
use crate::{
    key::ObjectKey,
    manager::lease::{ElectionState, Leadership},
    shard::{Gate, Phase, Tenure, Tenures, slot_name},
    source::Source,
    writer::{ShardPermits, WritePermit},
};

/// The slots of a sharded program, as one replica sees them.
///
/// [`View::shards`](crate::manager::View::shards) returns it.
#[derive(Clone)]
pub struct ShardView {
    pub(super) config: Arc<ShardConfig>,
    pub(super) tenures: Arc<Tenures>,
    pub(super) shared: Arc<Mutex<Shared>>,
    /// The Lease of the settings, which all replicas with the same ones hold together.
    pub(super) settings: Leadership,
    /// The watch of the Leases of slots and seats.
    pub(super) source: Arc<Source>,
    /// The controllers with their gates. Empty in a view that only the coordinator uses.
    pub(super) gates: Vec<(String, Gate)>,
}

impl std::fmt::Debug for ShardView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShardView").field("config", &self.config).finish_non_exhaustive()
    }
}

/// The part of the coordinator's state that others read.
///
/// Lock order: `explain` reads the tenures and the gates under the lock of this value, so it is never locked under theirs.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) seat: Option<u32>,
    /// `false` while this replica waits for others that start at the same time, or for its caches. It never becomes `false` again.
    pub(super) asks_for_slots: bool,
    /// `true` once all caches were complete.
    pub(super) has_complete_caches: bool,
    pub(super) observed_leases: ObservedLeases,
    /// The elections in which this replica takes part, by the name of the Lease.
    pub(super) elections: BTreeMap<String, Leadership>,
}

/// One slot, as one replica sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotView {
    /// The number of the slot.
    pub slot: u32,
    /// The holder of its Lease; empty if it is free, expired, not known yet, or of replicas with other settings.
    pub owner: String,
    /// The state of the slot in this replica: `owned`, `waiting`, `handing over` or `other`.
    pub state: String,
    /// How often the slot got another owner since its Lease was created (`leaseTransitions`). `None` while the Lease is
    /// not known, or of replicas with other settings.
    pub moves: Option<u64>,
}

impl ShardView {
    /// Adds the controllers and their gates, for explanations.
    pub(in crate::manager) fn with_gates(self, gates: Vec<(String, Gate)>) -> Self {
        Self { gates, ..self }
    }

    /// Returns the configuration, with the number of slots and the identity of this replica.
    pub fn config(&self) -> &ShardConfig {
        &self.config
    }

    /// Returns the number of this replica's seat, `None` while it has none.
    pub fn seat(&self) -> Option<u32> {
        self.shared.lock().seat
    }

    /// Returns all slots. Without owners and moves while this replica waits because others run with other settings: its
    /// slots differ from the slots of the Leases.
    pub fn slots(&self) -> Vec<SlotView> {
        let is_rejected = self.disagreement().is_some();
        let (phases, shared, now) = (self.tenures.phases(), self.shared.lock(), Instant::now());
        let numbered = (0_u32..).zip(phases);
        let slots = numbered.map(|(slot, phase)| {
            let name = slot_name(self.config.name(), slot);
            let owner = shared.observed_leases.holder(&name, now).filter(|_| !is_rejected).unwrap_or_default();
            let last = shared.observed_leases.last(&name).filter(|_| !is_rejected);
            let moves = last.and_then(|(record, _)| record.lease_transitions);
            SlotView { slot, owner: owner.to_owned(), state: phase.to_string(), moves }
        });
        slots.collect()
    }

    /// Returns the slot of a key, and why this replica reconciles the key or does not.
    ///
    /// `/debug/` shows the reason. A replica that waits because others run with other settings calculates the slot by
    /// its own.
    ///
    /// ```
    /// use kctl_runtime::{key::ObjectKey, manager::View};
    ///
    /// /// Returns `None` if the program is not sharded.
    /// fn why_not(view: &View, key: &ObjectKey) -> Option<String> {
    ///     Some(view.shards()?.explain(key).reason)
    /// }
    /// ```
    pub fn explain(&self, key: &ObjectKey) -> KeyExplanation {
        let (slot, phases) = (self.tenures.slot(key), self.tenures.phases());
        let (phase, is_listed) = (phases[slot as usize], self.source.store().is_synced());
        let (name, own) = (slot_name(self.config.name(), slot), self.config.identity());
        // Without a watch, Leases of others seem to expire, although their owners are at work.
        let failure = self.failure();
        let (shared, now) = (self.shared.lock(), Instant::now());
        let holder = shared.observed_leases.holder(&name, now).unwrap_or_default();
        let former = shared.observed_leases.record_at_work(&name, own, now).map(|(record, _)| record.holder());
        let owner = match (holder, former) {
            _ if failure.is_some() => SlotOwner::Unreadable(failure.as_deref().unwrap_or_default()),
            (_, Some(former)) if former != own => SlotOwner::Former(former),
            ("", _) if is_listed => SlotOwner::Vacant,
            ("", _) => SlotOwner::NotListed,
            _ if shared.observed_leases.is_assumed_held(&name) => SlotOwner::Unknown,
            (holder, _) if holder == own => SlotOwner::ThisReplica,
            (holder, _) => SlotOwner::Other(holder),
        };
        let disagreement = self.disagreement();
        let is_rejected = disagreement.is_some();
        let reason = match disagreement {
            Some(disagreement) => reason_of_rejected(key, &disagreement),
            None if !self.config.watches(key) => reason_of_unwatched(key, slot),
            None => reason(key, slot, phase, owner) + &reason_of_closed(&self.closed_for(slot)),
        };
        let is_known =
            !is_rejected && matches!(owner, SlotOwner::Other(_) | SlotOwner::Former(_) | SlotOwner::ThisReplica);
        let known = if is_known { holder } else { "" };
        KeyExplanation { slot, owner: known.to_owned(), state: phase.to_string(), reason }
    }

    /// Returns the names of the controllers that do not work on a slot yet although this replica owns it.
    fn closed_for(&self, slot: u32) -> Vec<&str> {
        let serving = self.tenures.serving();
        let Some(tenure) = serving.iter().find(|tenure| tenure.slot() == slot) else { return Vec::new() };
        let closed = self.gates.iter().filter(|(_, gate)| !gate.is_open(tenure));
        closed.map(|(controller, _)| controller.as_str()).collect()
    }

    /// Returns the reason and the remedy while this replica does not work because others run with other settings.
    pub(crate) fn disagreement(&self) -> Option<String> {
        let (holder, own) = (self.settings.holder(), &self.settings.config().identity);
        let is_rejected = !self.settings.is_leading() && !holder.is_empty() && holder != *own;
        is_rejected.then(|| disagreement(own, &holder))
    }

    /// Returns why this replica waits for the Lease of the settings, and the remedy. `None` if it works, or is about to.
    pub(crate) fn waits_because(&self) -> Option<String> {
        if self.settings.state() != ElectionState::Standby {
            return None;
        }
        // The candidate waits for the first list of Leases, which may lack a permission.
        self.settings.failure().or_else(|| self.disagreement()).or_else(|| self.failure())
    }

    /// Returns the permit for work that only one replica may do, or `None` if that is another replica.
    ///
    /// The owner of slot 0 does such work, under the permit of that slot's Lease.
    pub fn leader_permit(&self) -> Option<WritePermit> {
        self.tenures.current_permit(0).filter(|_| self.tenures.phases().first() == Some(&Phase::Owned))
    }

    /// Returns the number of slots that this replica owns.
    pub fn n_owned(&self) -> usize {
        let works = |phase: &&Phase| matches!(phase, Phase::Owned | Phase::HandingOver);
        self.tenures.phases().iter().filter(works).count()
    }

    /// Returns how often this replica has become the owner of a slot.
    pub fn n_gained(&self) -> u64 {
        self.tenures.n_begun()
    }

    /// Returns `true` if no slot is on its way to or from this replica, and these controllers work on all that it owns.
    pub(crate) fn has_no_moving_slots(&self, gates: &[Gate]) -> bool {
        let moves = |phase: &Phase| matches!(phase, Phase::Waiting | Phase::HandingOver);
        let is_open = |tenure: &Arc<Tenure>| gates.iter().all(|gate| gate.is_open(tenure));
        !self.tenures.phases().iter().any(moves) && self.tenures.serving().iter().all(is_open)
    }

    /// Returns the last failed request about the Leases of slots and seats, such as one without permission.
    pub(crate) fn failure(&self) -> Option<String> {
        if let Some(failure) = self.source.health().failure {
            return Some(failure.to_string());
        }
        self.shared.lock().elections.values().find_map(Leadership::failure)
    }

    /// Returns a note for probes: the seat and the number of slots.
    pub(crate) fn note(&self) -> String {
        let (n, of) = (self.n_owned(), self.config.slots().count());
        match self.seat() {
            Some(seat) => format!("owns {n} of {of} slots, in seat {seat}"),
            None => format!("owns {n} of {of} slots, without a seat"),
        }
    }
}
