//! The progress of a run, which the thread that waits for the run can read.
//!
//! Simulated time does not advance while a task can run, so no limit in simulated time ends a loop that neither waits nor sends
//! a request. The waiting thread counts seconds of real time instead in which a run made no progress at all. It counts
//! its own waits rather than a difference of times: a machine that is suspended, or a debugger that holds the program,
//! adds one second at most.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use kctl_runtime::__private_0_1::{Freezer, PolledReconcile};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::trace::{Line, Trace};

/// Name of the checker.
pub(super) const YIELDS: &str = "the app yields";
/// Default number of seconds of real time without any progress after which a run is given up.
pub(super) const STUCK_AFTER: u32 = 60;
/// Time between two looks at the progress.
const LOOK: Duration = Duration::from_secs(1);
/// Simulated time that counts as progress.
const TICK_EVERY: Duration = Duration::from_secs(600);
/// Longest wait for the timeline, which the stuck thread may hold.
const TRACE_WITHIN: Duration = Duration::from_secs(1);

thread_local! {
    /// The progress of the run of this thread.
    static CURRENT: RefCell<Option<Arc<Progress>>> = const { RefCell::new(None) };
}

/// The progress of one run, shared by its thread and the one that waits for it.
#[derive(Default)]
pub(super) struct Progress {
    ticks: AtomicU64,
    /// The timeline, once it exists.
    trace: Mutex<Option<Arc<Mutex<Trace>>>>,
    polled: PolledReconcile,
    app_logs: AppLogs,
}

/// The treatment of what the app logs with `tracing`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum AppLogs {
    /// The subscriber of the test gets it.
    #[default]
    Passed,
    /// It is added to the timeline.
    InTimeline,
}

/// Returns the progress of the run of this thread, if there is one.
fn current() -> Option<Arc<Progress>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Returns `true` on the thread of a run.
pub(super) fn is_run() -> bool {
    current().is_some()
}

/// Records that the run of this thread makes progress: a request, a change, a reconcile, or a line of the timeline.
pub(super) fn tick() {
    if let Some(progress) = current() {
        progress.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts each poll of a future as progress.
pub(super) async fn tick_when_polled<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        tick();
        future.as_mut().poll(cx)
    })
    .await
}

/// Counts simulated time as progress. A busy app may wait often, and send no request for long.
pub(super) async fn tick_with_time() -> Infallible {
    loop {
        sleep(TICK_EVERY).await;
        tick();
    }
}

/// Makes the timeline of the run of this thread readable for the waiting thread.
pub(super) fn show_trace(trace: &Arc<Mutex<Trace>>) {
    if let Some(progress) = current() {
        *progress.trace.lock() = Some(trace.clone());
    }
}

/// Adds a line to the timeline of the run of this thread. The author is the process whose task is polled now, or `outside`.
///
/// It does nothing while the timeline is locked: a hook or a subscriber may be called at any place.
pub(super) fn log_outside(outside: &str, what: String) {
    let trace = current().and_then(|progress| progress.trace.lock().clone());
    if let Some(mut trace) = trace.as_ref().and_then(|trace| trace.try_lock()) {
        let process = Freezer::current_process();
        trace.add(process.as_deref().unwrap_or(outside), what);
    }
}

impl Progress {
    /// Creates the progress of a run that has not begun.
    pub(super) fn new(app_logs: AppLogs) -> Self {
        Self { app_logs, ..Self::default() }
    }

    /// Makes this the progress of the current thread, until the end of the thread.
    pub(super) fn enter(self: &Arc<Self>) {
        CURRENT.set(Some(self.clone()));
        self.polled.watch();
    }

    /// Returns the treatment of what the app logs.
    pub(super) fn app_logs(&self) -> AppLogs {
        self.app_logs
    }

    /// Returns the timeline so far.
    pub(super) fn lines(&self) -> Vec<Line> {
        let trace = self.trace.lock().clone();
        let lines = trace.as_ref().and_then(|trace| trace.try_lock_for(TRACE_WITHIN)).map(|trace| trace.lines.clone());
        lines.unwrap_or_default()
    }

    /// Waits until the thread of the run drops its end of the channel.
    ///
    /// # Errors
    /// The message of the checker [`YIELDS`], if the run made no progress for `stuck_after` seconds of real time.
    pub(super) fn wait_for_end(&self, ended: &Receiver<Infallible>, stuck_after: u32) -> Result<(), String> {
        let (mut n_ticks, mut n_polls, mut n_idle) = (0, 0, 0);
        loop {
            match ended.recv_timeout(LOOK) {
                Ok(never) => match never {},
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let ticks = self.ticks.load(Ordering::Relaxed);
            if ticks != n_ticks {
                (n_ticks, n_polls, n_idle) = (ticks, self.polled.n_polls(), 0);
                continue;
            }
            n_idle += 1;
            if n_idle >= stuck_after {
                return Err(self.describe_stuck(stuck_after, n_polls));
            }
        }
    }

    /// Returns the finding of a run that makes no progress. `n_polls` is the number of polls of reconciles when it made the
    /// last one.
    fn describe_stuck(&self, seconds: u32, n_polls: u64) -> String {
        let busy = self.polled.busy_since(n_polls);
        let busy = busy.unwrap_or_else(|| "code outside of a reconcile (a task of the app, a step or a rule)".into());
        format!(
            "{busy} has run for {seconds} s of real time without a request or a finished wait; a loop needs an end, blocking \
             calls do not work here"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn run_without_ticks_is_given_up() {
        let progress = Progress::default();
        let (alive, ended) = mpsc::channel();
        let found = progress.wait_for_end(&ended, 1).unwrap_err();
        let what = "code outside of a reconcile (a task of the app, a step or a rule) has run for 1 s of real time";
        assert!(found.starts_with(what), "{found}");
        drop(alive);
        assert_eq!(progress.wait_for_end(&ended, 1), Ok(()));
    }

    #[test]
    fn ticking_run_is_waited_for() {
        let (progress, (alive, ended)) = (Arc::new(Progress::default()), mpsc::channel());
        let of_run = progress.clone();
        let run = std::thread::spawn(move || {
            let _alive: mpsc::Sender<Infallible> = alive;
            of_run.enter();
            let (_sender, never) = mpsc::channel::<()>();
            for _ in 0..25 {
                tick();
                assert!(never.recv_timeout(Duration::from_millis(100)).is_err());
            }
        });
        assert_eq!(progress.wait_for_end(&ended, 2), Ok(()));
        run.join().unwrap();
    }
}
