//! The memory for the bodies of requests: a bound on bytes, over all requests of a server.
//!
//! A bound on the number of requests is not enough, because one body may have 128 MiB. A body takes its bytes as they
//! arrive, and gives them back once its response is sent.
//!
//! If the budget is used up, a body waits for five seconds and is rejected then. So bodies that wait for each other end
//! soon. Once a body has waited for a second, bodies that have been incomplete for a second give way, the oldest first.
//! So a client that stops in the middle of a body, or sends it slowly, does not lock out others.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};

use crate::{
    client_limiter::{ClientLimiter, ClientPermit},
    connections::Pieces,
};

/// The bound for a program without a memory limit, in bytes: one body of the maximum length.
const BYTES_MAX: usize = 128 << 20;
/// The bound for the smallest memory limits, in bytes: two admission reviews.
const BYTES_MIN: usize = 16 << 20;
/// Part of the memory limit for bodies. A decoded object takes several times the bytes of its JSON.
const PART: usize = 4;
/// Longest wait for room.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Wait for room until the first body gives way, and age from which an incomplete body may give way. Bytes that arrive
/// don't reset the age, because a client could keep its room by sending slowly. A wait for room does.
const EVICT_AFTER: Duration = Duration::from_secs(1);
/// Time between two bodies that give way to one that waits.
const EVICT_INTERVAL: Duration = Duration::from_millis(100);
/// The memory limit of a container, with cgroups of version 2 and 1.
const LIMIT_FILES: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// The bytes that bodies may have together. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    free: Arc<Semaphore>,
    max: usize,
}

impl Default for Memory {
    /// Returns a quarter of the container's memory limit, at least 16 MiB and at most 128 MiB. Without a limit it is
    /// 128 MiB.
    fn default() -> Self {
        let limit = LIMIT_FILES.iter().find_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
        Self::new(share_of(limit))
    }
}

fn share_of(limit: Option<usize>) -> usize {
    limit.map_or(BYTES_MAX, |limit| (limit / PART).clamp(BYTES_MIN, BYTES_MAX))
}

impl Memory {
    /// Creates a bound, in bytes.
    pub(super) fn new(max: usize) -> Self {
        // A body takes its bytes by a number of 32 bits.
        let max = max.min(u32::MAX as usize);
        Self { free: Arc::new(Semaphore::new(max)), max }
    }

    /// Returns the bound, in bytes.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Takes bytes for a body with a permit, which gets room within [`WAIT_MAX`].
    ///
    /// # Errors
    /// The budget is used up: `NoRoom`.
    pub(super) async fn take(
        &self,
        held: &mut HeldMemory,
        len: usize,
        limiter: &ClientLimiter,
        client: &ClientPermit,
    ) -> Result<(), NoRoom> {
        let len = u32::try_from(len).map_err(|_| NoRoom)?;
        let permit = if let Ok(permit) = self.free.clone().try_acquire_many_owned(len) {
            permit
        } else {
            // The server is what this body waits for, so it cannot lose its permit.
            client.set_busy();
            let waited = timeout(WAIT_MAX, self.wait(len, limiter)).await;
            client.set_idle();
            waited.map_err(|_elapsed| NoRoom)?
        };
        match &mut held.0 {
            Some(all) => all.merge(permit),
            None => held.0 = Some(permit),
        }
        Ok(())
    }

    /// Waits for room, and makes other bodies give way.
    async fn wait(&self, len: u32, limiter: &ClientLimiter) -> OwnedSemaphorePermit {
        let mut room = pin!(self.free.clone().acquire_many_owned(len));
        let mut wait = EVICT_AFTER;
        loop {
            tokio::select! {
                biased;
                Ok(permit) = &mut room => return permit,
                () = sleep(wait) => limiter.evict_oldest(EVICT_AFTER),
            }
            wait = EVICT_INTERVAL;
        }
    }
}

/// The bytes of a body, until this is dropped.
#[derive(Debug, Default)]
pub(crate) struct HeldMemory(Option<OwnedSemaphorePermit>);

impl HeldMemory {
    /// Gives all bytes back.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

/// The body of a response. It may be as long as the request's body, whose bytes it keeps until it is sent.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: Pieces,
    _memory: Option<Arc<HeldMemory>>,
}

impl ResponseBody {
    /// Creates the body.
    pub(super) fn new(whole: impl Into<Bytes>, memory: Option<Arc<HeldMemory>>) -> Self {
        Self { body: Pieces::new(whole), _memory: memory }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The budget is used up.
#[derive(Debug)]
pub(super) struct NoRoom;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_is_a_quarter_of_the_memory_limit() {
        let mebibytes = |limit: usize| share_of(Some(limit << 20)) >> 20;
        let bounds = [8, 64, 65, 256, 512, 4_096].map(mebibytes);
        assert_eq!(bounds, [16, 16, 16, 64, 128, 128]);
        assert_eq!((share_of(None), share_of(Some(9_223_372_036_854_771_712))), (BYTES_MAX, BYTES_MAX));
    }
}
