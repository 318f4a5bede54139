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
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let kubeconfig = match &options.kubeconfig {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    let config = Config::from_custom_kubeconfig(kubeconfig?, &KubeConfigOptions::default()).await?;
    eprintln!("kctl: running the pods of {} on node {}", config.cluster_url, options.node);
    let kubelet = Kubelet::new(Client::try_from(config)?, &options.node);
    tokio::select! {
        () = kubelet.run() => {}
        () = stopped() => {}
    }
    Ok(())
}
