//! The check before each write that this process still holds the Lease, and the bound of the write's time.
//!
//! Leader election alone does not prevent two writers. A process may be paused after it looked at the Lease, for
//! example by a live migration, and still write when another process leads (client-go, `leaderelection.go`, package
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
//!
//! The send buffer of the kernel is a part of that path: a request may remain there after the client has given up. On
//! Linux a connection to the API server ends when data was not acknowledged for 7 s (`TCP_USER_TIMEOUT`). That is less
//! than timeout and margin of the default Leases. There is no such bound on other systems, or for Lease durations below
//! 14 s. Nor is there one behind a proxy that has acknowledged the request, or on a slow connection that makes
//! progress.
//!
//! The clock is monotonic and continues while a process is frozen. It stops while its machine is suspended: such a
//! process may write until its next renewal is answered.

use std::{
    collections::BTreeSet,
    fmt,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use crate::{
    key::ObjectKey,
    transport::{ApiError, Deadline, Operation, RESPONSE_TIMEOUT},
};

/// The part of a leader election that a [`WritePermit`] reads.
///
/// The election sends it through a [`tokio::sync::watch`] channel, and each permit reads the newest value.
///
/// ```
/// use std::time::Duration;
/// use kctl_runtime::writer::LeaseState;
/// use tokio::time::Instant;
///
/// let led = LeaseState::HeldUntil(Instant::now() + Duration::from_secs(15));
/// assert_ne!(led, LeaseState::NotHeld);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// This process has not led yet. Writes fail at once.
    NotHeld,
    /// The Lease is valid until this instant of the local clock. Renewals move it forward.
    HeldUntil(Instant),
    /// The Lease is lost or released, or the process is stopping. This state is final: a slot that the process acquires
    /// again has a separate permit.
    Lost,
}

/// The check before each write that this process still holds its Lease.
///
/// A write starts only if its timeout and a margin fit into the rest of the Lease. So no write of this leader is in
/// flight when the next one starts. client-go has no such check. There a paused process may write after another leader
/// took over. The permit also tracks writes without a response, and the Lease is not released before their time is
/// over. Clones share the state.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// use std::time::Duration;
/// use kctl_runtime::writer::{LeaseState, WritePermit};
/// use tokio::{sync::watch, time::Instant};
///
/// let (timeout, margin) = (Duration::from_secs(10), Duration::from_secs(1));
/// let until = Instant::now() + Duration::from_secs(15);
/// let (election, state) = watch::channel(LeaseState::HeldUntil(until));
/// let permit = WritePermit::from_lease(state, timeout, margin);
///
/// let guard = permit.acquire("patch ConfigMap shop/settings").await?;
/// assert_eq!(guard.timeout(), timeout); // send the request with this timeout
/// guard.resolve();
///
/// election.send_replace(LeaseState::Lost);
/// assert!(permit.acquire("patch ConfigMap shop/settings").await.is_err());
/// # Ok::<_, kctl_runtime::writer::ApiError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WritePermit(Arc<OnceLock<LeaseSource>>);

/// The Lease that a permit checks.
#[derive(Debug, Clone)]
enum LeaseSource {
    /// A single Lease.
    Lease(Lease),
    /// The Lease that is common to all slots of a sharded program.
    Shards(Arc<dyn ShardPermits>),
    /// The Lease of one slot in the tenure with this number.
    Slot(Arc<dyn ShardPermits>, u32, u64),
}

/// The permits of a sharded program, one per slot.
pub(crate) trait ShardPermits: fmt::Debug + Send + Sync {
    fn slot(&self, key: &ObjectKey) -> u32;
    /// Returns the permit of the Lease that all slots have in common.
    fn common(&self) -> WritePermit;
    /// Returns the permit of a slot in a tenure, `None` if this replica does not own the slot, or owns it again in a later
    /// tenure. In a controller ring, each primary has its own tenures.
    fn permit_of_slot(&self, slot: u32, tenure: u64) -> Option<WritePermit>;
}

/// A write: the end of its time, and a number that tells it from others.
type Write = (Instant, u64);

