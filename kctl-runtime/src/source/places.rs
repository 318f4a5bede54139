//! How many lists of a program are under way at once.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// What requests and answers take while they are under way, a few kilobytes for each, comes back in pieces between what stays.
/// Two hundred informers that all begin at once would take twice the memory.
const AT_ONCE_MAX: usize = 8;
/// Who has found no place by then goes on without one: most lists are short, and those that are not hold up nobody.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The places for lists that are under way. Clones share them.
#[derive(Clone, Debug)]
pub struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE_MAX)))
    }
}

impl Places {
    /// Waits for a place, which is kept until it is dropped; for no longer than 200 ms.
    pub(super) async fn next(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = self.0.clone().try_acquire_owned() {
            return Some(place);
        }
        Box::pin(timeout(WAIT_MAX, self.0.clone().acquire_owned())).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_place_comes_free_when_a_list_ends_and_nobody_waits_for_long() {
        let places = Places::default();
        let mut taken: Vec<_> = futures::future::join_all((0..AT_ONCE_MAX).map(|_| places.next())).await;
        let start = Instant::now();
        assert!(taken.iter().all(Option::is_some) && places.next().await.is_none());
        assert_eq!(start.elapsed(), WAIT_MAX);
        let waiting = places.clone();
        let waiting = tokio::spawn(async move { waiting.next().await });
        tokio::task::yield_now().await;
        taken.pop();
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(start.elapsed(), WAIT_MAX);
    }
}
