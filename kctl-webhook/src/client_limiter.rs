//! A bounded number of permits for clients. If all are taken, the client that has kept its permit
//! waiting the longest loses it.
//!
//! Otherwise clients that open connections, or begin requests, and then send nothing would lock out
//! all others. [`connections`](crate::connections) uses permits for sockets, and the server for
//! bodies of requests.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// A bounded number of permits. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ClientLimiter {
    max: usize,
    shared: Arc<LimiterState>,
}

/// State that clones of [`ClientLimiter`] and each [`ClientPermit`] share.
#[derive(Debug, Default)]
struct LimiterState {
    table: Mutex<Table>,
    /// Wakes callers of [`ClientLimiter::acquire`]: a permit was freed, or starts to wait for its client.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    /// Ids are never used twice, so that a lost permit can't free the permit of its successor.
    next_id: u64,
    /// Invariant: never more than `max`.
    taken: BTreeMap<u64, Entry>,
}

impl Table {
    /// Removes the entry that has waited for its client the longest, and notifies its holder. Returns `false` if none
    /// has waited for at least `least`.
    fn drop_oldest(&mut self, least: Duration) -> bool {
        let waiting = self.taken.iter().filter_map(|(id, entry)| entry.waits_since.map(|since| (since, *id)));
        let waiting = waiting.filter(|(since, _id)| since.elapsed() >= least);
        let Some(entry) = waiting.min().and_then(|(_since, oldest)| self.taken.remove(&oldest)) else { return false };
        entry.lost.notify_one();
        true
    }
}

#[derive(Debug)]
struct Entry {
    /// Start of the wait for its client; `None` while it works and can't be taken.
    waits_since: Option<Instant>,
    /// Wakes the holder of the permit once another client has taken it.
    lost: Arc<Notify>,
}

/// A taken permit; dropping it frees it. It starts as one that waits for its client.
#[derive(Debug)]
pub(crate) struct ClientPermit {
    id: u64,
    lost: Arc<Notify>,
    shared: Arc<LimiterState>,
}

impl ClientLimiter {
    /// Creates `max` permits, and at least one.
    pub(crate) fn new(max: usize) -> Self {
        Self { max: max.max(1), shared: Arc::default() }
    }

    /// Takes a free permit, or the one that has waited for its client the longest. Waits only while
    /// all permits work.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
    pub(crate) async fn acquire(&self) -> ClientPermit {
        loop {
            let mut freed = pin!(self.shared.freed.notified());
            // Enabled before the table is read, so that a permit that is freed in between wakes this task.
            freed.as_mut().enable();
            if let Some(permit) = self.try_acquire() {
                return permit;
            }
            freed.await;
        }
    }

    /// Takes the permit of the client that has kept it waiting the longest, if that is at least `least`, and leaves it free.
    #[cfg(feature = "server")]
    pub(crate) fn evict_oldest(&self, least: Duration) {
        let mut table = self.shared.table.lock();
        if table.drop_oldest(least) {
            self.shared.freed.notify_waiters();
        }
    }

    /// Takes a permit if one is free or waits for its client.
    fn try_acquire(&self) -> Option<ClientPermit> {
        let mut table = self.shared.table.lock();
        if table.taken.len() >= self.max && !table.drop_oldest(Duration::ZERO) {
            return None;
        }
        let (id, lost) = (table.next_id, Arc::<Notify>::default());
        table.next_id += 1;
        debug_assert!(table.taken.len() < self.max, "a permit was freed or taken over above");
        table.taken.insert(id, Entry { waits_since: Some(Instant::now()), lost: lost.clone() });
        Some(ClientPermit { id, lost, shared: self.shared.clone() })
    }
}

impl ClientPermit {
    /// Marks the permit as waiting for its client: from now on another client may take it.
    pub(crate) fn set_idle(&self) {
        self.set(Some(Instant::now()));
        self.shared.freed.notify_waiters();
    }

    /// Marks the permit as working: no other client can take it.
    pub(crate) fn set_busy(&self) {
        self.set(None);
    }

    /// Waits until another client has taken the permit.
    ///
    /// # Cancel safety
    /// The notification is kept until a call returns it.
    pub(crate) async fn wait_until_evicted(&self) {
        self.lost.notified().await;
    }

    /// Changes the state of the permit; a lost one has no entry any more.
    fn set(&self, waits_since: Option<Instant>) {
        if let Some(entry) = self.shared.table.lock().taken.get_mut(&self.id) {
            entry.waits_since = waits_since;
        }
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.shared.table.lock().taken.remove(&self.id);
        self.shared.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    async fn is_lost(permit: &ClientPermit) -> bool {
        timeout(Duration::ZERO, permit.wait_until_evicted()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn new_client_takes_the_longest_idle_permit() {
        let limiter = ClientLimiter::new(3);
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.push(limiter.acquire().await);
            advance(Duration::from_secs(1)).await;
        }
        taken[0].set_busy();
        let next = limiter.acquire().await;
        assert!(!is_lost(&taken[0]).await && is_lost(&taken[1]).await && !is_lost(&taken[2]).await);
        taken[2].set_busy();
        advance(Duration::from_secs(1)).await;
        taken[2].set_idle();
        let _newest = limiter.acquire().await;
        assert!(is_lost(&next).await && !is_lost(&taken[2]).await, "it waits again since just now");
    }

    #[cfg(feature = "server")]
    #[tokio::test(start_paused = true)]
    async fn only_a_permit_that_waited_long_is_evicted() {
        let (limiter, second) = (ClientLimiter::new(3), Duration::from_secs(1));
        let old = limiter.acquire().await;
        advance(second).await;
        let (new, busy) = (limiter.acquire().await, limiter.acquire().await);
        busy.set_busy();
        limiter.evict_oldest(second);
        limiter.evict_oldest(second);
        assert!(is_lost(&old).await && !is_lost(&new).await && !is_lost(&busy).await);
        advance(second).await;
        limiter.evict_oldest(second);
        assert!(is_lost(&new).await && !is_lost(&busy).await);
    }

    #[tokio::test(start_paused = true)]
    async fn new_client_waits_only_while_all_permits_work() {
        let limiter = ClientLimiter::new(2);
        let (one, two) = (limiter.acquire().await, limiter.acquire().await);
        one.set_busy();
        two.set_busy();
        let waiting = limiter.clone();
        let third = tokio::spawn(async move { waiting.acquire().await });
        advance(Duration::from_secs(3_600)).await;
        assert!(!third.is_finished());
        drop(one);
        let third = third.await.unwrap();
        third.set_busy();
        let fourth = tokio::spawn(async move { limiter.acquire().await });
        advance(Duration::from_secs(3_600)).await;
        assert!(!fourth.is_finished());
        two.set_idle();
        fourth.await.unwrap();
        assert!(is_lost(&two).await);
    }
}
