//! The state of an election as the rest of the process reads it.
//!
//! Readers never send requests. The state is as new as the elector's last step, a few seconds at most.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::{ElectionConfig, End};
use crate::writer::WritePermit;

/// The role of this process in an election.
///
/// It changes in this order and never back: a process that has lost its Lease does not become a standby again, but
/// exits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElectionState {
    /// It waits for the Lease.
    Standby,
    /// It leads, at least until this instant of the local clock. Renewals move it forward.
    Leading(Instant),
    /// It does not lead, and will not again.
    Over(End),
}

/// A handle to the state of an election. Clones share it.
///
/// [`Elector::leadership`](super::Elector::leadership) has an example. The handle remains valid after the election is
/// over.
#[derive(Debug, Clone)]
pub struct Leadership {
    pub(super) state: watch::Receiver<ElectionState>,
    pub(super) permit: WritePermit,
    pub(super) holder: watch::Receiver<String>,
    pub(super) failure: watch::Receiver<Option<String>>,
    pub(super) slow_renewals: watch::Receiver<u64>,
    pub(super) joined_new_lease: Arc<AtomicBool>,
    pub(super) config: std::sync::Arc<ElectionConfig>,
}

impl Leadership {
    /// Returns the current role of this process.
    pub fn state(&self) -> ElectionState {
        self.state.borrow().clone()
    }

    /// Returns `true` if this process leads now and its Lease has not expired by the local clock.
    ///
    /// For a write use [`permit`](Self::permit): this only says that the Lease is valid at this instant.
    pub fn is_leading(&self) -> bool {
        matches!(*self.state.borrow(), ElectionState::Leading(until) if Instant::now() < until)
    }

    /// Returns the identity of the holder, as far as it is known; empty if the Lease is free.
    ///
    /// It is known after the first read of the Lease. A standby updates it with each of its tries.
    pub fn holder(&self) -> String {
        self.holder.borrow().clone()
    }

    pub(in crate::manager) fn holder_changes(&self) -> watch::Receiver<String> {
        self.holder.clone()
    }

    /// Returns the error of the last request about the Lease, until its cause is gone.
    ///
    /// Typical are a missing permission and an unreachable API server.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Returns how often a leader had to read the Lease before it could renew it.
    ///
    /// A few are normal. Many mean conflicts: something else writes the Lease, for example a tool that edits its
    /// labels.
    pub fn slow_renewals(&self) -> u64 {
        *self.slow_renewals.borrow()
    }

    /// Returns `true` if this process began to lead under a Lease that nothing had renewed yet.
    ///
    /// If several processes hold the Lease together, none of them has held it for longer than a retry period.
    pub(in crate::manager) fn joined_new_lease(&self) -> bool {
        self.joined_new_lease.load(Ordering::Relaxed)
    }

    /// Returns the configuration of the election, with the Lease and the identity of this process.
    pub fn config(&self) -> &ElectionConfig {
        &self.config
    }

    /// Waits until this process leads and returns `true`, or `false` if the election ended before.
    ///
    /// ```
    /// use kctl_runtime::manager::lease::Leadership;
    ///
    /// async fn backups(leadership: Leadership) {
    ///     if leadership.wait_until_leading().await {
    ///         // Work here, and ask `leadership.permit()` before each write.
    ///     }
    /// }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn wait_until_leading(&self) -> bool {
        let mut state = self.state.clone();
        let decided = state.wait_for(|state| *state != ElectionState::Standby).await;
        decided.is_ok_and(|state| matches!(*state, ElectionState::Leading(_)))
    }

    /// Returns the permit for writes of the leader.
    pub fn permit(&self) -> WritePermit {
        self.permit.clone()
    }

    /// Checks that a leader is alive: it has renewed its Lease, or noticed the end within `tolerance`.
    ///
    /// A process that does not lead always passes (client-go, `LeaderElector.Check`).
    ///
    /// # Errors
    /// A message with the time since the Lease expired.
    pub fn check(&self, tolerance: Duration) -> Result<(), String> {
        let ElectionState::Leading(until) = *self.state.borrow() else { return Ok(()) };
        let over = Instant::now().saturating_duration_since(until);
        if over > tolerance {
            return Err(format!("the lease ran out {} s ago and was not renewed", over.as_secs()));
        }
        Ok(())
    }
}
