//! May a write start? Reads how long this process leads at least, and bounds the time that a write may take.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

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

/// Asked before each write. No write starts unless its timeout and a margin fit into what is left of the lease, so that
/// no write of a leader is still on its way when the next one begins. Clones are one permit.
#[derive(Debug, Clone, Default)]
pub struct WritePermit(Arc<OnceLock<Lease>>);

#[derive(Debug, Clone)]
struct Lease {
    permission: watch::Receiver<Permission>,
    timeout: Duration,
    margin: Duration,
}

impl WritePermit {
    /// The permit of a process that shares its work with nobody.
    pub fn always() -> Self {
        Self::default()
    }

    /// The permit of a process that works while it holds a lease. A write may take `timeout`, and go on unseen for `margin`.
    pub fn of_lease(permission: watch::Receiver<Permission>, timeout: Duration, margin: Duration) -> Self {
        let permit = Self::default();
        permit.bind(permission, timeout, margin);
        permit
    }

    /// From now on this permit, and each clone of it, is that of a lease. Only the first call does anything.
    pub(crate) fn bind(&self, permission: watch::Receiver<Permission>, timeout: Duration, margin: Duration) {
        let _bound = self.0.set(Lease { permission, timeout, margin });
    }

    /// Returns how long the write may take. When too little is left of the lease, waits until it is renewed, at longest
    /// until it runs out.
    ///
    /// # Errors
    /// When this process does not lead, or no longer: nothing has been sent.
    pub async fn ask(&self, operation: &str) -> Result<Duration, ApiError> {
        let Some(Lease { permission, timeout, margin }) = self.0.get() else { return Ok(ANSWER_WITHIN) };
        let mut permission = permission.clone();
        loop {
            let now = Instant::now();
            let until = match *permission.borrow_and_update() {
                Permission::Until(until) if until > now => until,
                _ => break,
            };
            if now + *timeout + *margin <= until {
                return Ok(*timeout);
            }
            // An elector that is gone renews nothing.
            if !matches!(timeout_at(until, permission.changed()).await, Ok(Ok(()))) {
                break;
            }
        }
        Err(ApiError::NotLeading { operation: operation.into() })
    }
}
