//! `kctl kubelet`: the simulated kubelet as a program.

use std::path::PathBuf;

use kctl_apiserver::Kubelet;
use kube::{
    Client,
    config::{Config, KubeConfigOptions, Kubeconfig},
};

use crate::{Failure, stopped};

/// Where to run pods.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The kubeconfig of the API server; by default as kubectl finds it
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The name of the node
    #[arg(long, value_name = "NAME", default_value = "kctl-node")]
    node: String,
    /// Let containers ignore SIGTERM: each deletion takes its whole grace period
    #[arg(long)]
    ignore_sigterm: bool,
}

/// There is no API server to ask.
#[derive(Debug, thiserror::Error)]
#[error(
    "no API server: {why}\nhelp: name its kubeconfig: `--kubeconfig FILE`; `kctl apiserver --write-kubeconfig FILE` writes one"
)]
struct NoKubeconfig {
    /// Not a source: the help ends the text.
    why: Box<kube::config::KubeconfigError>,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let kubeconfig = match &options.kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    let kubeconfig = kubeconfig.map_err(|why| NoKubeconfig { why: Box::new(why) })?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    say!("kctl: running the pods of {} on node {}", config.cluster_url, options.node);
    let mut kubelet = Kubelet::new(Client::try_from(config)?, &options.node);
    if options.ignore_sigterm {
        kubelet = kubelet.ignoring_sigterm();
    }
    tokio::select! {
        () = kubelet.run() => {}
        () = stopped() => {}
    }
    Ok(())
}
