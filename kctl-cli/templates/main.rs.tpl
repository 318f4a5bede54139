//! Keeps a `ConfigMap` with the message of every `{{kind}}`.
use kctl::prelude::*;

/// What is wanted.
#[resource(group = "{{group}}", version = "v1alpha1", kind = "{{kind}}", namespaced, status = "{{kind}}Status")]
pub struct {{kind}}Spec {
    /// What the `ConfigMap` says; without a message there is none.
    #[serde(default)]
    pub message: String,
}

/// What is there.
#[schema]
pub struct {{kind}}Status {
    /// The generation of the specification that this status is about.
    pub observed_generation: Option<i64>,
    /// The name of the `ConfigMap`.
    pub config_map: String,
}

/// Keeps a `ConfigMap` with the message of every `{{kind}}`. What it may do is what it declares: the role is printed from here.
#[controller(owns = ConfigMap(apply, delete))]
async fn {{function}}(object: Arc<{{kind}}>, cx: Context<{{function}}>) -> Result<Action> {
    let config = ConfigMap {
        metadata: ObjectMeta { name: Some(object.name_any()), ..ObjectMeta::default() },
        data: Some([("message".into(), object.spec.message.clone())].into()),
        ..ConfigMap::default()
    };
    let wanted = (!object.spec.message.is_empty()).then_some(config);
    cx.owned::<ConfigMap>().converge(wanted).await?;
    let config_map = object.name_any();
    cx.patch_status({{kind}}Status { observed_generation: object.metadata.generation, config_map }).await?;
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("{{name}}")
        .version(env!("CARGO_PKG_VERSION"))
        // Known where the build says it: the Dockerfile does.
        .commit(option_env!("COMMIT"))
        .controller::<{{function}}>()
}

// A controller waits more than it computes: one thread does the same for less (the guide has when to take more).
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

    /// What the `ConfigMap` says; nothing when there is none.
    async fn said(configs: &Api<ConfigMap>) -> kctl::Result<String> {
        let config = configs.get_opt("sample").await?;
        Ok(config.and_then(|config| config.data?.remove("message")).unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn the_config_map_follows_the_message() {
        let server = TestServer::start(app()).await.unwrap();
        let (objects, configs) = (Api::default_namespaced(server.client()), Api::default_namespaced(server.client()));
        create(&objects, "hello").await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(said(&configs).await.unwrap(), "hello");

        for message in ["good bye", ""] {
            change(&objects, message).await.unwrap();
            server.idle().await.unwrap();
            assert_eq!(said(&configs).await.unwrap(), message);
        }
    }

    /// Everything that the controller may do: a permission that is not used here is reported.
    async fn everything(trial: &Trial) -> kctl::Result<()> {
        let objects = Api::default_namespaced(trial.client());
        create(&objects, "hello").await?;
        trial.idle().await?;
        change(&objects, "").await?;
        trial.idle().await
    }

    kctl::role_tests!(app, everything);

    /// The same again and again, each time with other faults: the program is killed between two writes, an answer is lost, its
    /// cache is old after a restart. In the end everything has to be as without faults. What fails is printed with the command
    /// that repeats it; `KCTL_SEEDS=1000 cargo test` looks further.
    #[kctl::test(seeds = 16)]
    fn no_fault_changes_the_end(scenario: Scenario) -> Scenario {
        scenario
            .app(app)
            .objects(include_str!("../sample.yaml"))
            // What a user does once nothing is left to do. At the end the sample is deleted.
            .step("no message", |client| async move { change(&Api::default_namespaced(client), "").await })
            // What is true at every moment.
            .invariant("no ConfigMap is empty", |now: &Snapshot| {
                let empty = now.all::<ConfigMap>().into_iter().find(|config| config.data.iter().flatten().any(|(_, text)| text.is_empty()));
                empty.map_or(Ok(()), |config| Err(format!("{} says nothing", config.name_any())))
            })
    }
}
