//! What the rest of the process sees of an election: whether it leads, until when, and who does otherwise.

use std::time::Duration;

use tokio::{sync::watch, time::Instant};

use super::{ElectionConfig, End};
use crate::effect::WritePermit;

/// How this process stands in the election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It waits for the lease.
    Standby,
    /// It leads, at least until then by its own clock.
    Leading(Instant),
    /// It does not lead, and will not.
    Over(End),
}

/// An election as seen from outside. Clones see the same.
#[derive(Debug, Clone)]
pub struct Leadership {
    pub(super) standing: watch::Receiver<Standing>,
    pub(super) permit: WritePermit,
    pub(super) holder: watch::Receiver<String>,
    pub(super) failure: watch::Receiver<Option<String>>,
    pub(super) slow_renewals: watch::Receiver<u64>,
    pub(super) config: std::sync::Arc<ElectionConfig>,
}

impl Leadership {
    /// How this process stands now.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Whether this process leads now, by its own clock.
    pub fn is_leading(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Leading(until) if Instant::now() < until)
    }

    /// Returns the holder of the Lease, as far as it is known; empty without a holder.
    pub fn holder(&self) -> String {
        self.holder.borrow().clone()
    }

    /// Returns the last failure, until a request succeeds: a missing permission, or an unreachable API server.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// How often a leader had to read the lease before it could renew it.
    pub fn slow_renewals(&self) -> u64 {
        *self.slow_renewals.borrow()
    }

    /// Returns the configuration of the election.
    pub fn config(&self) -> &ElectionConfig {
        &self.config
    }

    /// Returns once this process leads; `false` when it will not.
    pub async fn led(&self) -> bool {
        let mut standing = self.standing.clone();
        let decided = standing.wait_for(|standing| *standing != Standing::Standby).await;
        decided.is_ok_and(|standing| matches!(*standing, Standing::Leading(_)))
    }

    /// A permit for writes of the leader.
    pub fn permit(&self) -> WritePermit {
        self.permit.clone()
    }

    /// Whether the process is in order: a leader that has neither renewed its lease nor noticed that it ran out longer than
    /// `tolerance` ago hangs. A process that does not lead is always in order (client-go, `Check`).
    ///
    /// # Errors
    /// When it hangs: says since when.
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        let Standing::Leading(until) = *self.standing.borrow() else { return Ok(()) };
        let over = Instant::now().saturating_duration_since(until);
        if over > tolerance {
            return Err(format!("the lease ran out {} s ago and was not renewed", over.as_secs()));
        }
        Ok(())
    }
}
