//! The check before each write that this process still holds the Lease, and the bound of the write's time.
//!
//! Leader election alone does not prevent two writers. A process may be paused after it looked at the Lease, for
//! example by a live migration, and go on writing when another one leads (client-go, `leaderelection.go`, package
//! comment). The permit closes that gap as far as the client can:
//!
//! ```text
//!  renewed             write begins          last moment it may act     Lease expires
//!     │                     │<───── timeout ─────>│<── margin ──>│            │
//!     └─────────────────────┴─────────────────────┴──────────────┴────────────┘
//! ```
//!
//! A write begins only if timeout and margin fit into the rest of the Lease. The remaining gap is a request that the
//! network holds for longer than the margin. Only fencing in the API server could stop that, and it has no such
//! feature.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use crate::transport::{ANSWER_WITHIN, ApiError};

/// The part of a leader election that a [`WritePermit`] reads.
///
/// The election sends it through a [`tokio::sync::watch`] channel, of which each permit reads the newest value.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::effect::Permission;
/// use tokio::time::Instant;
///
/// let led = Permission::Until(Instant::now() + Duration::from_secs(15));
/// assert_ne!(led, Permission::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// This process has not led yet. Writes fail at once.
    None,
    /// The Lease is valid until this instant of the local clock. Renewals move it forward.
    Until(Instant),
    /// This process has lost or released the Lease, and will not lead again.
    Never,
}

/// The check before each write that this process still holds its Lease.
///
/// A write starts only if its timeout and a margin fit into the rest of the Lease, so that no write of this
/// leader is in flight when the next one starts. client-go has no such check: there a paused process may
/// write after another one took over. The permit also tracks writes without an answer, and the Lease is
/// not released before their time is over. Clones share the state.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use kctl_runtime::effect::{Permission, WritePermit};
/// use tokio::{sync::watch, time::Instant};
///
/// let (timeout, margin) = (Duration::from_secs(10), Duration::from_secs(1));
/// let until = Instant::now() + Duration::from_secs(15);
/// let (election, permission) = watch::channel(Permission::Until(until));
/// let permit = WritePermit::of_lease(permission, timeout, margin);
///
/// let leave = permit.ask("patch ConfigMap shop/settings").await?;
/// assert_eq!(leave.within(), timeout); // send the request with this timeout
/// leave.answered();
///
/// election.send_replace(Permission::Never);
/// assert!(permit.ask("patch ConfigMap shop/settings").await.is_err());
/// # Ok::<_, kctl_runtime::effect::ApiError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WritePermit(Arc<OnceLock<Lease>>);

/// A write: the end of its time, and a number that tells it from others.
type Write = (Instant, u64);

/// The writes that began under one Lease.
#[derive(Debug, Default)]
struct Writes {
    /// Writes without an answer whose time is not over. Expired ones are removed when the next one begins.
    unresolved: BTreeSet<Write>,
    /// Number of writes so far, which makes the entries of `unresolved` distinct.
    n_begun: u64,
    /// Set when the process stops: no further write begins. It is never unset.
    closed: bool,
}

impl Writes {
    /// Registers a write that is over at `over`; `None` if the permit is closed.
    fn begin(&mut self, now: Instant, over: Instant) -> Option<Write> {
        if self.closed {
            return None;
        }
        while self.unresolved.first().is_some_and(|(over, _)| *over <= now) {
            self.unresolved.pop_first();
        }
        self.n_begun += 1;
        let write = (over, self.n_begun);
        self.unresolved.insert(write);
        Some(write)
    }
}

/// The permission for one write, which [`WritePermit::ask`] returns.
///
/// Call [`answered`](Self::answered) when the server has answered. A value that is dropped counts as a
/// write that may still be on its way, until its time is over.
#[derive(Debug)]
#[must_use = "a write that is not answered keeps the lease from being handed back"]
pub struct Leave {
    /// The timeout of the request.
    within: Duration,
    /// The entry to remove once the server answers. `None` without leader election.
    write: Option<(Arc<Mutex<Writes>>, Write)>,
}

