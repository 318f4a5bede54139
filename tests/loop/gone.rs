//! A primary that is gone while its watch is behind.

use kctl::{
    kube::{Api, api::DeleteParams},
    prelude::*,
};

use crate::world::{World, app, pod, seconds};

/// Keeps one pod, and writes to its primary.
#[controller(owns = Pod(create), primary(patch))]
async fn keeper(_config: Arc<ConfigMap>, cx: Context<keeper>) -> Result<Action> {
    let pods = cx.owned::<Pod>();
    if pods.is_empty() {
        let metadata = ObjectMeta { generate_name: Some("pod-".into()), ..ObjectMeta::default() };
        pods.create(Pod { metadata, ..pod("") }).await?;
    }
    cx.patch(kctl::json!({ "metadata": { "annotations": { "seen": "yes" } } })).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn answer_that_says_that_the_primary_is_gone_ends_its_reconciles_although_the_watch_is_behind() {
    let mut world = World::new();
    world.run_cluster();
    world.set("a", "1").await;
    world.run(app().controller::<keeper>()).await;
    seconds(10).await;
    assert_eq!(world.n_requests("create", "pods"), 1);
    world.deafen("configmaps");
    let configs = Api::<ConfigMap>::default_namespaced(world.client.clone());
    configs.delete("a", &DeleteParams::default()).await.unwrap();
    seconds(600).await;
    assert_eq!(world.n_requests("create", "pods"), 2, "its pod went with it, and was made again once");
}
