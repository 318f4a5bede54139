//! Several active replicas: each reconciles the keys of its slots.
//!
//! ```text
//! membership   seat Lease held ─▶ others that start too (startup delay) ─▶ live seats ─▶ preferred seat of each slot (assignment)
//! gain         slot wanted ─▶ Lease acquired ─▶ tenure ─▶ caches current ─▶ keys queued ─▶ served
//! hand-over    slot unwanted ─▶ no key given out ─▶ reconciles end ─▶ writes resolved ─▶ Lease released
//! loss         Lease not renewed ─▶ no write starts ─▶ reconciles cut off ─▶ writes resolved ─▶ slot given up
//! caches       tenure begins ─▶ its objects are listed and watched; it ends ─▶ they are dropped (caches)
//! ```
//!
//! All replicas also hold the Lease of the app together, as a holder that is named after their settings. So replicas
//! with another number of slots, and replicas with leader election, never work at the same time as these. Elections,
//! renewals and the write permit come from [`lease`](super::lease).

mod assignment;
mod caches;
mod config;
mod coordinator;
mod division;
mod explanation;
mod gained_slots;
mod observed_leases;
mod planted;
mod seat;
mod settings;
mod slot_task;
mod startup_delay;
mod view;

pub use config::{LABEL, ShardConfig, ShardError};
pub(super) use coordinator::Coordinator;
pub use explanation::KeyExplanation;
pub(super) use gained_slots::serve_new_slots;
#[doc(hidden)]
pub use planted::Planted;
pub use view::{ShardView, SlotView};
