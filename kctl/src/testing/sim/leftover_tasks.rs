//! Checks that no task of the app outlives its processes: in a cluster a task ends with its process.
//!
//! A task that `tokio::spawn` starts belongs to the runtime of the run, not to a simulated process. It survives a crash, and
//! would act at the same time as the next process. Tasks of kctl end with the process that started them.

use std::{
    cell::Cell,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{runtime::Handle, time::sleep};
use tower::Service;

use super::checks::Violation;

/// Name of the checker.
const TASKS_END: &str = "tasks end with their process";
/// Simulated time for writes that are in flight, and for tasks that notice the end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

thread_local! {
    /// Number of clients of the app in the run of this thread.
    static N_CLIENTS: Cell<usize> = const { Cell::new(0) };
}

/// The service of a client of the app, which counts while the client exists.
///
/// A `kube::Client` has one task, which owns the service. An app may keep a client in a static, as a fake system outside of
/// the cluster does. Such a client is not a task that the app has spawned.
#[derive(Clone)]
pub(super) struct CountedService<S> {
    service: S,
    _count: Arc<Count>,
}

struct Count;

impl Drop for Count {
    fn drop(&mut self) {
        // Fails at the end of the thread, when nothing is counted any more.
        let _ended = N_CLIENTS.try_with(|n| n.set(n.get().saturating_sub(1)));
    }
}

impl<S> CountedService<S> {
    /// Counts a service until its last clone is dropped.
    pub(super) fn new(service: S) -> Self {
        N_CLIENTS.set(N_CLIENTS.get() + 1);
        Self { service, _count: Arc::new(Count) }
    }
}

impl<S: Service<R>, R> Service<R> for CountedService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        self.service.call(request)
    }
}

/// Returns the finding if tasks still run although all processes and servers are gone.
pub(super) async fn find_leftover_tasks() -> Option<Violation> {
    sleep(ENDS_WITHIN).await;
    let n_tasks = Handle::current().metrics().num_alive_tasks().saturating_sub(N_CLIENTS.get());
    let tasks = match n_tasks {
        0 => return None,
        1 => "1 task still runs".to_owned(),
        n => format!("{n} tasks still run"),
    };
    let what = format!(
        "{tasks} after all processes have ended: await what `tokio::spawn` starts, or allow it with \
         `.allowing_spawned_tasks()` (a step may have started them as well)"
    );
    Some(Violation::new(TASKS_END, what))
}

#[cfg(test)]
mod tests {
    use kctl_apiserver::ApiServer;
    use kube::Client;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn client_does_not_count_as_a_task() {
        let client = Client::new(CountedService::new(ApiServer::new().service()), "default");
        assert_eq!(find_leftover_tasks().await, None);
        let task = tokio::spawn(std::future::pending::<()>());
        let found = find_leftover_tasks().await.unwrap();
        assert!(found.message.starts_with("1 task still runs after all processes have ended"), "{found:?}");
        task.abort();
        drop(client);
        assert_eq!(find_leftover_tasks().await, None);
        assert_eq!(N_CLIENTS.get(), 0);
    }
}
