//! A separate runtime for elections, so that a reconcile that blocks its thread does not delay the renewal of a Lease.

use std::pin::pin;

use kube::Client;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinError, JoinSet},
};

use super::{Elector, End};

/// The runtime on which electors run, and the client that they use there.
///
/// A client belongs to the runtime on which it was created: its connections are tasks of that runtime.
#[derive(Clone)]
pub(in crate::manager) struct ElectionRuntime {
    pub(in crate::manager) handle: Handle,
    pub(in crate::manager) client: Client,
}

impl ElectionRuntime {
    /// Runs an elector on the runtime, and returns why it ended. Dropping the future cancels it.
    pub(super) async fn run(self, elector: Elector, stop: impl Future<Output = bool> + Send) -> End {
        let (stop_sender, stopped) = oneshot::channel();
        let mut task = JoinSet::new();
        let elector = elector.with_client(self.client);
        task.spawn_on(elector.run_election(async { stopped.await.unwrap_or(false) }), &self.handle);
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            ended = task.join_next() => return end_of(ended),
            release = &mut stop => drop(stop_sender.send(release)),
        }
        end_of(task.join_next().await)
    }
}

/// Returns the result of an election. A panic is resumed in the caller.
fn end_of(ended: Option<Result<End, JoinError>>) -> End {
    match ended.map(|ended| ended.map_err(JoinError::try_into_panic)) {
        Some(Ok(end)) => end,
        Some(Err(Ok(panic))) => std::panic::resume_unwind(panic),
        Some(Err(Err(_))) | None => End::Lost("the runtime of elections has shut down".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        future::pending,
        sync::{Arc, mpsc},
        time::Duration,
    };

    use http::{Method, Request, Response};
    use k8s_openapi::jiff::Timestamp;
    use kube::client::Body;
    use tokio::runtime::Runtime;

    use super::{super::ElectionConfig, *};
    use crate::manager::Clock;

    /// Answers requests for the Lease `web`, which has no holder, and reports each update.
    async fn respond(request: Request<Body>, updated: mpsc::Sender<()>) -> Result<Response<Body>, Infallible> {
        let is_lease = request.uri().path().ends_with("/web");
        match *request.method() {
            // The list for the watch of the Lease.
            Method::GET if !is_lease => pending().await,
            Method::GET => {
                let status = r#"{"kind":"Status","status":"Failure","reason":"NotFound","code":404}"#;
                return Ok(Response::builder().status(404).body(status.as_bytes().to_vec().into()).unwrap());
            }
            Method::PUT => updated.send(()).unwrap_or_default(),
            _ => {}
        }
        Ok(Response::new(request.into_body()))
    }

    /// Longer than anything takes on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(30);

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Starts a thread that runs elections until the sender is dropped. The receiver gets a message for each update of the
    /// Lease, and ends with the last client.
    fn election_thread() -> (ElectionRuntime, mpsc::Receiver<()>, oneshot::Sender<()>) {
        let (elections, (updated, updates)) = (runtime(), mpsc::channel());
        let handle = elections.handle().clone();
        let client = {
            let _in_runtime = handle.enter();
            Client::new(tower::service_fn(move |request| respond(request, updated.clone())), "default")
        };
        let (running, ended) = oneshot::channel::<()>();
        std::thread::spawn(move || drop(elections.block_on(ended)));
        (ElectionRuntime { handle, client }, updates, running)
    }

    fn elector(runtime: ElectionRuntime, clock: Clock) -> Elector {
        let mut config = ElectionConfig::new("web", "default", "a");
        config.retry_period = Duration::from_millis(20);
        Elector::new(runtime.client.clone(), config, clock).unwrap().with_runtime(Some(runtime))
    }

    #[test]
    fn blocked_thread_does_not_delay_renewals() {
        let (elections, updates, _running) = election_thread();
        runtime().block_on(async {
            let elector = elector(elections, Arc::new(Timestamp::now));
            let leadership = elector.leadership();
            let (stop, stopped) = oneshot::channel();
            let election = tokio::spawn(elector.run(async { stopped.await.unwrap_or(false) }));
            assert!(leadership.wait_until_leading().await);
            for _ in 0..3 {
                // Blocks the only thread of this runtime.
                updates.recv_timeout(TIMEOUT).expect("a renewal");
            }
            stop.send(true).unwrap();
            assert_eq!(election.await.unwrap(), End::Released);
        });
    }

    #[test]
    fn dropped_election_gives_back_its_client() {
        let (elections, updates, _running) = election_thread();
        runtime().block_on(async {
            let elector = elector(elections, Arc::new(Timestamp::now));
            let leadership = elector.leadership();
            let election = tokio::spawn(elector.run(pending()));
            assert!(leadership.wait_until_leading().await);
            election.abort();
        });
        // Some renewals may have been sent before.
        let ended = std::iter::repeat_with(|| updates.recv_timeout(TIMEOUT)).take(1_000).find_map(Result::err);
        assert_eq!(ended, Some(mpsc::RecvTimeoutError::Disconnected), "it has the last client");
    }

    #[test]
    fn panic_of_election_resumes_in_caller() {
        let (elections, _updates, _running) = election_thread();
        runtime().block_on(async {
            let election = tokio::spawn(elector(elections, Arc::new(|| panic!("no clock"))).run(pending()));
            let ended = tokio::time::timeout(TIMEOUT, election).await.expect("it ends");
            assert!(ended.unwrap_err().is_panic());
        });
    }

    #[test]
    fn election_on_a_runtime_that_ends_is_lost() {
        let (elections, _updates, running) = election_thread();
        runtime().block_on(async {
            let elector = elector(elections, Arc::new(Timestamp::now));
            let leadership = elector.leadership();
            let election = tokio::spawn(elector.run(pending()));
            assert!(leadership.wait_until_leading().await);
            drop(running);
            let ended = tokio::time::timeout(TIMEOUT, election).await.expect("it ends").unwrap();
            assert_eq!(ended, End::Lost("the runtime of elections has shut down".into()));
        });
    }
}
