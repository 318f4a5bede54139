//! One slot that this replica should own: it waits for the Lease, serves, and hands over.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

use super::Planted;
use crate::{
    key::ObjectKey,
    manager::lease::Elector,
    queue::WorkQueue,
    shard::{Tenure, Tenures},
    writer::WritePermit,
};

/// Time for reconciles to notice that they were cut off: they only need to be polled.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of the process that a slot's owner has to empty before the next one begins.
#[derive(Clone)]
pub(super) struct Holder {
    pub(super) tenures: Arc<Tenures>,
    pub(super) queues: Vec<WorkQueue<ObjectKey>>,
    /// Time that running reconciles get to finish when a slot is handed over; `None` waits without a limit.
    pub(super) graceful: Option<Duration>,
    pub(super) planted: Option<Planted>,
}

impl Holder {
    /// Takes part in the election of a slot, serves it while it is held, and hands it over once it is no longer
    /// `wanted`. Returns when this replica neither holds the Lease nor tries to, and none of its writes can be on the way.
    ///
    /// After a loss that takes at most the write timeout and the margin, 9.55 s by default.
    pub(super) async fn hold(self, slot: u32, elector: Elector, mut wanted: watch::Receiver<bool>) {
        let leadership = elector.leadership();
        let (stop, stopped) = oneshot::channel();
        let mut election = Box::pin(elector.run(async { stopped.await.unwrap_or(false) }));
        self.tenures.wait(slot);
        let serve = async {
            tokio::select! {
                biased;
                // The election may have acquired the Lease already, but no reconcile has begun under it.
                _unwanted = wanted.wait_for(|wanted| !wanted) => return true,
                led = leadership.wait_until_leading() => if !led { return false },
            }
            let tenure = self.tenures.begin(slot, &leadership.permit());
            drop(wanted.wait_for(|wanted| !wanted).await);
            self.hand_over(&tenure).await
        };
        let release = tokio::select! {
            biased;
            _lost = &mut election => None,
            release = serve => Some(release),
        };
        if Planted::HandOverAtOnce.is_in(self.planted) && release.is_some() {
            let _sent = stop.send(true);
            election.await;
            self.wait_until_idle(slot).await;
            return self.end(slot);
        }
        if Planted::LossIgnored.is_in(self.planted) && release.is_none() {
            drop(wanted.wait_for(|wanted| !wanted).await);
            return self.end(slot);
        }
        // Reconciles that still run are cut off before another replica may begin.
        self.end(slot);
        if let Some(release) = release {
            let _sent = stop.send(release);
            election.await;
        } else {
            // The permit of this replica's next tenure does not know these writes, so its hand-over would not wait for
            // them. The election's permit counts the writes of the tenure.
            finish_writes(&leadership.permit()).await;
        }
    }

    /// Stops giving out keys of the slot. Waits until none of its reconciles runs and none of its writes can be on the
    /// way.
    ///
    /// Returns `false` if a reconcile continues although it was aborted. The Lease is not released then, but expires.
    async fn hand_over(&self, tenure: &Tenure) -> bool {
        self.tenures.drain(tenure);
        if Planted::HandOverAtOnce.is_in(self.planted) {
            return true;
        }
        let slot = tenure.slot();
        self.evict(slot);
        let is_quiet = match self.graceful {
            None => {
                self.wait_until_idle(slot).await;
                true
            }
            Some(period) => {
                timeout(period, self.wait_until_idle(slot)).await.is_ok() || self.abort_reconciles(slot, period).await
            }
        };
        finish_writes(tenure.permit()).await;
        is_quiet
    }

    /// Cuts off the reconciles of a slot. Returns `false` if one of them continues: it blocks its thread, so it is not
    /// polled.
    async fn abort_reconciles(&self, slot: u32, period: Duration) -> bool {
        tracing::warn!(
            slot,
            "cutting off reconciles that still run {period:?} after the hand-over of their slot began"
        );
        self.end(slot);
        if timeout(CUT_OFF_TIMEOUT, self.wait_until_idle(slot)).await.is_ok() {
            return true;
        }
        let running = self.queues.iter().flat_map(|queue| queue.processing_for(Duration::ZERO));
        for (key, _since) in running.filter(|(key, _)| self.tenures.slots().slot_for(key) == slot) {
            tracing::error!(
                slot,
                %key,
                "a reconcile blocks its thread and cannot be cut off; the Lease of its slot is not released and expires"
            );
        }
        false
    }

    /// Ends the tenure of a slot. The next owner starts without its backoff.
    fn end(&self, slot: u32) {
        self.tenures.end(slot);
        self.evict(slot);
    }

    /// Removes the keys of a slot whose keys are no longer given out.
    fn evict(&self, slot: u32) {
        for queue in &self.queues {
            queue.evict(|key| self.tenures.slots().slot_for(key) == slot);
        }
    }

