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
#[controller(owns = ConfigMap(apply, delete))]
pub async fn {{function}}(object: Arc<{{kind}}>, cx: Context<{{function}}>) -> Result<Action> {
    let config = ConfigMap {
        // The kind is part of the name, so that objects of two kinds don't contend for one ConfigMap.
        metadata: ObjectMeta { name: Some(format!("{{name}}-{}", object.name_any())), ..ObjectMeta::default() },
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

#[cfg(test)]
mod tests {
    use kctl::{
        kube::{
            Api,
            api::{Patch, PatchParams},
        },
        testing::{Scenario, TestServer, Trial},
    };

    use super::*;

    /// The controller alone: its role has nothing that another controller needs.
    fn app() -> App {
        App::new("{{name}}").controller::<{{function}}>()
    }

    async fn change(objects: &Api<{{kind}}>, message: &str) -> kctl::Result<()> {
        let change = Patch::Merge(kctl::json!({ "spec": { "message": message } }));
        objects.patch("sample", &PatchParams::default(), &change).await?;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn config_map_follows_the_message() {
        let sample = include_str!("../samples/{{name}}.yaml");
        let server = TestServer::start_with(app(), sample).await.unwrap();
        server.idle().await.unwrap();
        let configs = Api::<ConfigMap>::default_namespaced(server.client());
        let config = configs.get("{{name}}-sample").await.unwrap();
        assert_eq!(config.data.unwrap()["message"], "hello");

        change(&Api::default_namespaced(server.client()), "").await.unwrap();
        server.idle().await.unwrap();
        assert!(configs.get_opt("{{name}}-sample").await.unwrap().is_none());
    }

    /// Uses every permission of the controller; one that is not used here is reported as superfluous.
    async fn everything(trial: &Trial) -> kctl::Result<()> {
        let objects = Api::default_namespaced(trial.client());
        let sample = {{kind}}::new("sample", {{kind}}Spec { message: "hello".into() });
        objects.create(&kctl::kube::api::PostParams::default(), &sample).await?;
        trial.idle().await?;
        change(&objects, "").await?;
        trial.idle().await
    }

    kctl::role_tests!(app, everything);

    /// Runs the scenario with crashes between writes, lost responses and stale caches.
    #[kctl::test(seeds = 16)]
    fn final_state_is_the_same_under_faults(scenario: Scenario) -> Scenario {
        scenario
            .app(app)
            .objects(include_str!("../samples/{{name}}.yaml"))
            .step("no message", |client| async move { change(&Api::default_namespaced(client), "").await })
    }
}