/// The writes that began under one Lease.
#[derive(Debug, Default)]
struct Writes {
    /// Writes without a response whose time is not over. Expired ones are removed when the next one begins. Invariant:
    /// no entry is added once `closed` is set.
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
        let is_new = self.unresolved.insert(write);
        debug_assert!(is_new, "each write has a separate entry, which its response removes");
        debug_assert!(over >= now, "a write ends after it begins");
        Some(write)
    }
}

/// The writes under one Lease, and the answers to them.
#[derive(Debug, Default)]
struct WriteLog {
    writes: Mutex<Writes>,
    /// Notified of each answer, for a hand-over that waits for it.
    resolved: Notify,
}

impl WriteLog {
    /// Removes a write whose outcome is known.
    fn resolve(&self, write: &Write) {
        self.writes.lock().unresolved.remove(write);
        self.resolved.notify_waiters();
    }
}

/// The permission for one write, which [`WritePermit::acquire`] returns.
///
/// Call [`resolve`](Self::resolve) when the server has answered. A value that is dropped counts as a
/// write that may still be in flight, until its time is over.
#[derive(Debug)]
#[must_use = "a write that is not answered keeps the Lease from being released"]
pub struct WriteGuard {
    /// The deadline of the request, whose time began when the permit was granted.
    deadline: Deadline,
    /// The entries to remove once the server answers, one per Lease. Empty without leader election.
    writes: Vec<(Arc<WriteLog>, Write)>,
}

impl WriteGuard {
    /// Returns how long the write may take. Use it as the timeout of the request, and send the request at once: the time
    /// begins when [`WritePermit::acquire`] returns.
    ///
    /// It is 60 s without leader election, and the `timeout` of [`WritePermit::from_lease`] with it. With shards and in a
    /// controller ring it is [`ShardConfig::write_timeout`](crate::manager::shards::ShardConfig::write_timeout).
    pub fn timeout(&self) -> Duration {
        self.deadline.timeout()
    }

    pub(crate) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Records that the API server has answered, with success or a rejection.
    ///
    /// Call it for a rejection too: the server has decided, and the write is no longer in flight.
    pub fn resolve(self) {
        for (log, write) in self.writes {
            log.resolve(&write);
        }
    }

    /// Calls [`resolve`](Self::resolve) unless the outcome of the request is unknown.
    pub(crate) fn finish<T>(self, result: &Result<T, ApiError>) {
        if !result.as_ref().is_err_and(ApiError::is_unknown_outcome) {
            self.resolve();
        }
    }
}

/// A Lease as a permit sees it.
#[derive(Debug, Clone)]
struct Lease {
    state: watch::Receiver<LeaseState>,
    /// Longest time of a write. Invariant: at most the timeout of `common`.
    timeout: Duration,
    margin: Duration,
    /// Shared by all permits of this Lease.
    log: Arc<WriteLog>,
    /// A Lease that has to be held as well: the settings' Lease, for the Lease of a slot.
    common: Option<Arc<Lease>>,
    /// The time that the Lease is checked against, with a bug that tests plant; `None` for the monotonic clock.
    planted_clock: Option<Arc<Mutex<Instant>>>,
    /// Held by the first of the writes that wait for a renewal. The channel of `state` wakes its receivers in a random
    /// order. This lock makes the writes continue in the order of their arrival, so that a simulated run repeats
    /// itself.
    renewal_queue: Arc<tokio::sync::Mutex<()>>,
}

impl Lease {
    /// Returns this Lease and the one that has to be held as well.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.common.as_deref())
    }

    /// Returns the end of the Lease by the local clock, `None` if it is not held.
    fn lease_end(&self, now: Instant) -> Option<Instant> {
        match *self.state.borrow() {
            LeaseState::HeldUntil(until) if until > now => Some(until),
            _ => None,
        }
    }

    /// Waits for a renewal, at most until the Lease expires. Returns `false` if nothing has changed by then, and `true`
    /// also if the Lease was lost, so the caller looks at the state again.
    async fn wait_for_renewal(&self, until: Instant) -> bool {
        let mut state = self.state.clone();
        let later = |state: &LeaseState| !matches!(state, LeaseState::HeldUntil(end) if *end <= until);
        // A dropped elector closes the channel, which counts as not renewed. No write waits behind one that needs a later
        // renewal, because each waits for the end of the Lease that it saw.
        let renewed = async {
            let _first = self.renewal_queue.lock().await;
            state.wait_for(later).await.is_ok()
        };
        matches!(timeout_at(until, renewed).await, Ok(true))
    }

    /// Registers a write with each Lease; `None` if one of them is closed.
    fn begin(&self, now: Instant, over: Instant) -> Option<Vec<(Arc<WriteLog>, Write)>> {
        debug_assert!(self.all().all(|lease| self.timeout <= lease.timeout), "the shorter timeout counts");
        let mut begun = Vec::<(Arc<WriteLog>, Write)>::new();
        for lease in self.all() {
            let Some(write) = lease.log.writes.lock().begin(now, over) else {
                for (log, write) in begun {
                    log.resolve(&write);
                }
                return None;
            };
            begun.push((lease.log.clone(), write));
        }
        Some(begun)
    }
}

