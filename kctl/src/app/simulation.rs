//! The simulated parts of a cluster: a kubelet, the garbage collector, and controllers of
//! Deployments and Jobs.

#[cfg(feature = "dev")]
mod nodes;
#[cfg(not(feature = "dev"))]
#[path = "simulation/no_nodes.rs"]
mod nodes;

use kctl_apiserver::ApiServer;
use tokio::task::JoinSet;

pub(crate) use nodes::SimulatedNodes;

/// The simulated parts of one embedded cluster.
pub(crate) struct Simulation {
    server: ApiServer,
    nodes: SimulatedNodes,
}

impl Simulation {
    /// Starts a kubelet and the garbage collector. Deployments get no Pods.
    pub(super) fn of_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(server.controllers());
        Self { server: server.clone(), nodes: SimulatedNodes::for_server(server, tasks) }
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
        Self { server: server.clone(), nodes: SimulatedNodes::ignoring_sigterm(server, tasks) }
    }

    /// Starts the controllers of Deployments, `ReplicaSets` and Jobs. Further calls do nothing.
    pub(crate) fn add_workloads(&self) {
        self.nodes.add_workloads();
    }

    /// Returns the remaining work, one line each, for people.
    pub(super) fn unfinished_work(&self) -> Vec<String> {
        let mut lines = self.nodes.unfinished_work();
        if self.server.pending() > 0 {
            lines.push(format!("objects that the garbage collector has to check: {}", self.server.pending()));
        }
        lines
    }

    /// Returns `true` if nothing is left to collect, no Pod will change by itself, and each
    /// workload has its Pods.
    pub(crate) fn is_idle(&self) -> bool {
        let changed = |group, resource| self.server.revision_of(group, resource);
        let kinds = [("", "pods"), ("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")];
        let newest = kinds.into_iter().map(|(group, resource)| changed(group, resource)).max().unwrap_or(0);
        let pods = self.nodes.have_handled_pods(changed("", "pods")) && self.nodes.pending() == 0;
        pods && self.nodes.have_handled_workloads(newest) && self.server.pending() == 0
    }
}
