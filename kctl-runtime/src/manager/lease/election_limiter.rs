//! Limits how many elections of a process acquire or release their Leases at the same time.
//!
//! A replica of a sharded program may gain or hand over hundreds of Leases in the same moment. Each request that finds no
//! idle connection opens one. So many TLS handshakes at once may occupy the thread, or a small API server, for longer than
//! the renew deadline of a Lease that is held already. Renewals never wait for a turn.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until, timeout_at},
};

/// Maximum number of elections that have a turn. It is less than the number of idle connections that a client keeps
/// ([`connection`](crate::connection)), so each further election finds an open one. Only slow elections may open more.
const AT_ONCE_MAX: usize = 16;
/// Maximum number of slow elections, whose turn is over. Further ones keep their turn.
///
/// They bound the requests of an overloaded process or API server, because more would delay its renewals. On a slow network
/// three times as many elections run as on a fast one.
const SLOW_MAX: usize = 32;
/// Longest turn of an election while there are fewer than [`SLOW_MAX`] slow ones.
const TURN_MAX: Duration = Duration::from_millis(250);

/// The turns of the elections of one process. Clones share them.
#[derive(Clone, Debug)]
pub(in crate::manager) struct ElectionLimiter {
    turns: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

impl Default for ElectionLimiter {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(AT_ONCE_MAX)), slow: Arc::new(Semaphore::new(SLOW_MAX)) }
    }
}

/// The turn of one election. A candidate has it from the end of one wait to the start of the next, and a holder for its
/// release. After [`TURN_MAX`] it is one of the slow elections, and another has the turn. An election whose request gets no response
/// for a retry period is not counted any longer.
///
/// Without a limiter an election never waits for it.
#[derive(Debug, Default)]
pub(super) struct ElectionTurn {
    limiter: Option<ElectionLimiter>,
    present: Mutex<Option<Turn>>,
}

#[derive(Debug)]
struct Turn {
    _permit: OwnedSemaphorePermit,
    /// The time at which the election is slow. `None` once it is.
    end: Option<Instant>,
}

impl ElectionTurn {
    pub(super) fn limited_by(limiter: ElectionLimiter) -> Self {
        Self { limiter: Some(limiter), present: Mutex::default() }
    }

    /// Waits for a turn, in the order of arrival.
    ///
    /// # Cancel safety
    /// Safe: a dropped future leaves the queue.
    pub(super) async fn begin(&self) {
        let Some(ElectionLimiter { turns, .. }) = &self.limiter else { return };
        // The semaphore is never closed.
        let Ok(permit) = turns.clone().acquire_owned().await else { return };
        let turn = Turn { _permit: permit, end: Some(Instant::now() + TURN_MAX) };
        let before = self.present.lock().replace(turn);
        debug_assert!(before.is_none(), "a turn ends before the election waits for the next");
    }

    /// Ends the turn, if there is one.
    pub(super) fn end(&self) {
        // Dropped without the lock, because the drop wakes another election.
        let present = self.present.lock().take();
        drop(present);
    }

    /// Gives the turn to another election after [`TURN_MAX`], and no longer counts this one after `response_timeout`. Never
    /// returns. It begins with a request, and is dropped with the response.
    pub(super) async fn end_in_time(&self, response_timeout: Duration) -> Infallible {
        let latest = Instant::now() + response_timeout;
        let _late = timeout_at(latest, self.become_slow()).await;
        self.end();
        pending().await
    }

    /// Makes way for another election once the turn has lasted [`TURN_MAX`]. Never returns.
    ///
    /// # Cancel safety
    /// Safe: the turn continues, and keeps its end.
    async fn become_slow(&self) -> Infallible {
        let end = self.present.lock().as_ref().and_then(|turn| turn.end);
        if let (Some(ElectionLimiter { slow, .. }), Some(end)) = (&self.limiter, end) {
            sleep_until(end).await;
            // The semaphore is never closed.
            if let Ok(permit) = slow.clone().acquire_owned().await {
                let before = self.present.lock().replace(Turn { _permit: permit, end: None });
                drop(before);
            }
        }
        pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Method, Request, Response};
    use k8s_openapi::jiff::Timestamp;
    use kube::{Client, client::Body};
    use tokio::{
        sync::oneshot,
        task::JoinSet,
        time::{sleep, timeout},
    };

    use super::{
        super::{ElectionConfig, Elector, End, ObservedLease},
        *,
    };

    /// A slow API server: another process holds the Lease `held`, no other Lease exists, and requests for the Lease
    /// `hanging` get no response.
    struct SlowServer {
        /// Time until the response to a request.
        takes: Duration,
        /// Number of requests that wait for their response.
        n_waiting: AtomicUsize,
        n_waiting_max: AtomicUsize,
    }

    impl Default for SlowServer {
        fn default() -> Self {
            Self {
                takes: Duration::from_millis(100),
                n_waiting: AtomicUsize::default(),
                n_waiting_max: AtomicUsize::default(),
            }
        }
    }

