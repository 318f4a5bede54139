//! Keeps a `ConfigMap` with the message of every `{{kind}}`.
use kctl::prelude::*;

/// What is wanted.
#[resource(group = "{{group}}", version = "v1alpha1", kind = "{{kind}}", namespaced, status = "{{kind}}Status")]
pub struct {{kind}}Spec {
    /// What the `ConfigMap` says.
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
#[controller(owns = ConfigMap)]
async fn {{function}}(object: Arc<{{kind}}>, cx: Context<{{function}}>) -> Result<Action> {
    let config = ConfigMap {
        metadata: ObjectMeta { name: Some(object.name_any()), ..ObjectMeta::default() },
        data: Some([("message".into(), object.spec.message.clone())].into()),
        ..ConfigMap::default()
    };
    cx.owned::<ConfigMap>().converge([config]).await?;
    let config_map = object.name_any();
    cx.patch_status({{kind}}Status { observed_generation: object.metadata.generation, config_map }).await?;
    Ok(Action::await_change())
}

fn app() -> App {
    App::new("{{name}}").controller::<{{function}}>()
}

#[tokio::main]
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
        testing::TestServer,
    };

    use super::*;

    /// What the `ConfigMap` says.
    async fn message(server: &TestServer) -> Option<String> {
        let config = Api::<ConfigMap>::default_namespaced(server.client()).get("sample").await.unwrap();
        config.data?.get("message").cloned()
    }

    #[tokio::test(start_paused = true)]
    async fn the_config_map_follows_the_message() {
        let server = TestServer::start(app()).await.unwrap();
        let objects = Api::<{{kind}}>::default_namespaced(server.client());
        let sample = {{kind}}::new("sample", {{kind}}Spec { message: "hello".into() });
        objects.create(&PostParams::default(), &sample).await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(message(&server).await.as_deref(), Some("hello"));

        let change = Patch::Merge(kctl::json!({ "spec": { "message": "good bye" } }));
        objects.patch("sample", &PatchParams::default(), &change).await.unwrap();
        server.idle().await.unwrap();
        assert_eq!(message(&server).await.as_deref(), Some("good bye"));
    }
}
