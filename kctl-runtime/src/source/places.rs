//! How many lists of a program are under way at once.

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

/// What requests and answers take while they are under way, a few kilobytes for each and twenty for a connection, comes back in
/// pieces between what stays. Two hundred informers that all begin at once would take twice the memory.
const AT_ONCE_MAX: usize = 4;
/// Most lists are short, and those that are not hold up nobody: when none has ended for so long, whoever waits goes on without a place.
const STALL_MAX: Duration = Duration::from_millis(100);
/// Nor does anybody wait for longer than this.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The places for lists that are under way. Clones share them.
#[derive(Clone, Debug)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Arc<Semaphore>,
    /// Lists that have ended.
    n_ended: AtomicU64,
}

/// A list that is under way, and the begin of the watch after it.
pub(super) struct Place {
    places: Places,
    /// None where it goes on without.
    taken: Option<OwnedSemaphorePermit>,
}

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Shared { free: Arc::new(Semaphore::new(AT_ONCE_MAX)), n_ended: AtomicU64::new(0) }))
    }
}

impl Places {
    /// Waits for a place, as long as others become free.
    pub(super) async fn next(&self) -> Place {
        let taken = match self.0.free.clone().try_acquire_owned() {
            Ok(place) => Some(place),
            Err(_none_free) => Box::pin(self.wait()).await,
        };
        Place { places: self.clone(), taken }
    }

    async fn wait(&self) -> Option<OwnedSemaphorePermit> {
        let n_ended = || self.0.n_ended.load(Ordering::Relaxed);
        let until = Instant::now() + WAIT_MAX;
        let mut free = pin!(self.0.free.clone().acquire_owned());
        loop {
            let before = n_ended();
            match timeout(STALL_MAX, &mut free).await {
                Ok(place) => return place.ok(),
                Err(_elapsed) if n_ended() == before || Instant::now() >= until => return None,
                Err(_elapsed) => {}
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.0.n_ended.fetch_add(1, Ordering::Relaxed);
        drop(self.taken.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_comes_free_when_a_list_ends_and_nobody_waits_for_long_lists() {
        let places = Places::default();
        let mut long: Vec<Place> = futures::future::join_all((0..AT_ONCE_MAX).map(|_| places.next())).await;
        let start = Instant::now();
        assert!(long.iter().all(|place| place.taken.is_some()));
        assert!(places.next().await.taken.is_none());
        assert_eq!(start.elapsed(), STALL_MAX);
        let waiting = places.clone();
        let waiting = tokio::spawn(async move { waiting.next().await.taken.is_some() });
        tokio::task::yield_now().await;
        long.pop();
        assert!(waiting.await.unwrap());
        assert_eq!(start.elapsed(), STALL_MAX);
    }

    /// How many of so many lists, each of which takes so long, were under way at once at most, and how long all took.
    async fn run(n: usize, each: Duration) -> (usize, Duration) {
        let (places, start) = (Places::default(), Instant::now());
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let list = async || {
            let _place = places.next().await;
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(each).await;
            now.fetch_sub(1, Ordering::Relaxed);
        };
        futures::future::join_all((0..n).map(|_| list())).await;
        (most.into_inner(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn short_lists_take_turns_however_many_they_are_and_long_ones_run_side_by_side() {
        let ms = Duration::from_millis;
        assert_eq!(run(400, ms(5)).await, (AT_ONCE_MAX, ms(500)));
        assert_eq!(run(40, ms(5_000)).await, (40, ms(5_100)));
        // Each wait has an end, also behind many lists that just do not count as long.
        let (_, all) = run(1_000, ms(90)).await;
        assert!(all <= WAIT_MAX + STALL_MAX + ms(90), "{all:?}");
    }
}
