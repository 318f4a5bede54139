//! Runs the code of a simulation on its own thread, under simulated time, and gives it up when it is stuck.

use std::{
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
};

use super::{
    app_logs,
    checks::Violation,
    panics, permits,
    progress::{AppLogs, Progress, YIELDS},
};

/// Runs a future under simulated time on a new thread, so that thread-local values start fresh.
///
/// A thread that is stuck is abandoned: nothing can end it before the program ends.
pub(super) fn on_own_thread<T: Send + 'static>(
    progress: &Arc<Progress>,
    stuck_after: u32,
    future: impl Future<Output = T> + Send + 'static,
) -> Result<T, Violation> {
    let _permit = permits::acquire();
    panics::install_hook();
    let (alive, ended) = mpsc::channel::<Infallible>();
    let of_run = progress.clone();
    let body = move || {
        // Dropped last: the runtime has ended by then.
        let _alive = alive;
        of_run.enter();
        let _logs = (of_run.app_logs() == AppLogs::InTimeline).then(app_logs::record);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| Violation::new("the simulation", format!("no runtime: {error}")))?;
        let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(future)));
        ended.map_err(|panic| Violation::from_panic("the run", &*panic))
    };
    let thread = std::thread::Builder::new().name("kctl-sim".into()).spawn(body);
    let thread = thread.map_err(|error| Violation::new("the simulation", format!("no thread: {error}")))?;
    progress.wait_for_end(&ended, stuck_after).map_err(|what| Violation::new(YIELDS, what))?;
    thread.join().unwrap_or_else(|panic| Err(Violation::from_panic("the run", &*panic)))
}
