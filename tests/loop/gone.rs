//! A primary that was deleted while its watch lags.

use kctl::{
    kube::{Api, api::DeleteParams},
    prelude::*,
};
use kctl_tests::Fault;

use crate::world::{Log, With, World, app, pod, seconds};

/// Keeps one Pod, and patches its primary.
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
async fn not_found_response_stops_reconciles_before_watch_event() {
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

#[tokio::test(start_paused = true)]
async fn missing_kind_does_not_count_as_deleted_object() {
    let (mut world, log) = (World::new(), Log::default());
    world.set("a", "1").await;
    let app = app().configs({
        let log = log.clone();
        move |config, cx: Context<_>| {
            let log = log.clone();
            async move {
                let pods = cx.owned::<Pod>();
                if !config.data.as_ref().is_some_and(|data| data.values().any(|text| text == "2")) {
                    pods.create(pod("x")).or_get().await?;
                } else if let Some(pod) = pods.iter().next() {
                    let result = pods.delete(&*pod).await;
                    log.add(if result.is_ok() { "deleted" } else { "refused" });
                    result?;
                }
                Ok(Action::await_change())
            }
        }
    });
    world.run(app).await;
    seconds(5).await;
    assert_eq!(world.pod_names().await, ["x"]);
    world.faults.add(Fault::Refuse(404), |request| request.method == "DELETE");
    world.set("a", "2").await;
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(log.take(), ["refused"]);
    world.faults.clear();
    seconds(5).await;
    assert_eq!(log.take(), ["deleted"], "it was still known");
    assert_eq!(world.pod_names().await, Vec::<String>::new());
}
