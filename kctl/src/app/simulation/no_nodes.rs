//! A cluster without nodes, for tests without the feature `dev`: Pods remain as they were created.

use kctl_apiserver::ApiServer;
use kube::Client;
use tokio::task::JoinSet;

/// Takes the place of a kubelet and workload controllers, and does nothing.
pub(crate) struct SimulatedNodes;

#[expect(clippy::unused_self, reason = "the nodes that `dev` simulates have these signatures")]
impl SimulatedNodes {
    pub(crate) fn for_server(_server: &ApiServer, _tasks: &mut JoinSet<()>) -> Self {
        Self
    }

    pub(crate) fn for_client(_client: &Client, _node: &str, _tasks: &mut JoinSet<()>) -> Self {
        Self
    }

    pub(crate) fn add_workloads(&self) {}

    pub(crate) fn pending(&self) -> usize {
        0
    }

    pub(crate) fn unfinished_work(&self) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn have_handled_pods(&self, _newest: u64) -> bool {
        true
    }

    pub(crate) fn have_handled_workloads(&self, _newest: u64) -> bool {
        true
    }

    pub(crate) fn workloads_are_settled(&self) -> std::future::Ready<kube::Result<bool>> {
        std::future::ready(Ok(true))
    }
}