impl WritePermit {
    /// Returns the permit of a process without leader election, which grants at once.
    ///
    /// Writes have a timeout of 60 s under it.
    pub fn always() -> Self {
        Self::default()
    }

    /// Returns a permit of a Lease: `state` follows the election.
    ///
    /// `timeout` is the longest time that a write may take. `margin` is how long it may still be in flight after that,
    /// on the network or in a server that does not notice that its client is gone. See
    /// [`ElectionConfig::write_timeout`](crate::manager::lease::ElectionConfig::write_timeout) for the usual values. Both
    /// together must be shorter than the rest of a Lease after a renewal. Otherwise each write waits for a renewal that
    /// leaves enough time, as long as the Lease is renewed.
    ///
    /// All clones share the count of unanswered writes, so hand clones to every writer of one Lease.
    pub fn from_lease(state: watch::Receiver<LeaseState>, timeout: Duration, margin: Duration) -> Self {
        let lease = Lease {
            state,
            timeout,
            margin,
            log: Arc::default(),
            common: None,
            planted_clock: None,
            renewal_queue: Arc::default(),
        };
        Self(Arc::new(LeaseSource::Lease(lease).into()))
    }

    pub(crate) fn from_shards(shards: Arc<dyn ShardPermits>) -> Self {
        Self(Arc::new(LeaseSource::Shards(shards).into()))
    }

    /// Returns this permit with the condition that `common` grants the same write. The shorter of the two timeouts counts.
    pub(crate) fn with_common(&self, common: &Self) -> Self {
        let (Some(LeaseSource::Lease(lease)), Some(LeaseSource::Lease(common))) = (self.0.get(), common.0.get()) else {
            return self.clone();
        };
        let timeout = lease.timeout.min(common.timeout);
        let planted_clock = common.planted_clock.clone();
        let lease = Lease { common: Some(Arc::new(common.clone())), timeout, planted_clock, ..lease.clone() };
        Self(Arc::new(LeaseSource::Lease(lease).into()))
    }

    /// Returns a permit of the same Lease that reads the time from a value: a bug that tests plant.
    pub(crate) fn with_clock(&self, clock: &Arc<Mutex<Instant>>) -> Self {
        let Some(LeaseSource::Lease(lease)) = self.0.get() else { return self.clone() };
        let lease = Lease { planted_clock: Some(clock.clone()), ..lease.clone() };
        Self(Arc::new(LeaseSource::Lease(lease).into()))
    }

    /// Returns a permit of the same Lease that counts its own writes. They count for this permit as well.
    pub(crate) fn child(&self) -> Self {
        let Some(LeaseSource::Lease(lease)) = self.0.get() else { return self.clone() };
        let apart = Lease { log: Arc::default(), common: Some(Arc::new(lease.clone())), ..lease.clone() };
        Self(Arc::new(LeaseSource::Lease(apart).into()))
    }

    /// Returns the permit for writes of one key: the slot's permit in a sharded program, otherwise this one.
    ///
    /// `tenure` is the number of the tenure in which the work on the key began. Another replica may have written since the
    /// end of that tenure, so the work must not write in a later one.
    pub(crate) fn for_key(&self, key: &ObjectKey, tenure: u64) -> Self {
        match self.0.get() {
            Some(LeaseSource::Shards(shards)) => {
                Self(Arc::new(LeaseSource::Slot(shards.clone(), shards.slot(key), tenure).into()))
            }
            _ => self.clone(),
        }
    }

