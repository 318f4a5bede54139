//! Ends a test that hangs, with an error that names the reconcile that never waits.
//!
//! A test and its app usually share one thread. A reconcile that loops without an end keeps that thread, and under
//! simulated time so does a task that always can run. No timeout fires then. So another thread counts seconds of real
//! time in which the test makes no progress. It counts its own waits rather than a difference of times: a machine that is
//! suspended, or a debugger that holds the program, adds one second at most.
//!
//! Progress is an accepted write, or time that passes on a clock that runs. Simulated time is not progress: a test that
//! waits for a condition that is never met would let it pass without an end.

use std::{
    convert::Infallible,
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use kctl_apiserver::ApiServer;
use kctl_runtime::{
    __private_0_1::PolledReconcile,
    reconcile::{Error, Result},
};
use tokio::task::AbortHandle;

use crate::app::World;

/// Environment variable with the number of seconds of real time without progress after which the process ends; 0 for no
/// limit.
const VARIABLE: &str = "KCTL_TEST_STUCK_SECONDS";
/// Default of [`VARIABLE`]. Tests that work take milliseconds between two writes.
const STUCK_AFTER: u64 = 300;
/// Time between two looks at the progress.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time between two heartbeats in seconds, which simulated time reaches. Shorter ones would slow down a test that
/// sleeps for months.
const BEAT_INTERVAL_MAX: u64 = 60;
/// Exit code of a program that panics.
const EXIT_CODE: i32 = 101;

/// Watches the runtime of a test until it is dropped, or the runtime ends.
pub(super) struct Watchdog(Option<Watched>);

struct Watched {
    progress: Arc<Progress>,
    heartbeat: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.progress.is_over.store(true, Relaxed);
        self.heartbeat.abort();
    }
}

/// The progress of a test, which the watching thread reads.
#[derive(Default)]
struct Progress {
    /// Seconds of real time, counted by the watching thread.
    n_looks: AtomicU64,
    /// Number of writes, and of heartbeats on a clock that runs.
    n_steps: AtomicU64,
    /// Number of heartbeats on a simulated clock.
    n_simulated_beats: AtomicU64,
    is_over: AtomicBool,
}

/// The clock of a runtime, judged by the real time between two heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Running,
    Simulated,
}

impl Clock {
    /// Returns the clock on which `slept` seconds took about `n_looks` seconds of real time.
    fn of(slept: u64, n_looks: u64) -> Self {
        if n_looks.saturating_mul(2) >= slept { Self::Running } else { Self::Simulated }
    }
}

impl Watchdog {
    /// Watches the current runtime and thread. If the test hangs, the error is printed and the process ends: nothing can
    /// stop a thread that never waits.
    ///
    /// # Errors
    /// The environment variable is not a number, or no thread can be started.
    pub(super) fn start() -> Result<Self> {
        let stuck_after = parse_limit(std::env::var(VARIABLE).ok().as_deref())?;
        Self::start_with(stuck_after, |message| {
            // Not `eprintln!`, which is captured until the test ends. A closed standard error is ignored.
            let _written = writeln!(std::io::stderr(), "\n{message}");
            std::process::exit(EXIT_CODE);
        })
    }

    /// Starts with a limit in seconds, and calls `on_stuck` once the test hangs.
    fn start_with(stuck_after: u64, on_stuck: impl FnOnce(String) + Send + 'static) -> Result<Self> {
        if stuck_after == 0 {
            return Ok(Self(None));
        }
        let (progress, polled) = (Arc::<Progress>::default(), PolledReconcile::of_thread());
        let (alive, ended) = mpsc::channel();
        let test = std::thread::current().name().unwrap_or("without a name").to_owned();
        let heartbeat = tokio::spawn(beat(progress.clone(), alive)).abort_handle();
        let watched = Watched { progress: progress.clone(), heartbeat };
        let watch = move || {
            if let Some(cause) = progress.wait_until_stuck(&ended, stuck_after, &polled) {
                on_stuck(format!(
                    "the test of thread `{test}` hangs: {cause}\n\
                     The process ends, since nothing can stop that thread.\n\
                     help: {VARIABLE} sets another number of seconds, 0 none"
                ));
            }
        };
        let thread = std::thread::Builder::new().name("kctl-watchdog".into()).spawn(watch);
        thread.map_err(|error| Error::from(format!("no thread to watch the test: {error}")))?;
        Ok(Self(Some(watched)))
    }

