//! Owned objects that the webhook does not assign: the shard of their primary labels them itself.

use kctl::{json, prelude::*};
use kctl_tests::Faults;

use super::{N_KEYS, RingWorld, config, sharder::SHARD_LABEL};
use crate::{lease_candidates::advance_seconds, replicas::Replica};

/// Applies one object, and creates one with `generateName`. The installed `ControllerRing` does not list their kind, as before
/// an update of the program that owns a further kind.
#[controller(owns = ServiceAccount(apply, create), name = "accounts")]
async fn accounts(config: Arc<ConfigMap>, cx: Context<accounts>) -> Result<Action> {
    let (owned, name) = (cx.owned::<ServiceAccount>(), config.name_any());
    owned.apply(json!({ "metadata": { "name": &name, "labels": config.labels() } })).await?;
    if !owned.iter().any(|account| account.metadata.generate_name.is_some()) {
        let metadata = ObjectMeta { generate_name: Some(format!("{name}-")), ..ObjectMeta::default() };
        owned.create(ServiceAccount { metadata, ..ServiceAccount::default() }).await?;
    }
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn owned_object_without_webhook_is_created_once() {
    let world = RingWorld::new(Duration::ZERO).await;
    let app = App::new("podset").controller::<accounts>();
    let manager = app.manager_in_ring(world.client.clone(), world.client.clone(), config("a", 1)).await.unwrap();
    let server = world.server.clone();
    let a = Replica::start(manager.clock(Arc::new(move || server.now())), Faults::default());
    // Bookmarks of the watch pass the versions of all of them.
    advance_seconds(300).await;
    let owned = || {
        let accounts = world.server.objects("", "serviceaccounts");
        let of_primaries = accounts.into_iter().filter(|account| !account["metadata"]["ownerReferences"].is_null());
        of_primaries.collect::<Vec<_>>()
    };
    let before = owned();
    assert_eq!((before.len(), a.n_cached("serviceaccounts")), (2 * N_KEYS, 2 * N_KEYS));
    for account in &before {
        let meta = &account["metadata"];
        assert_eq!(meta["labels"][SHARD_LABEL], "a", "{account}");
        let managers = meta["managedFields"].as_array().unwrap().iter();
        let mut applied = managers.filter(|manager| manager["operation"] == "Apply");
        assert!(!applied.any(|manager| manager.to_string().contains(SHARD_LABEL)), "{account}");
    }
    world.change(1).await;
    advance_seconds(100).await;
    assert_eq!(owned(), before, "nothing is written again");
}
