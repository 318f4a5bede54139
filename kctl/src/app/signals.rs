//! SIGTERM and Ctrl-C: the first one stops the program gracefully, the second one ends it at once. Their thread also renews
//! Leases, and ends a program whose runtime is blocked.

use std::time::Duration;

use tokio::{runtime::Handle, sync::watch};

use super::log::print_or_log_error;

/// Exit status after a second signal, as in controller-runtime.
const ENDED: i32 = 1;

/// Exit status of a program that Ctrl-C ended before it was ready, as shells report it.
pub(super) const INTERRUPTED: i32 = 130;

/// Signals within this time count as one: `timeout` and shells may signal a program twice at once.
const SIGNAL_DEBOUNCE: Duration = Duration::from_millis(250);

/// After the grace period, a runtime that is not blocked ends within this time.
const AFTER_GRACE: Duration = Duration::from_secs(1);

/// A runtime that runs no task within this time has no free thread.
const TASK_TIMEOUT: Duration = Duration::from_secs(3);

/// Number of times in a row that the runtime runs no task within [`TASK_TIMEOUT`] before a replica ends: a minute. A
/// process that was frozen misses only one when it continues.
const MISSED_TASKS_MAX: u32 = 20;

/// Help for a program whose threads are blocked.
pub(super) const BLOCKED_HELP: &str =
    "help: a function blocks its thread: use `async` calls, or `tokio::task::spawn_blocking` with a time limit";

/// Waits for the request to stop.
///
/// There is one per run, created before anything that may take long. A signal that arrives earlier
/// has its default effect.
#[derive(Clone)]
pub(super) struct Signals {
    requested: watch::Receiver<Option<StopRequest>>,
    runtime: Option<Handle>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StopRequest {
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no SIGTERM"))]
    Terminate,
    Interrupt,
}

impl Signals {
    /// Starts listening on a separate thread; a second signal ends the process at once.
    ///
    /// The thread works even where reconciles block all others. A person can still end the program, and it ends by
    /// itself after `grace` (never if `None`).
    pub(super) fn listen(grace: Option<Duration>) -> Self {
        let blocked = Blocked { grace, runtime: Handle::current() };
        let (ask, requested) = watch::channel(None);
        let (open, opened) = std::sync::mpsc::channel();
        let listen = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    tracing::error!(%error, "failed to listen for signals: they end the program without a graceful shutdown, and blocked threads delay the renewal of Leases");
                    return;
                }
            };
            runtime.block_on(async {
                let source = SignalSource::open();
                let _received = open.send(Handle::current());
                handle_signals(source, &ask, &blocked).await;
            });
        };
        if let Err(error) = std::thread::Builder::new().name("signals".into()).spawn(listen) {
            tracing::error!(%error, "failed to listen for signals: they end the program without a graceful shutdown, and blocked threads delay the renewal of Leases");
        }
        // Waits until the thread has installed its handlers. An error means that it could not start.
        Self { requested, runtime: opened.recv().ok() }
    }

    /// Returns the runtime of the thread that listens, which no reconcile blocks; `None` if it could not be started.
    pub(super) fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }

    /// Ends the process if no task of the current runtime has run for a minute, unless a stop was requested.
    ///
    /// Its Leases are renewed on the signal thread, so without this limit other replicas would wait for it
    /// indefinitely.
    pub(super) fn exit_if_blocked(&self) {
        let Some(thread) = &self.runtime else { return };
        let (signals, watched) = (self.clone(), Handle::current());
        thread.spawn(async move {
            tokio::select! {
                () = signals.wait_for_stop() => {}
                () = wait_until_blocked(&watched) => {
                    let limit = TASK_TIMEOUT * MISSED_TASKS_MAX;
                    print_or_log_error(&format!("all threads were blocked for {limit:?}: other replicas take over when the Lease has expired"));
                    print_or_log!("{BLOCKED_HELP}");
                    std::process::exit(ENDED);
                }
            }
        });
    }

    pub(super) async fn wait_for_stop(&self) {
        let mut requested = self.requested.clone();
        if requested.wait_for(Option::is_some).await.is_err() {
            // The thread could not be started: a signal has its default effect.
            std::future::pending::<()>().await;
        }
    }

    /// Returns `true` if Ctrl-C came first: a person changed their mind, while SIGTERM is an
    /// orderly end at any time.
    pub(super) fn is_interrupted(&self) -> bool {
        *self.requested.borrow() == Some(StopRequest::Interrupt)
    }
}

