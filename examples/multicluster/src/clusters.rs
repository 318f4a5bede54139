//! The member clusters.

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

/// Where the kubeconfig files of the members are, for `run`; `dev` needs none.
const KUBECONFIGS: [(&str, &str); 2] = [(Member1::NAME, "KUBECONFIG_MEMBER1"), (Member2::NAME, "KUBECONFIG_MEMBER2")];

pub(crate) fn connect(app: App) -> App {
    KUBECONFIGS.into_iter().fold(app, |app, (name, variable)| app.cluster(name, move || client(variable)))
}

async fn client(variable: &str) -> Result<Client> {
    let file = std::env::var(variable).context(format!("set {variable} to the kubeconfig file of the cluster"))?;
    let kubeconfig = Kubeconfig::read_from(&file).context(variable)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.context(variable)?;
    Ok(kctl::client(config)?)
}
