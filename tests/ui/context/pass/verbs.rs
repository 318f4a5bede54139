//! Every verb, each with the operation that needs it where there is one.
use kctl::{k8s::api::authentication::v1::TokenRequestSpec, prelude::*};

#[controller(
    owns = Pod(get, list, watch, create, update, patch, apply, delete),
    reads = Node(create, update, patch, delete, deletecollection, status),
    reads = ReplicaSet(scale),
    reads = Secret(apply),
    reads = ServiceAccount(token),
    watches = Service(map = nobody, eviction, binding),
    primary(patch, delete, scale, status)
)]
pub(crate) async fn deployments(_deployment: Arc<Deployment>, cx: Context<deployments>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    pods.create(Pod::default()).or_get().await?;
    pods.update(Pod::default()).await?;
    pods.apply(Pod::default()).await?;
    pods.converge([Pod::default()]).await?;
    for pod in &pods {
        pods.patch(pod, kctl::json!({})).await?;
        pods.delete(pod).await?;
        pods.delete(pod).foreground().await?;
        pods.delete(pod).orphan().await?;
    }
    let (nodes, node) = (cx.objects::<Node>(), Node::default());
    nodes.create(&node).await?;
    nodes.update(&node).await?;
    nodes.patch(&node, kctl::json!({})).await?;
    nodes.patch_status(&node, kctl::json!({})).await?;
    nodes.delete(&node).await?;
    nodes.delete_collection(None, "app=web").await?;
    nodes.delete_collection(None, "app=web").foreground().await?;
    cx.objects::<Secret>().apply(kctl::json!({ "metadata": { "name": "a", "namespace": "b" } })).await?;
    cx.objects::<ReplicaSet>().scale(&ReplicaSet::default(), 3).await?;
    cx.objects::<Service>().evict(&Service::default()).await?;
    cx.objects::<Service>().bind(&Service::default(), "node-a").await?;
    let seconds = TokenRequestSpec { expiration_seconds: Some(600), ..TokenRequestSpec::default() };
    cx.objects::<ServiceAccount>().token(&ServiceAccount::default(), seconds).await?;
    cx.patch(kctl::json!({})).await?;
    cx.scale(3).await?;
    cx.delete().await?;
    cx.delete().background().await?;
    Ok(Action::await_change())
}

fn nobody(_service: &Service, _deployments: &Store<Deployment>) -> Vec<Key<Deployment>> {
    Vec::new()
}

pub(crate) fn app() -> App {
    App::new("verbs").controller::<deployments>()
}