    /// Counts the accepted writes to all servers of an app as progress.
    pub(super) fn watch_world(&self, world: &World) {
        for server in std::iter::once(&world.server).chain(world.others.iter().map(|other| &other.server)) {
            self.watch_writes(server);
        }
    }

    /// Counts the accepted writes to a server as progress.
    fn watch_writes(&self, server: &ApiServer) {
        let Some(watched) = &self.0 else { return };
        let progress = watched.progress.clone();
        server.observe(move |request| {
            if request.is_accepted_write() {
                progress.n_steps.fetch_add(1, Relaxed);
            }
        });
    }
}

/// Returns the limit in seconds that the environment variable sets.
fn parse_limit(value: Option<&str>) -> Result<u64> {
    let Some(text) = value else { return Ok(STUCK_AFTER) };
    text.parse().map_err(|_| Error::from(format!("{VARIABLE} has to be a number of seconds, not `{text}`")))
}

/// Shows the watching thread that the runtime finishes waits. The channel is closed when the runtime drops the task.
async fn beat(progress: Arc<Progress>, _alive: mpsc::Sender<Infallible>) {
    let (mut interval, mut n_looks) = (1, progress.n_looks.load(Relaxed));
    loop {
        tokio::time::sleep(Duration::from_secs(interval)).await;
        let n_looks_before = std::mem::replace(&mut n_looks, progress.n_looks.load(Relaxed));
        match Clock::of(interval, n_looks - n_looks_before) {
            Clock::Running => {
                progress.n_steps.fetch_add(1, Relaxed);
                interval = 1;
            }
            Clock::Simulated => {
                progress.n_simulated_beats.fetch_add(1, Relaxed);
                interval = (interval * 2).min(BEAT_INTERVAL_MAX);
            }
        }
    }
}

impl Progress {
    /// Waits until the test has made no progress for `stuck_after` seconds of real time, and returns the cause. Returns
    /// `None` if the test or its runtime ends before.
    fn wait_until_stuck(
        &self,
        ended: &Receiver<Infallible>,
        stuck_after: u64,
        polled: &PolledReconcile,
    ) -> Option<String> {
        let (mut n_steps, mut n_beats, mut n_polls) = (0, 0, polled.n_polls());
        // Seconds without a step, and those without a heartbeat either.
        let (mut idle, mut still) = (0, 0);
        while matches!(ended.recv_timeout(LOOK), Err(RecvTimeoutError::Timeout)) && !self.is_over.load(Relaxed) {
            self.n_looks.fetch_add(1, Relaxed);
            let n_steps_before = std::mem::replace(&mut n_steps, self.n_steps.load(Relaxed));
            let n_beats_before = std::mem::replace(&mut n_beats, self.n_simulated_beats.load(Relaxed));
            (idle, still) = (idle + 1, still + 1);
            if n_beats != n_beats_before {
                (still, n_polls) = (0, polled.n_polls());
            }
            if n_steps != n_steps_before {
                (idle, still, n_polls) = (0, 0, polled.n_polls());
            }
            if idle >= stuck_after && still * 2 >= idle {
                return Some(describe_loop(idle, polled.busy_since(n_polls)));
            }
            if idle >= stuck_after {
                return Some(format!(
                    "simulated time passes, but no object was written for {idle} s of real time, so a wait of the test \
                     never ends; bound it with `tokio::time::timeout`"
                ));
            }
        }
        None
    }
}

