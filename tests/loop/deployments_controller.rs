//! A controller whose primary has a generation and a status, and which owns and watches other kinds.

use std::pin::Pin;

use kctl::{
    k8s::apimachinery::pkg::apis::meta::v1::OwnerReference,
    kube::{
        Api, Resource,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
};

use crate::world::{World, pod};

type Act = Arc<
    dyn Fn(Arc<Deployment>, Context<Deployments>) -> Pin<Box<dyn Future<Output = Result<Action>> + Send>> + Send + Sync,
>;

/// Reconciles `Deployment`s, owns pods, and watches `ConfigMap`s that name a deployment in their text.
#[controller(of = Deployment, owns = Pod, watches = ConfigMap(map = named_in_text), primary(status))]
pub(crate) struct Deployments {
    act: Act,
}

impl Reconcile for Deployments {
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: Context<Self>) -> Result<Action> {
        (self.act)(deployment, cx).await
    }
}

fn named_in_text(config: &ConfigMap, _all: &Store<Deployment>) -> Vec<Key<Deployment>> {
    let text = config.data.iter().filter_map(|data| data.get("text"));
    text.flat_map(|text| text.split(' ')).map(|name| Key::namespaced("default", name)).collect()
}

/// Adds the controller to an app.
pub(crate) fn deployments<F, Fut>(app: App, act: F) -> App
where
    F: Fn(Arc<Deployment>, Context<Deployments>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action>> + Send + 'static,
{
    let act: Act = Arc::new(move |deployment, cx| Box::pin(act(deployment, cx)));
    app.controller_with(move |_env| std::future::ready(Ok(Deployments { act: act.clone() })))
}

impl World {
    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::default_namespaced(self.client.clone())
    }

    pub(crate) async fn create_deployment(&self, name: &str) -> Deployment {
        let deployment = serde_json::from_value(kctl::json!({
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
                },
            },
        }));
        self.deployments().create(&PostParams::default(), &deployment.unwrap()).await.unwrap()
    }

    /// Changes a Deployment as another client would.
    pub(crate) async fn patch_deployment(&self, name: &str, patch: serde_json::Value) {
        self.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Creates a Pod with these owner references.
    pub(crate) async fn create_pod_of(&self, name: &str, owners: &[OwnerReference]) {
        let mut pod = pod(name);
        pod.metadata.owner_references = Some(owners.to_vec());
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }
}

/// Returns the controller reference to an owner.
pub(crate) fn controlled_by<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    owner.controller_owner_ref(&()).unwrap()
}
