//! Defines a type per member cluster, and connects the program to the members.
//!
//! With a type per cluster, an undeclared write to a member is a compile error.

use kctl::{
    kube::{
        Client, Config,
        config::{KubeConfigOptions, Kubeconfig},
    },
    prelude::*,
};

/// The first member.
pub struct Member1;
impl Cluster for Member1 {
    const NAME: &'static str = "member1";
}

/// The second member.
pub struct Member2;
impl Cluster for Member2 {
    const NAME: &'static str = "member2";
}

/// Environment variables that name the members' kubeconfig files for `run`. `dev` starts an embedded API server for
/// each member.
const KUBECONFIGS: [(&str, &str); 2] = [(Member1::NAME, "KUBECONFIG_MEMBER1"), (Member2::NAME, "KUBECONFIG_MEMBER2")];

/// Adds the members to the app.
pub(crate) fn connect(app: App) -> App {
    KUBECONFIGS.into_iter().fold(app, |app, (name, variable)| app.cluster(name, move || client(variable)))
}

/// Creates the client of a member from the kubeconfig file that an environment variable names.
///
/// # Errors
/// The variable is not set, or the file is not a valid kubeconfig.
async fn client(variable: &str) -> Result<Client> {
    let file = std::env::var(variable).context(format!("set {variable} to the kubeconfig file of the cluster"))?;
    let kubeconfig = Kubeconfig::read_from(&file).context(variable)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.context(variable)?;
    Ok(kctl::client(config)?)
}
