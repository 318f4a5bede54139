//! Slots of a sharded program, and the tenures under which this replica works on them.
//!
//! [`Slots`] maps a key to its slot. `Tenures` holds, for each slot that this replica owns, the permit of its Lease. A
//! `Gate` per controller lets keys of those slots into the queue and to the workers, once the caches of the
//! controller are as new as the tenure. The manager's `shards` module acquires and hands over the Leases.
//!
//! `Ring` is the counterpart for a shard of kubernetes-controller-sharding, whose keys are assigned by labels.

mod gate;
mod hash;
mod primary_tenures;
mod ring;
mod slots;
mod tenure;

pub(crate) use gate::{Gate, ReconcileGuard};
pub(crate) use hash::{hash_string, splitmix64};
pub(crate) use ring::{LabelledShare, NextStep, Ring, RingLabels, RunningReconcile};
pub(crate) use slots::{DIVISION, is_slot_or_seat_name, seat_name};
pub use slots::{SLOTS_MAX, ShardBy, Slots, slot_name};
pub(crate) use tenure::{Phase, Tenure, Tenures};
