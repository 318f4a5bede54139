//! Leader election on a Lease: of several processes one works at a time, and another one takes over when it goes.
//!
//! [`Election`] is client-go's algorithm (`tools/leaderelection/leaderelection.go`) as a pure state machine, [`Elector`]
//! performs its requests, and [`Leadership`] is what the rest of the process sees of it. Times of other processes are never
//! compared with this one's clock: a lease has run out when its record has not changed for its duration, as seen from here.
//!
//! Unlike client-go, a leader that sees another holder stops at once; no write starts that might still be on its way when the
//! lease runs out ([`WritePermit`](crate::effect::WritePermit)); and candidates watch the Lease, so that one that was handed
//! back is taken at once, not at the next try. A Lease that is deleted under its leader is taken by nobody else before its time.

mod config;
mod election;
mod elector;
mod handback;
mod leadership;
mod record;

pub use config::{ElectionConfig, ElectionError, identity};
pub use election::{Effect, Election, End, Input, Step};
pub use elector::Elector;
pub use leadership::{Leadership, Standing};
pub use record::Record;

/// Which request is sent next.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Read the lease.
    Get,
    /// Create the lease.
    Create(serde_json::Value),
    /// Replace the lease, with the version that was read as precondition.
    Update(serde_json::Value),
}
