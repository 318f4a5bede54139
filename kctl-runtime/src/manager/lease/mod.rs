//! Leader election on a Lease: one of several replicas works, and another takes over when it ends.
//!
//! [`Election`] is client-go's algorithm (`tools/leaderelection/leaderelection.go`) as a pure state machine.
//! [`Elector`] performs its requests, and [`Leadership`] is the result that the rest of the process reads.
//! Times in the Lease are never compared with the local clock, because clocks of two machines differ. A Lease
//! counts as expired when its record has not changed for its duration, as observed here.
//!
//! Differences from client-go:
//!
//! - A leader that sees another holder stops at once.
//! - A write starts only if it ends before the Lease does ([`WritePermit`](crate::writer::WritePermit)).
//! - Candidates watch the Lease, so a released one is acquired at once rather than at the next try.
//! - A Lease that was deleted under its leader is not acquired by others before its time is over.
//! - Only a release ends a Lease early. If a person removes the holder or shortens the Lease, candidates that saw the
//!   holder wait for its former duration.
//!
//! [`Manager::elect`](super::Manager::elect) enables all of this. To elect a leader in another program:
//!
//! ```no_run
//! # async fn elect(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use k8s_openapi::jiff::Timestamp;
//! use kctl_runtime::manager::lease::{self, ElectionConfig, Elector};
//!
//! let config = ElectionConfig::new("backup.example.com", "default", &lease::identity());
//! let elector = Elector::new(client, config, Arc::new(Timestamp::now))?;
//! let leadership = elector.leadership();
//! let (stop, stopped) = tokio::sync::oneshot::channel();
//! let election = tokio::spawn(elector.run(async { stopped.await.unwrap_or(false) }));
//! if leadership.wait_until_leading().await {
//!     // Work here, and ask `leadership.permit()` before each write.
//! }
//! stop.send(true).ok(); // release the Lease
//! println!("{:?}", election.await?);
//! # Ok(())
//! # }
//! ```

mod config;
mod election;
mod election_limiter;
mod elector;
mod expired;
mod failure_log;
mod leadership;
mod record;
mod release_watch;
mod runtime;
mod sole;

pub(super) use config::LEASE_DURATION;
pub use config::{ElectionConfig, ElectionError, host_name, identity};
#[doc(hidden)]
pub use election::PROCESS;
pub use election::{Effect, Election, End, Input, Step};
pub(super) use election::{Holders, other_process};
pub(super) use election_limiter::ElectionLimiter;
pub use elector::Elector;
pub(super) use elector::{LatestRecord, LeaseAnnotation, Missing, ObservedLease, is_shard_settings};
pub(super) use expired::release_expired;
pub use leadership::{ElectionState, Leadership};
pub use record::Record;
pub(super) use runtime::ElectionRuntime;
pub(super) use sole::SoleLease;

/// The next request of an election to the API server.
#[derive(Debug, Clone, PartialEq)]
pub enum LeaseRequest {
    /// Reads the Lease.
    Get,
    /// Creates the Lease.
    Create(serde_json::Value),
    /// Replaces the Lease, with the `resourceVersion` that was read as a precondition.
    Update(serde_json::Value),
}