impl Leave {
    /// Returns how long the write may take. Use it as the timeout of the request.
    ///
    /// It is 60 s without leader election, and the `timeout` of [`WritePermit::of_lease`] with it.
    pub fn within(&self) -> Duration {
        self.within
    }

    /// Records that the API server has answered, with success or a rejection.
    ///
    /// Call it for a rejection too: the server has decided, and nothing of the write is on its way any more.
    pub fn answered(self) {
        if let Some((writes, write)) = self.write {
            writes.lock().unresolved.remove(&write);
        }
    }

    /// Calls [`answered`](Self::answered) unless the outcome of the request is unknown.
    pub(crate) fn ended<T>(self, result: &Result<T, ApiError>) {
        if !result.as_ref().is_err_and(ApiError::is_unknown_outcome) {
            self.answered();
        }
    }
}

/// A Lease as a permit sees it.
#[derive(Debug, Clone)]
struct Lease {
    permission: watch::Receiver<Permission>,
    timeout: Duration,
    margin: Duration,
    /// Shared by all permits of this Lease.
    writes: Arc<Mutex<Writes>>,
}

impl WritePermit {
    /// Returns the permit of a process without leader election, which grants at once.
    ///
    /// Writes have a timeout of 60 s under it.
    pub fn always() -> Self {
        Self::default()
    }

    /// Returns a permit of a Lease: `permission` follows the election.
    ///
    /// `timeout` is the longest time that a write may take, and `margin` how long it may go on unseen after
    /// that, on the network or in a server that does not notice that its client is gone. See
    /// [`ElectionConfig::write_timeout`](crate::manager::lease::ElectionConfig::write_timeout) for the usual values.
    ///
    /// All clones share the count of unanswered writes, so hand clones to every writer of one Lease.
    pub fn of_lease(permission: watch::Receiver<Permission>, timeout: Duration, margin: Duration) -> Self {
        Self(Arc::new(Lease { permission, timeout, margin, writes: Arc::default() }.into()))
    }

    /// Makes this permit and its clones permits of the given Lease. Only the first call has an effect.
    ///
    /// A manager builds writers before it knows the Lease. They hold an unbound permit, which grants everything until
    /// then.
    pub(crate) fn bind(&self, lease: &Self) {
        if let Some(lease) = lease.0.get() {
            let _bound = self.0.set(lease.clone());
        }
    }

    /// Waits until a write can start, and returns the permission for it.
    ///
    /// It returns at once while enough of the Lease is left. Otherwise it waits for the next renewal, at most
    /// until the Lease expires. `operation` is the beginning of the error's message.
    ///
    /// # Errors
    /// [`ApiError::NotLeading`] if this process does not lead: nothing has been sent.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: a write counts only once this has returned.
    pub async fn ask(&self, operation: &str) -> Result<Leave, ApiError> {
        let Some(Lease { permission, timeout, margin, writes }) = self.0.get() else {
            return Ok(Leave { within: ANSWER_WITHIN, write: None });
        };
        let mut permission = permission.clone();
        loop {
            let now = Instant::now();
            let until = match *permission.borrow_and_update() {
                Permission::Until(until) if until > now => until,
                _ => break,
            };
            let over = now + *timeout + *margin;
            if over <= until {
                let Some(write) = writes.lock().begin(now, over) else { break };
                return Ok(Leave { within: *timeout, write: Some((writes.clone(), write)) });
            }
            // An elector that is gone renews nothing.
            if !matches!(timeout_at(until, permission.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        Err(ApiError::NotLeading { operation: operation.into() })
    }

    /// Stops all further writes under this Lease.
    ///
    /// The manager calls it when it stops, before it releases the Lease. Without that a late task could still write.
    pub(crate) fn close(&self) {
        if let Some(lease) = self.0.get() {
            lease.writes.lock().closed = true;
        }
    }

    /// Returns the time until which a write may be on its way, `None` if all were answered or are over.
    ///
    /// Releasing a Lease before that would let the next leader begin while a write of this one may still arrive.
    pub(crate) fn unresolved_until(&self) -> Option<Instant> {
        let last = self.0.get()?.writes.lock().unresolved.last().map(|(over, _)| *over);
        last.filter(|over| *over > Instant::now())
    }
}
