//! A kind with two versions, defaulting, validation and conversion, and a controller for the newer version.
//!
//! ```text
//! cargo run -p website -- dev
//! ```
//!
//! The same program serves the functions in `hooks` over HTTPS. `generate-manifests` prints the webhook configurations
//! in addition to the CRD, the role and the Deployment.
mod hooks;
mod kinds;

use kctl::prelude::*;

use kinds::{Website, WebsiteStatus};

/// Writes the hosts of each website into a `ConfigMap` of the same name.
#[controller(owns = ConfigMap(apply))]
async fn website(site: Arc<Website>, cx: Context<website>) -> Result<Action> {
    let hosts = ConfigMap {
        metadata: ObjectMeta { name: Some(site.name_any()), ..ObjectMeta::default() },
        data: Some([("hosts".to_owned(), site.spec.hosts.join("\n"))].into()),
        ..ConfigMap::default()
    };
    cx.owned::<ConfigMap>().apply(hosts).await?;
    let hosts = i32::try_from(site.spec.hosts.len()).unwrap_or(i32::MAX);
    cx.patch_status(WebsiteStatus { hosts }).await?;
    Ok(Action::await_change())
}

/// Returns the program, which `main` and the tests share.
fn app() -> App {
    App::new("website")
        .controller::<website>()
        .admission::<(hooks::defaults, hooks::rules)>()
        .conversion::<(hooks::up, hooks::down)>()
        .dev_objects(include_str!("../website.yaml"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> kctl::Result<()> {
    app().main().await
}

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{
            Api,
            api::{Patch, PatchParams, PostParams},
        },
        testing::{Scenario, Trial},
    };

    use super::*;
    use crate::kinds::WebsiteSpec;

    async fn made_and_extended(trial: &Trial) -> Result<()> {
        let sites = Api::<Website>::default_namespaced(trial.client());
        let spec = WebsiteSpec { hosts: vec!["old.example.com".into()], replicas: Some(1) };
        sites.create(&PostParams::default(), &Website::new("web", spec)).await?;
        trial.idle().await?;
        let extended = kctl::json!({ "spec": { "hosts": ["old.example.com", "new.example.com"] } });
        sites.patch("web", &PatchParams::default(), &Patch::Merge(extended)).await?;
        trial.idle().await
    }

    /// Every run calls conversion, defaulting and validation, with injected faults.
    #[kctl::test(seeds = 16)]
    fn website_survives_simulated_faults(scenario: Scenario) -> Scenario {
        scenario
            .app(app)
            .objects(include_str!("../website.yaml"))
            .settled("each host is served", |snapshot| {
                let sites: Vec<Website> = snapshot.all();
                let served = |site: &Website| {
                    let config = snapshot.get::<ConfigMap>("default", &site.name_any());
                    let hosts = config.and_then(|config| config.data?.remove("hosts"));
                    hosts == Some(site.spec.hosts.join("\n")) && site.spec.replicas.is_some()
                };
                match sites.iter().find(|site| !served(site)) {
                    None if sites.len() == 2 => Ok(()),
                    other => Err(format!("{} sites, not served: {other:?}", sites.len())),
                }
            })
            .step("one host more", |client| async move {
                let sites = Api::<Website>::default_namespaced(client);
                let hosts = kctl::json!({ "spec": { "hosts": ["old.example.com", "new.example.com"] } });
                sites.patch("old", &PatchParams::default(), &Patch::Merge(hosts)).await?;
                Ok(())
            })
            .step("another main host is rejected", |client| async move {
                let sites = Api::<Website>::default_namespaced(client);
                let hosts = kctl::json!({ "spec": { "hosts": ["other.example.com"] } });
                match sites.patch("old", &PatchParams::default(), &Patch::Merge(hosts)).await {
                    Err(kctl::kube::Error::Api(rejected))
                        if rejected.message.contains("the main host must be kept") =>
                    {
                        Ok(())
                    }
                    other => Err(format!("it is not rejected: {other:?}").into()),
                }
            })
    }

    kctl::role_tests!(app, made_and_extended);
    kctl::permissions_test!(website; owns ConfigMap);
}
