//! The simulated parts of a cluster: a kubelet, the garbage collector, and controllers of
//! Deployments and Jobs.

use std::sync::OnceLock;

use kctl_apiserver::{ApiServer, Kubelet, Workloads};
use tokio::task::JoinSet;

/// The simulated parts of one cluster.
pub(crate) struct Simulation {
    server: ApiServer,
    kubelet: Kubelet,
    /// The controllers of workloads with their task, once they are started.
    workloads: OnceLock<(Workloads, JoinSet<()>)>,
}

impl Simulation {
    /// Starts a kubelet and the garbage collector. Deployments stay without Pods.
    pub(super) fn of_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(server.controllers());
        Self::with(server, server.kubelet(), tasks)
    }

    /// Starts the same, and the controllers of Deployments and Jobs.
    pub(super) fn of_workloads(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        let simulation = Self::of_pods(server, tasks);
        simulation.add_workloads();
        simulation
    }

    /// Starts a kubelet whose containers ignore SIGTERM, without the garbage collector.
    ///
    /// A controller has to survive deletions that take the whole grace period.
    #[cfg(feature = "sim")]
    pub(crate) fn of_stubborn_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        Self::with(server, server.kubelet().ignoring_sigterm(), tasks)
    }

    fn with(server: &ApiServer, kubelet: Kubelet, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(kubelet.clone().run());
        Self { server: server.clone(), kubelet, workloads: OnceLock::new() }
    }

    /// Starts the controllers of Deployments, `ReplicaSets` and Jobs. Further calls do nothing.
    pub(crate) fn add_workloads(&self) {
        self.workloads.get_or_init(|| {
            let (workloads, mut tasks) = (self.server.workloads(), JoinSet::new());
            tasks.spawn(workloads.clone().run());
            (workloads, tasks)
        });
    }

    /// Returns `true` if nothing is left to collect, no Pod will change by itself, and each
    /// workload has its Pods.
    pub(crate) fn is_idle(&self) -> bool {
        let changed = |group, resource| self.server.revision_of(group, resource);
        let pods = self.kubelet.seen() >= changed("", "pods") && self.kubelet.pending() == 0;
        let kinds = [("", "pods"), ("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")];
        let newest = kinds.into_iter().map(|(group, resource)| changed(group, resource)).max().unwrap_or(0);
        let workloads = self.workloads.get().is_none_or(|(workloads, _)| workloads.seen() >= newest);
        pods && workloads && self.server.pending() == 0
    }
}
