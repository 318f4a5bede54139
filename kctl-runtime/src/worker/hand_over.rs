//! Hands over a key in a controller ring: its labels are removed once no reconcile of it runs and no write is in
//! flight.

use std::time::Duration;

use tokio::time::Instant;

use super::Pool;
use crate::{
    key::ObjectKey,
    object::Stored,
    queue::{Add, Cause},
    reconcile::Reconcile,
    shard::{NextStep, ReconcileGuard, Ring},
    writer::{ApiError, MERGE_PATCH, Target},
};

/// Wait before the next check of a key whose writes have no response yet.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Wait before the next check of a key that another controller reconciles.
const RECONCILE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Wait before a hand-over is tried again that met a conflict. The watch usually delivers the newer state before.
const CONFLICT_RETRY_DELAY: Duration = Duration::from_secs(1);

impl<C: Reconcile> Pool<C> {
    /// Returns the permission to reconcile a key, or `None` if another replica has to reconcile it. In that case the
    /// key was forgotten or handed over, or is looked at again later.
    pub(super) async fn enter(&self, key: &ObjectKey) -> Option<ReconcileGuard> {
        let Some(ring) = self.env.gate.ring() else {
            let guard = self.env.gate.enter(key);
            if guard.is_none() {
                // Its slot was handed over after the key was added. The next owner enqueues the keys of the slot.
                self.queue.evict_key(key);
            }
            return guard;
        };
        // A key without an object has no label. Its reconcile only forgets it.
        let kind = &self.env.spec.primary.kind;
        let Some(stored) = self.env.primary.newest(key) else {
            ring.end_if_idle(kind, key);
            return Some(ReconcileGuard::Gone);
        };
        match ring.next_step(kind, &stored) {
            NextStep::Reconcile(busy) => return Some(ReconcileGuard::Counted(busy)),
            NextStep::Forget => self.forget(key),
            NextStep::Wait => self.enter_later(key, RECONCILE_RETRY_DELAY),
            NextStep::HandOver => self.hand_over(ring, key, &stored).await,
        }
        None
    }

    /// Forgets a key, and the last applied objects, because another shard may change them.
    fn forget(&self, key: &ObjectKey) {
        self.env.applied.forget(key);
        self.queue.forget(key);
    }

    fn enter_later(&self, key: &ObjectKey, wait: Duration) {
        self.queue.add(Add::new(key.clone()).cause(Cause::Requeue(wait)));
    }

    /// Removes the labels of an object that the sharder wants back, once no write of its key can be in flight.
    async fn hand_over(&self, ring: &Ring, key: &ObjectKey, stored: &Stored) {
        if let Some(deadline) = ring.unresolved_until(key) {
            let wait = deadline.saturating_duration_since(Instant::now()).min(WRITE_RETRY_DELAY);
            return self.enter_later(key, wait);
        }
        let (source, meta) = (&self.env.primary, stored.meta());
        let target = Target { by: key, source, namespace: meta.namespace(), name: meta.name() };
        let patch = ring.labels().hand_over_patch(stored);
        let handed_over = match source.unreadable(key) {
            None => self.env.writer.patch_stored(&target, "", MERGE_PATCH, &patch).await.map(drop),
            Some(_) => self.env.writer.patch_unreadable(&target, MERGE_PATCH, &patch).await,
        };
        match handed_over {
            Ok(()) => {
                ring.handed_over();
                tracing::debug!(controller = self.env.spec.name, %key, "handed over to another shard");
                self.forget(key);
            }
            Err(error) if error.is_not_found() => self.forget(key),
            Err(error) => self.hand_over_later(key, &error),
        }
    }

    /// Enqueues a key whose hand-over failed. This shard keeps it until a hand-over succeeds.
    fn hand_over_later(&self, key: &ObjectKey, error: &ApiError) {
        if error.is_conflict() {
            self.queue.add(Add::new(key.clone()).cause(Cause::Conflict(CONFLICT_RETRY_DELAY)));
            return;
        }
        let wait = self.queue.add(Add::new(key.clone()).cause(Cause::Failure));
        let controller = &self.env.spec.name;
        tracing::error!(controller, %key, "failed to hand the object over to another shard: {error}; retrying in {wait:?}");
    }
}
