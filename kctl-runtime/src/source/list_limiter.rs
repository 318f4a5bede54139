//! A limit of concurrent lists in a process, which keeps the memory of a start small.
//!
//! The peak memory of a controller is at its start, when every kind is listed. kube and client-go send all those lists
//! at the same moment.
//!
//! The limit must not turn one slow kind into a slow start for all. So a list that has waited for a second, or that
//! sees no progress for 100 ms, starts without a permit.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

/// Maximum number of concurrent lists. A request takes a few kilobytes while it is under way, and a connection twenty.
/// This memory is freed in pieces between longer-lived objects. With 200 informers that all begin at once, a process
/// needs twice the memory.
const AT_ONCE_MAX: usize = 4;
/// If no list has ended for this long, a waiting list starts without a permit, so that one long list delays no other.
const STALL_MAX: Duration = Duration::from_millis(100);
/// Longest wait for a permit.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// A limit of concurrent lists, four at once. Clones share it; [`Source::with_list_limiter`](super::Source::with_list_limiter) gives it to
/// a source.
///
/// The limit is soft. A list waits for at most one second, and for less if no other list ends during that time.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
/// use kctl_runtime::source::{WatchConfig, ListLimiter, Source};
/// use kube::Client;
///
/// fn two_caches(client: &Client) -> (Source, Source) {
///     let limiter = ListLimiter::default();
///     let pods = Source::new(client.clone(), WatchConfig::of::<Pod>(), Arc::default());
///     let deployments = Source::new(client.clone(), WatchConfig::of::<Deployment>(), Arc::default());
///     (pods.with_list_limiter(limiter.clone()), deployments.with_list_limiter(limiter))
/// }
/// ```
///
/// A source without [`Source::with_list_limiter`](super::Source::with_list_limiter) has its own limit, which only its namespaces
/// share.
#[derive(Clone, Debug)]
pub struct ListLimiter(Arc<Limits>);

/// The state behind all clones.
#[derive(Debug)]
struct Limits {
    /// Free permits, at most [`AT_ONCE_MAX`].
    free: Arc<Semaphore>,
    n_ended: AtomicU64,
}

/// The permit for one list, and for the start of the watch after it.
///
/// Dropping it frees the permit, and counts as progress for those that wait. It is held until the watch has begun,
/// because opening that is the rest of the work of a start.
pub(super) struct ListPermit {
    limiter: ListLimiter,
    /// Is `None` if the list runs without a permit.
    taken: Option<OwnedSemaphorePermit>,
}

impl Default for ListLimiter {
    fn default() -> Self {
        Self(Arc::new(Limits { free: Arc::new(Semaphore::new(AT_ONCE_MAX)), n_ended: AtomicU64::new(0) }))
    }
}

impl ListLimiter {
    /// Waits for a permit, as long as other lists end.
    ///
    /// # Cancel safety
    /// Safe: a dropped future leaves the queue.
    pub(super) async fn acquire(&self) -> ListPermit {
        let taken = match self.0.free.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_none_free) => Box::pin(self.wait()).await,
        };
        ListPermit { limiter: self.clone(), taken }
    }

    /// Waits in the order of arrival. Returns `None` when the caller should start without a permit.
    async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        let n_ended = || self.0.n_ended.load(Ordering::Relaxed);
        let until = Instant::now() + WAIT_MAX;
        let mut free = pin!(self.0.free.clone().acquire_owned());
        loop {
            let before = n_ended();
            match timeout(STALL_MAX, &mut free).await {
                Ok(permit) => return permit.ok(),
                Err(_elapsed) if n_ended() == before || Instant::now() >= until => return None,
                Err(_elapsed) => {}
            }
        }
    }
}

impl Drop for ListPermit {
    fn drop(&mut self) {
        self.limiter.0.n_ended.fetch_add(1, Ordering::Relaxed);
        drop(self.taken.take());
        debug_assert!(self.limiter.0.free.available_permits() <= AT_ONCE_MAX, "each permit is freed once");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn permit_is_free_after_an_end_or_stall() {
        let limiter = ListLimiter::default();
        let mut long: Vec<ListPermit> = futures::future::join_all((0..AT_ONCE_MAX).map(|_| limiter.acquire())).await;
        let start = Instant::now();
        assert!(long.iter().all(|permit| permit.taken.is_some()));
        assert!(limiter.acquire().await.taken.is_none());
        assert_eq!(start.elapsed(), STALL_MAX);
        let waiting = limiter.clone();
        let waiting = tokio::spawn(async move { waiting.acquire().await.taken.is_some() });
        tokio::task::yield_now().await;
        long.pop();
        assert!(waiting.await.unwrap());
        assert_eq!(start.elapsed(), STALL_MAX);
    }

    /// Runs `n` lists that take `each`. Returns the maximum number of concurrent lists, and the time that all took.
    async fn run(n: usize, each: Duration) -> (usize, Duration) {
        let (limiter, start) = (ListLimiter::default(), Instant::now());
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let list = async || {
            let _permit = limiter.acquire().await;
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(each).await;
            now.fetch_sub(1, Ordering::Relaxed);
        };
        futures::future::join_all((0..n).map(|_| list())).await;
        (most.into_inner(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn short_lists_queue_and_long_lists_run_concurrently() {
        let ms = Duration::from_millis;
        assert_eq!(run(400, ms(5)).await, (AT_ONCE_MAX, ms(500)));
        assert_eq!(run(40, ms(5_000)).await, (40, ms(5_100)));
        // The wait is bounded even if each list ends just before `STALL_MAX`.
        let (_, all) = run(1_000, ms(90)).await;
        assert!(all <= WAIT_MAX + STALL_MAX + ms(90), "{all:?}");
    }
}
