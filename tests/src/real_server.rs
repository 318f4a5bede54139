//! The real API server with which suites compare the embedded one.

use std::path::PathBuf;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// The variable with the kubeconfig file of the server. `KUBECONFIG` names the cluster that a developer works with, and
/// `cargo test` must not write to it.
const REAL_SERVER: &str = "REAL_SERVER";

/// Returns the kubeconfig file of `REAL_SERVER`, or `None` if the variable is not set or empty.
pub fn real_server() -> Option<PathBuf> {
    std::env::var_os(REAL_SERVER).filter(|file| !file.is_empty()).map(PathBuf::from)
}

/// Returns a client of the server of `REAL_SERVER`, or `None` if the variable is not set or empty.
///
/// # Panics
/// The file is not a kubeconfig.
pub async fn real_client() -> Option<Client> {
    let file = real_server()?;
    let kubeconfig = Kubeconfig::read_from(&file).unwrap_or_else(|error| panic!("{REAL_SERVER}: {error}"));
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let config = config.unwrap_or_else(|error| panic!("{REAL_SERVER}: {error}"));
    Some(Client::try_from(config).unwrap_or_else(|error| panic!("{REAL_SERVER}: {error}")))
}