/// Describes what keeps the thread: a reconcile, or other code if it is `None`.
fn describe_loop(seconds: u64, reconcile: Option<String>) -> String {
    let busy = reconcile.map_or_else(
        || "code outside of a reconcile (the test or a task)".to_owned(),
        |reconcile| format!("the reconcile {reconcile}"),
    );
    format!(
        "{busy} has run for {seconds} s of real time without a write or a finished wait; a loop needs an end, and work \
         that blocks should await now and then"
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Api, api::PostParams};

    use super::*;
    use crate::{
        App,
        prelude::{Action, Context, controller},
    };

    /// Set by the watchdogs of the tests, so that the stuck reconciles end.
    static SPINS_FOUND: AtomicBool = AtomicBool::new(false);
    static YIELDS_FOUND: AtomicBool = AtomicBool::new(false);

    #[controller(crate = crate)]
    async fn spins(_config: Arc<ConfigMap>, _cx: Context<spins>) -> Result<Action> {
        while !SPINS_FOUND.load(Relaxed) {
            std::hint::spin_loop();
        }
        Ok(Action::await_change())
    }

    #[controller(crate = crate)]
    async fn yields(_config: Arc<ConfigMap>, _cx: Context<yields>) -> Result<Action> {
        while !YIELDS_FOUND.load(Relaxed) {
            tokio::task::yield_now().await;
        }
        Ok(Action::await_change())
    }

    /// Runs an app with one `ConfigMap` until the watchdog sets `found`, and returns the error.
    async fn stuck_message(app: App, found: &'static AtomicBool) -> String {
        let world = World::start(&app).await.unwrap();
        let (sender, message) = mpsc::channel();
        let watchdog = Watchdog::start_with(3, move |message| {
            sender.send(message).unwrap();
            found.store(true, Relaxed);
        });
        watchdog.as_ref().unwrap().watch_world(&world);
        let web = crate::from_json::<ConfigMap>(crate::json!({ "metadata": { "name": "web" } })).unwrap();
        Api::default_namespaced(world.client.clone()).create(&PostParams::default(), &web).await.unwrap();
        world.idle(Duration::from_secs(60)).await.unwrap();
        message.try_recv().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn reconcile_that_never_waits_is_named() {
        let message = stuck_message(App::new("spinner").controller::<spins>(), &SPINS_FOUND).await;
        let what = "hangs: the reconcile configmap default/web has run for 3 s of real time";
        assert!(message.contains(what), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn reconcile_that_only_yields_is_named() {
        let message = stuck_message(App::new("yielder").controller::<yields>(), &YIELDS_FOUND).await;
        let what = "hangs: the reconcile configmap default/web has run for 3 s of real time";
        assert!(message.contains(what), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn endless_wait_of_paused_test_is_reported() {
        let (sender, message) = mpsc::channel();
        let _watchdog = Watchdog::start_with(3, move |message| sender.send(message).unwrap()).unwrap();
        let message = loop {
            match message.try_recv() {
                Ok(message) => break message,
                Err(_none_yet) => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        };
        assert!(message.contains("simulated time passes, but no object was written for 3 s"), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_watchdog_reports_nothing() {
        let (sender, message) = mpsc::channel::<String>();
        drop(Watchdog::start_with(1, move |message| sender.send(message).unwrap()).unwrap());
        // Blocks the thread, so that the heartbeat is not dropped before the limit.
        assert_eq!(message.recv_timeout(Duration::from_secs(30)), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn clock_that_runs_differs_from_simulated_one() {
        for (slept, n_looks, clock) in [
            (1, 0, Clock::Simulated),
            (1, 1, Clock::Running),
            (2, 1, Clock::Running),
            (60, 1, Clock::Simulated),
            (60, 29, Clock::Simulated),
            (60, 30, Clock::Running),
            (1, 90, Clock::Running),
        ] {
            assert_eq!(Clock::of(slept, n_looks), clock, "{slept} s in {n_looks} s");
        }
    }

    #[test]
    fn limit_comes_from_the_environment() {
        let parse = |value| parse_limit(value).map_err(|error| error.to_string());
        assert_eq!(parse(None), Ok(300));
        assert_eq!(parse(Some("0")), Ok(0));
        assert_eq!(parse(Some("900")), Ok(900));
        assert_eq!(parse(Some("x")), Err("KCTL_TEST_STUCK_SECONDS has to be a number of seconds, not `x`".into()));
    }
}