/// Returns `true` if a runtime runs a task within [`TASK_TIMEOUT`]. One that shuts down cancels the task at once, which
/// counts as well.
async fn is_responsive(runtime: &Handle) -> bool {
    tokio::time::timeout(TASK_TIMEOUT, runtime.spawn(async {})).await.is_ok()
}

/// Waits until a runtime has run no task [`MISSED_TASKS_MAX`] times in a row.
async fn wait_until_blocked(runtime: &Handle) {
    let mut n_missed = 0;
    while n_missed < MISSED_TASKS_MAX {
        if is_responsive(runtime).await {
            n_missed = 0;
            tokio::time::sleep(TASK_TIMEOUT).await;
        } else {
            n_missed += 1;
        }
    }
}

/// The program's runtime, which may have no free thread.
struct Blocked {
    grace: Option<Duration>,
    runtime: Handle,
}

impl Blocked {
    /// Waits until the grace period is over and the runtime has no free thread.
    ///
    /// A runtime that shuts down is not blocked.
    async fn wait_until_blocked(&self) {
        let Some(grace) = self.grace else { return std::future::pending().await };
        tokio::time::sleep(grace + AFTER_GRACE).await;
        while is_responsive(&self.runtime).await {
            tokio::time::sleep(AFTER_GRACE).await;
        }
    }
}

/// Handles the first signal, then waits for a second one or for a blocked runtime.
async fn handle_signals(mut source: SignalSource, ask: &watch::Sender<Option<StopRequest>>, blocked: &Blocked) {
    let first = source.next().await;
    tracing::info!("shutting down: waiting for running reconciles");
    ask.send_replace(Some(first));
    let same_gesture = tokio::time::Instant::now() + SIGNAL_DEBOUNCE;
    while tokio::time::timeout_at(same_gesture, source.next()).await.is_ok() {}
    tracing::info!("still shutting down; another signal ends the process at once");
    tokio::select! {
        _second = source.next() => {}
        () = blocked.wait_until_blocked() => {
            let grace = blocked.grace.unwrap_or_default();
            print_or_log_error(&format!("all threads were still blocked {grace:?} after the stop: running reconciles were cut off, and the Lease is not released"));
            print_or_log!("{BLOCKED_HELP}");
            std::process::exit(ENDED);
        }
    }
    tracing::error!("ended by a second signal: running reconciles were cut off, and the Lease is not released");
    std::process::exit(ENDED);
}

#[cfg(unix)]
struct SignalSource {
    terminate: Option<tokio::signal::unix::Signal>,
    interrupt: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl SignalSource {
    fn open() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let open = |kind: SignalKind, name: &str| {
            signal(kind).map_err(|error| tracing::error!(%error, "failed to listen for {name}: it ends the program without a graceful shutdown")).ok()
        };
        Self { terminate: open(SignalKind::terminate(), "SIGTERM"), interrupt: open(SignalKind::interrupt(), "Ctrl-C") }
    }

    async fn next(&mut self) -> StopRequest {
        async fn receive(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = receive(&mut self.terminate) => StopRequest::Terminate,
            () = receive(&mut self.interrupt) => StopRequest::Interrupt,
        }
    }
}

#[cfg(not(unix))]
struct SignalSource;

#[cfg(not(unix))]
impl SignalSource {
    fn open() -> Self {
        Self
    }

    async fn next(&mut self) -> StopRequest {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "failed to listen for Ctrl-C: it ends the program without a graceful shutdown");
            std::future::pending::<()>().await;
        }
        StopRequest::Interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn runtime_is_blocked_after_a_minute_without_tasks() {
        // Nothing polls this runtime.
        let never_runs = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let begun = tokio::time::Instant::now();
        wait_until_blocked(never_runs.handle()).await;
        assert_eq!(begun.elapsed().as_secs(), 60);
        never_runs.shutdown_background();
    }

    #[tokio::test(start_paused = true)]
    async fn runtime_that_runs_tasks_is_not_blocked() {
        let runtime = Handle::current();
        let waits = tokio::time::timeout(Duration::from_secs(3_600), wait_until_blocked(&runtime));
        assert!(waits.await.is_err());
    }
}
