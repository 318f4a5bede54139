//! Keeps a `ConfigMap` with the message of every `{{kind}}`.
use kctl::prelude::*;

/// Desired state of a `{{kind}}`.
#[resource(group = "{{group}}", version = "{{version}}", kind = "{{kind}}", namespaced, status = "{{kind}}Status")]
pub struct {{kind}}Spec {
    /// Value of the key `message` in the `ConfigMap`; if empty, there is no `ConfigMap`.
    #[serde(default)]
    pub message: String,
}

/// Observed state of a `{{kind}}`.
#[schema]
pub struct {{kind}}Status {
    /// Generation of the spec that was last reconciled.
    pub observed_generation: Option<i64>,
    /// Name of the `ConfigMap`, if there is one.
    pub config_map: Option<String>,
}

/// Keeps a `ConfigMap` with the message of every `{{kind}}`.
///
/// The declaration is also the permission: `generate-rbac` prints the role from it, and a call that is not declared does not
/// compile.
#[controller(owns = ConfigMap(apply, delete))]
async fn {{function}}(object: Arc<{{kind}}>, cx: Context<{{function}}>) -> Result<Action> {
    let config = ConfigMap {
        metadata: ObjectMeta { name: Some(object.name_any()), ..ObjectMeta::default() },
        data: Some([("message".into(), object.spec.message.clone())].into()),
        ..ConfigMap::default()
    };
    let desired = (!object.spec.message.is_empty()).then_some(config);
    let config_map = desired.as_ref().map(ResourceExt::name_any);
    // Applies the desired objects if they differ, and deletes other owned ones.
    cx.owned::<ConfigMap>().converge(desired).await?;
    cx.patch_status({{kind}}Status { observed_generation: object.metadata.generation, config_map }).await?;
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("{{name}}")
        .version(env!("CARGO_PKG_VERSION"))
        // Set by the Dockerfile.
        .commit(option_env!("COMMIT"))
        .controller::<{{function}}>()
}

// A controller mostly waits, so one thread is enough; the guide says when to use more.
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
        testing::{Scenario, Snapshot, TestServer, Trial},
    };

    use super::*;

    async fn create(objects: &Api<{{kind}}>, message: &str) -> kctl::Result<()> {
        let sample = {{kind}}::new("sample", {{kind}}Spec { message: message.into() });
        objects.create(&PostParams::default(), &sample).await?;
        Ok(())
    }

    async fn change(objects: &Api<{{kind}}>, message: &str) -> kctl::Result<()> {
        let change = Patch::Merge(kctl::json!({ "spec": { "message": message } }));
        objects.patch("sample", &PatchParams::default(), &change).await?;
        Ok(())
    }

    /// Returns the message in the `ConfigMap`, or an empty string if there is no `ConfigMap`.
    async fn message(configs: &Api<ConfigMap>) -> kctl::Result<String> {
        let config = configs.get_opt("sample").await?;
        Ok(config.and_then(|config| config.data?.remove("message")).unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn config_map_follows_the_message() {
        let server = TestServer::start(app()).await.unwrap();
        let (objects, configs) = (Api::default_namespaced(server.client()), Api::default_namespaced(server.client()));
        create(&objects, "hello").await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(message(&configs).await.unwrap(), "hello");

        for next in ["good bye", ""] {
            change(&objects, next).await.unwrap();
            server.idle().await.unwrap();
            assert_eq!(message(&configs).await.unwrap(), next);
        }
    }

    /// The controller alone: its role has nothing that another controller needs, which `kctl add` may bring.
    fn alone() -> App {
        App::new("{{name}}").controller::<{{function}}>()
    }

    /// Uses every permission of the controller; one that is not used here is reported as superfluous.
    async fn everything(trial: &Trial) -> kctl::Result<()> {
        let objects = Api::default_namespaced(trial.client());
        create(&objects, "hello").await?;
        trial.idle().await?;
        change(&objects, "").await?;
        trial.idle().await
    }

    kctl::role_tests!(alone, everything);

    /// Runs the scenario with crashes between writes, lost responses and stale caches. The final state must be the same as without
    /// faults. A failure is printed with the command that repeats it; `KCTL_SEEDS=1000 cargo test` tries more seeds.
    #[kctl::test(seeds = 16)]
    fn final_state_is_the_same_under_faults(scenario: Scenario) -> Scenario {
        scenario
            .app(app)
            .objects(include_str!("../sample.yaml"))
            // The next change by a user, once the controller is idle. After the last step the sample is deleted.
            .step("no message", |client| async move { change(&Api::default_namespaced(client), "").await })
            // Must hold at every moment.
            .invariant("no ConfigMap is empty", |now: &Snapshot| {
                let empty = now.all::<ConfigMap>().into_iter().find(|config| config.data.iter().flatten().any(|(_, text)| text.is_empty()));
                empty.map_or(Ok(()), |config| Err(format!("{} has no message", config.name_any())))
            })
    }
}
