//! What a simulated cluster does by itself: pods run, what lost its owner goes, and Deployments and Jobs have pods.

use std::sync::OnceLock;

use kctl_apiserver::{ApiServer, Kubelet, Workloads};
use tokio::task::JoinSet;

/// The simulated parts of one cluster.
pub(crate) struct Simulation {
    server: ApiServer,
    kubelet: Kubelet,
    /// With their task, which ends with them.
    workloads: OnceLock<(Workloads, JoinSet<()>)>,
}

impl Simulation {
    /// A kubelet and the garbage collector. Of Deployments nothing is made: that is for the app, or for other clusters.
    pub(super) fn of_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(server.controllers());
        Self::with(server, server.kubelet(), tasks)
    }

    /// The same with the pods of Deployments and Jobs: a cluster that does what it is told.
    pub(super) fn of_workloads(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        let simulation = Self::of_pods(server, tasks);
        simulation.add_workloads();
        simulation
    }

    /// Pods without the garbage collector, whose containers ignore SIGTERM: a controller has to survive that deletions take their
    /// whole grace period.
    pub(crate) fn of_stubborn_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        Self::with(server, server.kubelet().ignoring_sigterm(), tasks)
    }

    fn with(server: &ApiServer, kubelet: Kubelet, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(kubelet.clone().run());
        Self { server: server.clone(), kubelet, workloads: OnceLock::new() }
    }

    /// Makes the pods of Deployments, `ReplicaSets` and Jobs from here on.
    pub(crate) fn add_workloads(&self) {
        self.workloads.get_or_init(|| {
            let (workloads, mut tasks) = (self.server.workloads(), JoinSet::new());
            tasks.spawn(workloads.clone().run());
            (workloads, tasks)
        });
    }

    /// Whether nothing is left to collect, no pod waits for something that will happen, and every workload has its pods.
    pub(crate) fn is_idle(&self) -> bool {
        let changed = |group, resource| self.server.revision_of(group, resource);
        let pods = self.kubelet.seen() >= changed("", "pods") && self.kubelet.pending() == 0;
        let kinds = [("", "pods"), ("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")];
        let newest = kinds.into_iter().map(|(group, resource)| changed(group, resource)).max().unwrap_or(0);
        let workloads = self.workloads.get().is_none_or(|(workloads, _)| workloads.seen() >= newest);
        pods && workloads && self.server.pending() == 0
    }
}