    impl SlowServer {
        async fn respond(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
            let n_waiting = self.n_waiting.fetch_add(1, Ordering::Relaxed) + 1;
            self.n_waiting_max.fetch_max(n_waiting, Ordering::Relaxed);
            if request.uri().path().ends_with("/hanging") {
                return pending().await;
            }
            sleep(self.takes).await;
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

    fn candidate(client: &Client, lease: &str, limiter: &ElectionLimiter) -> Elector {
        let config = ElectionConfig::new(lease, "default", "a");
        let watched = ObservedLease { seen: None, missing: None, latest: Box::new(|| None), free: Arc::default() };
        let elector = Elector::new(client.clone(), config, Arc::new(Timestamp::now)).unwrap();
        elector.with_watch(watched).with_limiter(limiter.clone())
    }

    #[tokio::test(start_paused = true)]
    async fn many_leases_are_acquired_and_released_in_turns() {
        let (server, limiter, mut elections) = (Arc::default(), ElectionLimiter::default(), JoinSet::new());
        let client = client(&server);
        let (mut leaderships, mut stops) = (Vec::new(), Vec::new());
        for n in 0..4 * AT_ONCE_MAX {
            let elector = candidate(&client, &format!("web-slot-{n}"), &limiter);
            leaderships.push(elector.leadership());
            let (stop, stopped) = oneshot::channel();
            stops.push(stop);
            elections.spawn(elector.run(async { stopped.await.unwrap_or(false) }));
        }
        for leadership in leaderships {
            assert!(leadership.wait_until_leading().await);
        }
        assert_eq!(server.n_waiting_max.swap(0, Ordering::Relaxed), AT_ONCE_MAX);
        for stop in stops {
            stop.send(true).unwrap();
        }
        while let Some(ended) = elections.join_next().await {
            assert_eq!(ended.unwrap(), End::Released);
        }
        assert_eq!(server.n_waiting_max.load(Ordering::Relaxed), AT_ONCE_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn candidate_of_a_held_lease_keeps_no_turn() {
        let (limiter, mut elections) = (ElectionLimiter::default(), JoinSet::new());
        let client = client(&Arc::default());
        for _ in 0..AT_ONCE_MAX {
            elections.spawn(candidate(&client, "held", &limiter).run(pending()));
        }
        tokio::task::yield_now().await;
        let elector = candidate(&client, "free", &limiter);
        let leadership = elector.leadership();
        elections.spawn(elector.run(pending()));
        let leads = timeout(Duration::from_secs(1), leadership.wait_until_leading()).await;
        assert_eq!(leads, Ok(true), "the others wait for their next try");
    }

    /// Starts this many elections whose requests get no response, then one more, and returns how long that waited.
    async fn time_after_hanging(n_hanging: usize) -> Duration {
        let (limiter, mut elections) = (ElectionLimiter::default(), JoinSet::new());
        let client = client(&Arc::default());
        for _ in 0..n_hanging {
            elections.spawn(candidate(&client, "hanging", &limiter).run(pending()));
        }
        tokio::task::yield_now().await;
        let (elector, begun) = (candidate(&client, "free", &limiter), Instant::now());
        let leadership = elector.leadership();
        elections.spawn(elector.run(pending()));
        assert!(leadership.wait_until_leading().await);
        begun.elapsed().saturating_sub(2 * SlowServer::default().takes)
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_requests_delay_others_for_one_turn() {
        let (turn, period) = (TURN_MAX, ElectionConfig::new("free", "default", "a").retry_period);
        for (n_hanging, expected) in [(AT_ONCE_MAX, turn), (AT_ONCE_MAX + SLOW_MAX, period)] {
            let waited = time_after_hanging(n_hanging).await;
            assert!((expected..expected + Duration::from_millis(20)).contains(&waited), "{n_hanging}: {waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_responses_let_more_elections_begin() {
        let server = Arc::new(SlowServer { takes: Duration::from_secs(1), ..SlowServer::default() });
        let (limiter, mut elections, begun) = (ElectionLimiter::default(), JoinSet::new(), Instant::now());
        let (client, mut leaderships) = (client(&server), Vec::new());
        for n in 0..8 * AT_ONCE_MAX {
            let elector = candidate(&client, &format!("web-slot-{n}"), &limiter);
            leaderships.push(elector.leadership());
            elections.spawn(elector.run(pending()));
        }
        // Before the first Lease is renewed.
        sleep(Duration::from_millis(1_900)).await;
        assert_eq!(server.n_waiting_max.load(Ordering::Relaxed), AT_ONCE_MAX + SLOW_MAX);
        for leadership in leaderships {
            assert!(leadership.wait_until_leading().await);
        }
        // 16 at a time would take 16 s.
        assert!(begun.elapsed() < Duration::from_millis(6_500), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn stop_ends_the_wait_for_a_turn() {
        let (limiter, mut turns) = (ElectionLimiter::default(), Vec::new());
        for _ in 0..AT_ONCE_MAX {
            let turn = ElectionTurn::limited_by(limiter.clone());
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
