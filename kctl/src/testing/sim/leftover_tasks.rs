//! Checks that no task of the app outlives its processes: in a cluster a task ends with its process.
//!
//! A task that `tokio::spawn` starts belongs to the runtime of the run, not to a simulated process. It survives a crash, and
//! would act beside the next process. Tasks of kctl end with the process that started them.

use std::time::Duration;

use tokio::{runtime::Handle, time::sleep};

use super::checks::Violation;

/// Name of the checker.
const TASKS_END: &str = "tasks end with their process";
/// Simulated time for writes that are on their way, and for tasks that notice the end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Returns the finding if tasks still run although all processes, servers and clients are gone.
pub(super) async fn find_leftover_tasks() -> Option<Violation> {
    sleep(ENDS_WITHIN).await;
    let tasks = match Handle::current().metrics().num_alive_tasks() {
        0 => return None,
        1 => "1 task still runs".to_owned(),
        n => format!("{n} tasks still run"),
    };
    let what = format!(
        "{tasks} after all processes have ended: await what `tokio::spawn` starts, or allow it with \
         `.allowing_spawned_tasks()` (a step, or a client in a static, may have started them as well)"
    );
    Some(Violation::new(TASKS_END, what))
}