    /// Returns once no key of the slot is processed.
    async fn wait_until_idle(&self, slot: u32) {
        for queue in &self.queues {
            queue.wait_while_processing(|key| self.tenures.slots().slot_for(key) == slot).await;
        }
    }
}

/// Stops all further writes under a permit, and waits until none of the earlier ones can be on the way.
async fn finish_writes(permit: &WritePermit) {
    permit.close();
    while let Some(over) = permit.unresolved_until() {
        permit.wait_for_answers(over).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicBool, Ordering},
    };

    use k8s_openapi::jiff::Timestamp;
    use kube::{Client, client::Body};
    use serde_json::{Value, json};
    use tokio::time::{Instant, sleep, sleep_until};

    use super::*;
    use crate::{
        manager::lease::{ElectionConfig, ObservedLease},
        queue::QueueConfig,
        shard::{ShardBy, Slots},
        writer::LeaseState,
    };

    /// Returns a client whose Lease does not exist at first. The candidate creates it, and another replica holds it
    /// when it is renewed.
    fn lease_that_is_lost() -> Client {
        let created = Arc::new(AtomicBool::new(false));
        let respond = move |method: &http::Method| -> (u16, Value) {
            let lease = |holder: &str| {
                json!({
                    "metadata": { "name": "app-slot-0", "namespace": "default", "resourceVersion": "1" },
                    "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15 },
                })
            };
            let is_created = created.load(Ordering::Relaxed);
            match method.as_str() {
                "POST" => {
                    created.store(true, Ordering::Relaxed);
                    (201, lease("a"))
                }
                "GET" if is_created => (200, lease("b")),
                "GET" => (404, json!({ "kind": "Status", "reason": "NotFound", "code": 404 })),
                _ => (409, json!({ "kind": "Status", "reason": "Conflict", "code": 409 })),
            }
        };
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (code, body) = respond(request.method());
            let mut response = http::Response::new(Body::from(body.to_string().into_bytes()));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            std::future::ready(Ok::<_, Infallible>(response))
        });
        Client::new(service, "default")
    }

    #[tokio::test(start_paused = true)]
    async fn lost_slot_waits_for_its_unresolved_write() {
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        let holder = Holder { tenures: tenures.clone(), queues: Vec::new(), graceful: None, planted: None };
        let config = ElectionConfig::new("app-slot-0", "default", "a");
        let longest = config.shared_write_timeout() + config.write_margin();
        let elector = Elector::new(lease_that_is_lost(), config, Arc::new(Timestamp::now)).unwrap();
        let watched = ObservedLease { seen: None, missing: None, latest: Box::new(|| None), free: Arc::default() };
        let elector = elector.with_process_number(1).with_watch(watched);
        let (_wanted, is_wanted) = watch::channel(true);
        let held = tokio::spawn(holder.hold(0, elector, is_wanted));
        let permit = loop {
            if let Some(permit) = tenures.current_permit(0) {
                break permit;
            }
            sleep(Duration::from_millis(10)).await;
        };
        let begun = Instant::now();
        drop(permit.acquire("patch ConfigMap default/web").await.unwrap());
        sleep_until(begun + longest.saturating_sub(Duration::from_millis(20))).await;
        assert!(tenures.current_permit(0).is_none(), "the slot is lost at the first renewal");
        assert!(!held.is_finished(), "the write may be in flight");
        held.await.unwrap();
        assert!((longest..longest + Duration::from_millis(20)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn finished_slot_waits_only_for_unanswered_writes() {
        let held = LeaseState::HeldUntil(Instant::now() + Duration::from_secs(15));
        let (_election, state) = watch::channel(held);
        let permit = WritePermit::from_lease(state, Duration::from_secs(4), Duration::from_secs(1));
        let (answered, begun) = (permit.acquire("patch ConfigMap default/web").await.unwrap(), Instant::now());
        let answer = async {
            sleep(Duration::from_secs(2)).await;
            answered.resolve();
        };
        tokio::join!(finish_writes(&permit), answer);
        assert_eq!(begun.elapsed(), Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn reconcile_that_blocks_its_thread_keeps_the_lease() {
        let tenures = Arc::new(Tenures::new(Slots::new(1, ShardBy::Object), WritePermit::always()));
        let queue = WorkQueue::new(QueueConfig::default());
        let graceful = Some(Duration::from_secs(30));
        let holder = Holder { tenures: tenures.clone(), queues: vec![queue.clone()], graceful, planted: None };
        let key = ObjectKey::new(Some("default"), "web");
        queue.add(key.clone());
        let _taken = queue.get().await;
        for is_released in [false, true] {
            let tenure = tenures.begin(0, &WritePermit::always());
            assert_eq!(holder.hand_over(&tenure).await, is_released);
            holder.end(0);
            // The reconcile returns at last.
            queue.done(&key);
        }
    }
}
