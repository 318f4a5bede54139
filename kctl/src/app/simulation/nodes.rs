//! The simulated kubelet and workload controllers of one API server.

use std::sync::OnceLock;

use kctl_apiserver::ApiServer;
use kctl_workloads::{Kubelet, Workloads};
use kube::Client;
use tokio::task::JoinSet;

/// A running kubelet, and controllers of workloads that can be started.
pub(crate) struct SimulatedNodes {
    kubelet: Kubelet,
    workloads: Workloads,
    started: OnceLock<JoinSet<()>>,
}

impl SimulatedNodes {
    pub(crate) fn for_server(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        Self::start(Kubelet::for_server(server), Workloads::for_server(server), tasks)
    }

    /// Starts a kubelet whose containers ignore SIGTERM.
    #[cfg(feature = "sim")]
    pub(crate) fn ignoring_sigterm(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        Self::start(Kubelet::for_server(server).ignoring_sigterm(), Workloads::for_server(server), tasks)
    }

    /// Starts a kubelet for the API server of a client.
    pub(crate) fn for_client(client: &Client, node: &str, tasks: &mut JoinSet<()>) -> Self {
        Self::start(Kubelet::new(client.clone(), node), Workloads::new(client.clone()), tasks)
    }

    fn start(kubelet: Kubelet, workloads: Workloads, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(kubelet.clone().run());
        Self { kubelet, workloads, started: OnceLock::new() }
    }

    /// Starts the controllers of Deployments, `ReplicaSets` and Jobs. Further calls do nothing.
    pub(crate) fn add_workloads(&self) {
        self.started.get_or_init(|| {
            let mut tasks = JoinSet::new();
            tasks.spawn(self.workloads.clone().run());
            tasks
        });
    }

    /// Returns the number of Pods that will change by themselves.
    pub(crate) fn pending(&self) -> usize {
        self.kubelet.pending()
    }

    /// Returns the remaining work of the kubelet and the controllers, one line each.
    pub(crate) fn unfinished_work(&self) -> Vec<String> {
        let mut lines = self.workloads.rejected_requests();
        if self.pending() > 0 {
            lines.push(format!("pods that are about to change: {}", self.pending()));
        }
        lines
    }

    /// Returns `true` if the kubelet has handled all changes of Pods up to a `resourceVersion`.
    pub(crate) fn have_handled_pods(&self, newest: u64) -> bool {
        self.kubelet.observed_revision() >= newest
    }

    /// Returns `true` if the controllers have handled all changes up to a `resourceVersion`, or do not run.
    pub(crate) fn have_handled_workloads(&self, newest: u64) -> bool {
        self.started.get().is_none() || self.workloads.observed_revision() >= newest
    }

    /// Returns `true` if each workload has its Pods now, or the controllers do not run.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn workloads_are_settled(&self) -> kube::Result<bool> {
        match self.started.get() {
            Some(_tasks) => self.workloads.is_settled().await,
            None => Ok(true),
        }
    }
}
