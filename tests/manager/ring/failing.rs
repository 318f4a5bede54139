//! An object whose reconcile fails is handed over like any other.

use std::sync::atomic::{AtomicBool, Ordering};

use kctl::{
    kube::{
        Api, Client,
        api::{Patch, PatchParams},
    },
    prelude::*,
};
use kctl_tests::{Fault, Faults, RequestSummary};
use serde_json::json;

use super::{RingWorld, config, sharder::DRAIN_LABEL};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

/// Writes one primary, and fails the first time. Before the retry, the sharder requests the return of the object, and
/// the watch is late.
#[controller(of = ConfigMap, name = "failing", primary(patch))]
struct Failing {
    sharder: Client,
    faults: Faults,
    has_failed: AtomicBool,
}

impl Reconcile for Failing {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        if config.name_any() != "config-0" || self.has_failed.swap(true, Ordering::Relaxed) {
            return Ok(Action::await_change());
        }
        self.faults.add(Fault::Break, |request: &RequestSummary| request.reads("configmaps"));
        self.faults.cut_watches();
        let drain = Patch::Merge(json!({ "metadata": { "labels": { DRAIN_LABEL: "true" } } }));
        let configs = Api::<ConfigMap>::default_namespaced(self.sharder.clone());
        configs.patch("config-0", &PatchParams::default(), &drain).await?;
        cx.patch(json!({ "data": { "state": "1" } })).await?;
        Err::<Action, _>("no").terminal()
    }
}

#[tokio::test(start_paused = true)]
async fn object_is_handed_over_after_a_terminal_error() {
    let world = RingWorld::new(Duration::from_millis(20)).await;
    let (faults, sharder) = (Faults::default(), world.client.clone());
    let injected = faults.clone();
    let app = App::new("podset").controller_with(move |_env| {
        std::future::ready(Ok(Failing {
            sharder: sharder.clone(),
            faults: injected.clone(),
            has_failed: AtomicBool::new(false),
        }))
    });
    let client = faults.client(&world.server);
    let manager = app.manager_in_ring(client.clone(), client, config("a", 1)).await.unwrap();
    let server = world.server.clone();
    let a = Replica::start(manager.clock(Arc::new(move || server.now())), faults);
    advance_seconds(30).await;
    assert_eq!(world.server.objects("", "configmaps")[0]["data"]["state"], "1", "it ran");
    assert_eq!(a.n_handed_over(), 1);
}
