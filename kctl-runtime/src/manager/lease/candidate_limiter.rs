//! Limits how many candidates of a process try to acquire their Leases at the same time.
//!
//! A replica of a sharded program may want hundreds of Leases in the same moment. Each request that finds no idle
//! connection opens one. So many TLS handshakes at once may occupy the thread, or a small API server, for longer than
//! the renew deadline of a Lease that is held already. Renewals never wait for a turn.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of candidates that have a turn. It is less than the number of idle connections that a client keeps
/// ([`connection`](crate::connection)), so each further candidate finds an open one.
///
/// Leases that are acquired in turns are also renewed one after the other, and not in the same moment.
const CANDIDATES_MAX: usize = 16;

/// The turns of the candidates of one process. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::manager) struct CandidateLimiter(Arc<Semaphore>);

impl Default for CandidateLimiter {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CANDIDATES_MAX)))
    }
}

/// The turn of one candidate, from the end of a wait to the begin of the next. The deadlines of its requests bound it.
///
/// Without a limiter the candidate never waits for it.
#[derive(Debug, Default)]
pub(super) struct CandidateTurn {
    limiter: Option<CandidateLimiter>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl CandidateTurn {
    pub(super) fn limited_by(limiter: CandidateLimiter) -> Self {
        Self { limiter: Some(limiter), permit: Mutex::default() }
    }

    /// Waits for a turn, in the order of arrival.
    ///
    /// # Cancel safety
    /// Safe: a dropped future leaves the queue.
    pub(super) async fn begin(&self) {
        let Some(CandidateLimiter(turns)) = &self.limiter else { return };
        // The semaphore is never closed.
        let Ok(permit) = turns.clone().acquire_owned().await else { return };
        let before = self.permit.lock().replace(permit);
        debug_assert!(before.is_none(), "a turn ends before the candidate waits for the next");
    }

    /// Ends the turn, if there is one.
    pub(super) fn end(&self) {
        // Dropped without the lock, because the drop wakes another candidate.
        let permit = self.permit.lock().take();
        drop(permit);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use http::{Method, Request, Response};
    use k8s_openapi::jiff::Timestamp;
    use kube::{Client, client::Body};
    use tokio::{
        task::JoinSet,
        time::{sleep, timeout},
    };

    use super::{
        super::{ElectionConfig, Elector, End, ObservedLease},
        *,
    };

    /// A slow API server: another process holds the Lease `held`, and no other Lease exists.
    #[derive(Default)]
    struct SlowServer {
        /// Number of requests that wait for their response.
        n_waiting: AtomicUsize,
        n_waiting_max: AtomicUsize,
    }

    impl SlowServer {
        async fn respond(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
            let n_waiting = self.n_waiting.fetch_add(1, Ordering::Relaxed) + 1;
            self.n_waiting_max.fetch_max(n_waiting, Ordering::Relaxed);
            sleep(Duration::from_millis(100)).await;
            self.n_waiting.fetch_sub(1, Ordering::Relaxed);
            if *request.method() != Method::GET {
                return Ok(Response::new(request.into_body()));
            }
            if request.uri().path().ends_with("/held") {
                let lease = r#"{"spec":{"holderIdentity":"b","leaseDurationSeconds":15}}"#;
                return Ok(Response::new(lease.as_bytes().to_vec().into()));
            }
            let status = r#"{"kind":"Status","status":"Failure","reason":"NotFound","code":404}"#;
            Ok(Response::builder().status(404).body(status.as_bytes().to_vec().into()).unwrap())
        }
    }

    fn client(server: &Arc<SlowServer>) -> Client {
        let server = server.clone();
        Client::new(tower::service_fn(move |request| server.clone().respond(request)), "default")
    }

    fn candidate(client: &Client, lease: &str, limiter: &CandidateLimiter) -> Elector {
        let config = ElectionConfig::new(lease, "default", "a");
        let watched = ObservedLease { seen: None, missing: None, latest: Box::new(|| None), free: Arc::default() };
        let elector = Elector::new(client.clone(), config, Arc::new(Timestamp::now)).unwrap();
        elector.with_watch(watched).with_limiter(limiter.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn many_candidates_acquire_their_leases_in_turns() {
        let (server, limiter, mut elections) = (Arc::default(), CandidateLimiter::default(), JoinSet::new());
        let client = client(&server);
        let mut leaderships = Vec::new();
        for n in 0..4 * CANDIDATES_MAX {
            let elector = candidate(&client, &format!("web-slot-{n}"), &limiter);
            leaderships.push(elector.leadership());
            elections.spawn(elector.run(pending()));
        }
        for leadership in leaderships {
            assert!(leadership.wait_until_leading().await);
        }
        assert_eq!(server.n_waiting_max.load(Ordering::Relaxed), CANDIDATES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn candidate_of_a_held_lease_keeps_no_turn() {
        let (limiter, mut elections) = (CandidateLimiter::default(), JoinSet::new());
        let client = client(&Arc::default());
        for _ in 0..CANDIDATES_MAX {
            elections.spawn(candidate(&client, "held", &limiter).run(pending()));
        }
        tokio::task::yield_now().await;
        let elector = candidate(&client, "free", &limiter);
        let leadership = elector.leadership();
        elections.spawn(elector.run(pending()));
        let leads = timeout(Duration::from_secs(1), leadership.wait_until_leading()).await;
        assert_eq!(leads, Ok(true), "the others wait for their next try");
    }

    #[tokio::test(start_paused = true)]
    async fn stop_ends_the_wait_for_a_turn() {
        let (limiter, mut turns) = (CandidateLimiter::default(), Vec::new());
        for _ in 0..CANDIDATES_MAX {
            let turn = CandidateTurn::limited_by(limiter.clone());
            turn.begin().await;
            turns.push(turn);
        }
        let elector = candidate(&client(&Arc::default()), "web-slot-0", &limiter);
        let leadership = elector.leadership();
        let stop = async {
            sleep(Duration::from_secs(1)).await;
            true
        };
        let ended = timeout(Duration::from_secs(2), elector.run(stop)).await;
        assert_eq!(ended, Ok(End::Stopped));
        assert!(!leadership.wait_until_leading().await, "it is over");
    }
}
