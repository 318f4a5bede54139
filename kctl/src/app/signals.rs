//! SIGTERM and Ctrl-C: the first asks the program to stop, the second ends it.

use std::time::Duration;

use tokio::sync::watch;

/// What a second signal ends the program with, as in controller-runtime.
const ENDED: i32 = 1;

/// What Ctrl-C ends a program with that has not been ready yet: a shell's status of a command that it interrupted.
pub(super) const INTERRUPTED: i32 = 130;

/// Signals within this time are one: `timeout`, and shells that pass on what their group was sent, signal a program twice at once.
const SAME_GESTURE: Duration = Duration::from_millis(250);

/// Whether the program was asked to stop. There is one for a run, made before the first thing that may take long: a signal that
/// comes earlier has its usual effect, and none is lost between two who listen.
#[derive(Clone)]
pub(super) struct Signals {
    asked: watch::Receiver<Option<Asked>>,
}

/// By which signal the program was asked first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no SIGTERM"))]
    Terminate,
    Interrupt,
}

impl Signals {
    /// Listens from now on; a second signal ends the process at once.
    pub(super) fn listen() -> Self {
        let (ask, asked) = watch::channel(None);
        let mut source = Source::open();
        tokio::spawn(async move {
            let first = source.next().await;
            tracing::info!("stopping: what runs is finished");
            ask.send_replace(Some(first));
            let same_gesture = tokio::time::Instant::now() + SAME_GESTURE;
            while tokio::time::timeout_at(same_gesture, source.next()).await.is_ok() {}
            tracing::info!("still stopping; a second signal ends at once");
            source.next().await;
            tracing::error!("ended by a second signal: what ran was cut off, and no lease is handed back");
            std::process::exit(ENDED);
        });
        Self { asked }
    }

    /// Returns once a signal has come.
    pub(super) async fn stopped(&self) {
        let mut asked = self.asked.clone();
        // The task that sends lives as long as the process.
        let _came = asked.wait_for(Option::is_some).await;
    }

    /// Whether it was Ctrl-C that came first: a person has changed their mind, where SIGTERM is an orderly end at any time.
    pub(super) fn interrupted(&self) -> bool {
        *self.asked.borrow() == Some(Asked::Interrupt)
    }
}

#[cfg(unix)]
struct Source {
    terminate: Option<tokio::signal::unix::Signal>,
    interrupt: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Source {
    fn open() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let open = |kind: SignalKind, name: &str| {
            signal(kind).map_err(|error| tracing::error!(%error, "{name} ends the program without a drain")).ok()
        };
        Self { terminate: open(SignalKind::terminate(), "SIGTERM"), interrupt: open(SignalKind::interrupt(), "Ctrl-C") }
    }

    async fn next(&mut self) -> Asked {
        async fn of(signal: &mut Option<tokio::signal::unix::Signal>) {
            match signal {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.terminate) => Asked::Terminate,
            () = of(&mut self.interrupt) => Asked::Interrupt,
        }
    }
}

#[cfg(not(unix))]
struct Source;

#[cfg(not(unix))]
impl Source {
    fn open() -> Self {
        Self
    }

    async fn next(&mut self) -> Asked {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "Ctrl-C ends the program without a drain");
            std::future::pending::<()>().await;
        }
        Asked::Interrupt
    }
}
