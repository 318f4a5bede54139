//! The manager around the control loop: on the embedded API server, with simulated time.

mod debug;
mod election;
mod events;
mod fence;
mod finalizers;
mod health;
mod leak;
mod lease_candidates;
mod lifecycle;
mod manifests;
mod metrics;
mod replicas;
mod retry_after;
mod ring;
mod rolling;
mod runtime_watches;
mod seats;
mod server_selection;
mod shard_faults;
mod shard_predicates;
mod shard_start;
mod shard_tenures;
mod shards;
mod slot_moves;
mod trace;
mod unreadable;
