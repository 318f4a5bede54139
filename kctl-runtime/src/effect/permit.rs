//! May a write start? Reads how long this process leads at least, and bounds the time that a write may take.

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

use super::{ApiError, transport::ANSWER_WITHIN};

/// Until when writes are permitted, by this process's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Not yet.
    None,
    /// The lease is valid until then, and is renewed in the meantime unless something is wrong.
    Until(Instant),
    /// No longer.
    Never,
}

/// The check before each write that this process still holds its Lease.
///
/// A write starts only if its timeout and a margin fit into the rest of the Lease, so that no write of this leader is in flight when the
/// next one starts. The permit tracks unanswered writes, and the Lease is not released before they end. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct WritePermit(Arc<OnceLock<Lease>>);

/// A write: until when it may be on its way, and its number.
type Write = (Instant, u64);

/// What has begun under a lease.
#[derive(Debug, Default)]
struct Writes {
    /// Until when each write that has no answer may be on its way. What is over goes when the next one begins.
    unresolved: BTreeSet<Write>,
    n_begun: u64,
    /// No further write begins.
    closed: bool,
}

impl Writes {
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

/// The leave for one write. One that is dropped without [`Leave::answered`] may still be on its way until its time is over.
#[derive(Debug)]
#[must_use = "a write that is not answered keeps the lease from being handed back"]
pub struct Leave {
    within: Duration,
    write: Option<(Arc<Mutex<Writes>>, Write)>,
}

impl Leave {
    /// How long the write may take.
    pub fn within(&self) -> Duration {
        self.within
    }

    /// The API server has answered: the write is done or refused.
    pub fn answered(self) {
        if let Some((writes, write)) = self.write {
            writes.lock().unresolved.remove(&write);
        }
    }

    /// The same if this is an answer, and not the lack of one.
    pub(crate) fn ended<T>(self, result: &Result<T, ApiError>) {
        if !result.as_ref().is_err_and(ApiError::is_unknown_outcome) {
            self.answered();
        }
    }
}

#[derive(Debug, Clone)]
struct Lease {
    permission: watch::Receiver<Permission>,
    timeout: Duration,
    margin: Duration,
    /// Of all permits of this lease.
    writes: Arc<Mutex<Writes>>,
}

impl WritePermit {
    /// Returns the permit of a process without leader election, which always grants.
    pub fn always() -> Self {
        Self::default()
    }

    /// The permit of a process that works while it holds a lease. A write may take `timeout`, and go on unseen for `margin`.
    pub fn of_lease(permission: watch::Receiver<Permission>, timeout: Duration, margin: Duration) -> Self {
        Self(Arc::new(Lease { permission, timeout, margin, writes: Arc::default() }.into()))
    }

    /// From now on this permit, and each clone of it, is one of this lease. Only the first call does anything.
    pub(crate) fn bind(&self, lease: &Self) {
        if let Some(lease) = lease.0.get() {
            let _bound = self.0.set(lease.clone());
        }
    }

    /// Returns the leave, which says how long the write may take. When too little is left of the lease, waits until it is
    /// renewed, at longest until it runs out.
    ///
    /// # Errors
    /// When this process does not lead, or no longer: nothing has been sent.
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

    /// From now on no write begins.
    pub(crate) fn close(&self) {
        if let Some(lease) = self.0.get() {
            lease.writes.lock().closed = true;
        }
    }

    /// Until when writes may be on their way: `None` when each has been answered or is over.
    pub(crate) fn unresolved_until(&self) -> Option<Instant> {
        let last = self.0.get()?.writes.lock().unresolved.last().map(|(over, _)| *over);
        last.filter(|over| *over > Instant::now())
    }
}