    /// Makes this permit and its clones permits of the given Lease. Only the first call has an effect.
    ///
    /// A manager builds writers before it knows the Lease. They hold an unbound permit, which grants everything until
    /// then.
    pub(crate) fn bind(&self, lease: &Self) {
        if let Some(source) = lease.0.get() {
            let _bound = self.0.set(source.clone());
        }
    }

    /// Returns the Lease that a write needs now, `None` if this replica does not own the slot, or not since the same tenure.
    fn lease(source: &LeaseSource) -> Option<Lease> {
        let permit = match source {
            LeaseSource::Lease(lease) => return Some(lease.clone()),
            LeaseSource::Shards(shards) => shards.common(),
            LeaseSource::Slot(shards, slot, tenure) => shards.permit_of_slot(*slot, *tenure)?,
        };
        match permit.0.get() {
            Some(LeaseSource::Lease(lease)) => Some(lease.clone()),
            _ => None,
        }
    }

    /// Returns `true` unless the tenure is over in which the work on a key began.
    fn is_in_tenure(source: &LeaseSource) -> bool {
        match source {
            LeaseSource::Lease(_) | LeaseSource::Shards(_) => true,
            LeaseSource::Slot(shards, slot, tenure) => shards.permit_of_slot(*slot, *tenure).is_some(),
        }
    }

    /// Waits until a write can start, and returns its guard.
    ///
    /// It returns at once while enough of the Lease is left. Otherwise it waits for the next renewal, at most
    /// until the Lease expires. `operation` is the beginning of the error's message.
    ///
    /// # Errors
    /// [`ApiError::NotLeading`] if this process does not lead: nothing has been sent.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect: a write counts only once this has returned.
    pub async fn acquire(&self, operation: impl Into<Operation>) -> Result<WriteGuard, ApiError> {
        let Some(source) = self.0.get() else {
            return Ok(WriteGuard { deadline: Deadline::from_now(RESPONSE_TIMEOUT), writes: Vec::new() });
        };
        let operation = operation.into();
        let denied = || ApiError::NotLeading { operation: operation.clone() };
        let lease = Self::lease(source).ok_or_else(denied)?;
        'tries: loop {
            let begun = Instant::now();
            let now = lease.planted_clock.as_ref().map_or(begun, |clock| *clock.lock());
            let over = now + lease.timeout + lease.margin;
            for needed in lease.all() {
                let until = needed.lease_end(now).ok_or_else(denied)?;
                if over > until {
                    if needed.wait_for_renewal(until).await {
                        continue 'tries;
                    }
                    return Err(denied());
                }
            }
            let writes = lease.begin(now, over).ok_or_else(denied)?;
            let guard = WriteGuard { deadline: Deadline::new(begun, lease.timeout), writes };
            // A hand-over ends the tenure, and then waits for the writes that are registered. So either it sees this one,
            // or this sees the end.
            if Self::is_in_tenure(source) {
                return Ok(guard);
            }
            guard.resolve();
            return Err(denied());
        }
    }

    /// Stops all further writes under this Lease.
    ///
    /// The manager calls it when it stops, before it releases the Lease. Without that a late task could still write.
    pub(crate) fn close(&self) {
        if let Some(lease) = self.0.get().and_then(Self::lease) {
            lease.log.writes.lock().closed = true;
        }
    }

    /// Returns the time until which a write may be in flight, `None` if all were answered or are over.
    ///
    /// Releasing a Lease before that would let the next leader begin while a write of this one may still arrive.
    pub(crate) fn unresolved_until(&self) -> Option<Instant> {
        let last = Self::lease(self.0.get()?)?.log.writes.lock().unresolved.last().map(|(over, _)| *over);
        last.filter(|over| *over > Instant::now())
    }

    /// Returns once no write may be in flight until `over`: the last one was answered, or its time is over.
    ///
    /// Call it only after [`close`](Self::close), so that no later write begins.
    pub(crate) async fn wait_for_answers(&self, over: Instant) {
        let Some(lease) = self.0.get().and_then(Self::lease) else { return };
        loop {
            let mut resolved = pin!(lease.log.resolved.notified());
            resolved.as_mut().enable();
            if self.unresolved_until() != Some(over) || timeout_at(over, resolved).await.is_err() {
                return;
            }
        }
    }
}
