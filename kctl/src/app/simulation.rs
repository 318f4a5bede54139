//! What a simulated cluster does by itself: pods run, what lost its owner goes, and Deployments have pods.

use kctl_apiserver::{ApiServer, Kubelet, Workloads};
use tokio::task::JoinSet;

/// The simulated parts of one cluster.
pub(crate) struct Simulation {
    server: ApiServer,
    kubelet: Kubelet,
    workloads: Option<Workloads>,
}

impl Simulation {
    /// A kubelet and the garbage collector. Of Deployments nothing is made: that is for the app, or for other clusters.
    pub(super) fn of_pods(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(server.controllers());
        let kubelet = server.kubelet();
        tasks.spawn(kubelet.clone().run());
        Self { server: server.clone(), kubelet, workloads: None }
    }

    /// The same with the pods of Deployments: a cluster that does what it is told.
    pub(super) fn of_workloads(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        tasks.spawn(server.controllers());
        Self::of_workloads_alone(server, tasks)
    }

    /// Pods and Deployments without the garbage collector.
    pub(crate) fn of_workloads_alone(server: &ApiServer, tasks: &mut JoinSet<()>) -> Self {
        let (kubelet, workloads) = (server.kubelet(), server.workloads());
        tasks.spawn(kubelet.clone().run());
        tasks.spawn(workloads.clone().run());
        Self { server: server.clone(), kubelet, workloads: Some(workloads) }
    }

    /// Whether nothing is left to collect, no pod waits for something that will happen, and every Deployment has its pods.
    pub(crate) fn is_idle(&self) -> bool {
        let changed = |group, resource| self.server.revision_of(group, resource);
        let pods = self.kubelet.seen() >= changed("", "pods") && self.kubelet.pending() == 0;
        let kinds = [("", "pods"), ("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")];
        let newest = kinds.into_iter().map(|(group, resource)| changed(group, resource)).max().unwrap_or(0);
        let workloads = self.workloads.as_ref().is_none_or(|workloads| workloads.seen() >= newest);
        pods && workloads && self.server.pending() == 0
    }
}
