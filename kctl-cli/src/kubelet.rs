//! `kctl kubelet`: a simulated node that marks pods as running without running them.
//!
//! On a cluster with real nodes this would take Pods from real kubelets. So it has no default cluster, and rejects a
//! cluster whose nodes have container runtimes.
//!
//! ```text
//! kctl kubelet --kubeconfig kubeconfig --node worker-1
//! ```

use std::path::PathBuf;

use k8s_openapi::api::core::v1::Node;
use kctl_apimachinery::validation::is_dns1123_subdomain;
use kctl_runtime::connection::{self, kubeconfig};
use kctl_workloads::Kubelet;
use kube::{
    Api,
    api::ListParams,
    config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{Failure, wait_for_stop};

/// Prefix of `status.nodeInfo.containerRuntimeVersion` of simulated nodes.
const SIMULATED: &str = "simulated://";
/// Maximum number of nodes that an error names; the others are counted.
const NODES_NAMED_MAX: usize = 3;

/// Options of `kctl kubelet`.
#[derive(clap::Args)]
pub(crate) struct KubeletOptions {
    /// The kubeconfig of the API server; defaults to kubectl's kubeconfig, only if --context is given
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; with --kubeconfig, by default its current context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The name of the node
    #[arg(long, value_name = "NAME", default_value = "kctl-node")]
    node: String,
    /// Make containers ignore SIGTERM, so that each deletion takes the whole grace period
    #[arg(long)]
    ignore_sigterm: bool,
    /// Also run on a cluster that has real nodes: pods on the simulated node never really run
    #[arg(long)]
    beside_real_nodes: bool,
}

/// The reason why no kubelet was started.
#[derive(Debug, thiserror::Error)]
enum KubeletError {
    /// Neither a kubeconfig nor a context is given. The current context may be a production cluster.
    #[error(
        "no cluster given: `kctl kubelet` only simulates Pods, so it does not default to the current context\nhelp: pass \
         `--kubeconfig FILE` or `--context NAME`; `kctl apiserver --write-kubeconfig FILE` writes one"
    )]
    NoCluster,
    /// The kubeconfig can't be read, or lacks the context.
    #[error(
        "no API server: {why}\nhelp: pass its kubeconfig: `--kubeconfig FILE`; `kctl apiserver --write-kubeconfig FILE` writes one"
    )]
    NoKubeconfig {
        /// Not `#[source]`: sources are printed last, and the help has to come last.
        why: Box<KubeconfigError>,
    },
    /// The API server would reject the Node object at each retry.
    #[error(
        "invalid node name {0:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' \
         or '.', and must start and end with an alphanumeric character\nhelp: pass a name such as `--node worker-1`"
    )]
    InvalidNodeName(String),
    /// The nodes of the cluster can't be listed, for example because the user lacks the permission.
    #[error("failed to list nodes of {server}: {why}")]
    ListNodes {
        /// The URL of the API server.
        server: String,
        /// The message of the API server, or the error of the connection with its sources.
        why: kctl_runtime::reconcile::Error,
    },
    /// The cluster has real nodes, whose pods this kubelet would take.
    #[error(
        "{server} has real nodes ({nodes}): its pods would be marked as running on `{node}`, where nothing \
         runs\nhelp: choose another cluster, or pass `--beside-real-nodes`"
    )]
    RealNodes {
        /// The URL of the API server.
        server: String,
        /// Names of its real nodes.
        nodes: String,
        /// The name of the simulated node.
        node: String,
    },
}

/// Simulates a node until Ctrl-C or SIGTERM. Its Node object and the pods on it are left as they are.
///
/// # Errors
/// The node name or the kubeconfig is invalid, no cluster is given, or the cluster has real nodes.
pub(crate) async fn run(options: KubeletOptions) -> Result<(), Failure> {
    if !is_dns1123_subdomain(&options.node) {
        return Err(KubeletError::InvalidNodeName(options.node).into());
    }
    let no_kubeconfig = |why| KubeletError::NoKubeconfig { why: Box::new(why) };
    let kubeconfig = match (&options.kubeconfig, &options.context) {
        (Some(file), _) => Kubeconfig::read_from(file),
        (None, Some(_)) => read_default(),
        (None, None) => return Err(KubeletError::NoCluster.into()),
    };
    let mut kubeconfig = kubeconfig.map_err(no_kubeconfig)?;
    kubeconfig::unset_empty(&mut kubeconfig);
    let wanted = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &wanted).await.map_err(no_kubeconfig)?;
    let server = config.cluster_url.to_string();
    let client = connection::client(config)?;
    if !options.beside_real_nodes {
        let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
        let nodes = nodes.map_err(|why| KubeletError::ListNodes { server: server.clone(), why: why.into() })?;
        if let Some(nodes) = real_kubelet_nodes(&nodes.items) {
            return Err(KubeletError::RealNodes { server, nodes, node: options.node }.into());
        }
    }
    say!("kctl: simulating pods of {server} on node {}", options.node);
    let mut kubelet = Kubelet::new(client, &options.node);
    if options.ignore_sigterm {
        kubelet = kubelet.ignoring_sigterm();
    }
    tokio::select! {
        () = kubelet.run() => {}
        () = wait_for_stop() => {}
    }
    Ok(())
}

/// Reads the user's default kubeconfig, as kubectl does: missing files of `KUBECONFIG` are skipped.
fn read_default() -> Result<Kubeconfig, KubeconfigError> {
    let files = kubeconfig::default_files();
    // If no file exists, kube's error names one of them.
    let Some((first, others)) = files.split_first() else { return Kubeconfig::read() };
    others.iter().try_fold(Kubeconfig::read_from(first)?, |merged, file| merged.merge(Kubeconfig::read_from(file)?))
}

/// Returns the names of the nodes that real kubelets have registered; `None` if there are no such nodes.
///
/// A Node without a container runtime version was created as an object, for example by a test.
fn real_kubelet_nodes(nodes: &[Node]) -> Option<String> {
    let runtime = |node: &&Node| {
        let info = node.status.as_ref()?.node_info.as_ref()?;
        Some(!info.container_runtime_version.is_empty() && !info.container_runtime_version.starts_with(SIMULATED))
    };
    let names =
        nodes.iter().filter(|node| runtime(node) == Some(true)).filter_map(|node| node.metadata.name.as_deref());
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(NODES_NAMED_MAX);
    let named = names.iter().take(NODES_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(named),
        (false, more) => Some(format!("{named} and {more} more")),
    }
}
