//! Opens the gates of controllers for gained slots, once their caches are as new as the tenure, and forgets lost slots.

use std::{collections::BTreeSet, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{
    key::ObjectKey,
    manager::{
        handlers::{enqueue_by_relations, enqueue_slots},
        history::History,
    },
    queue::WorkQueue,
    reconcile::Env,
    shard::{Phase, Tenures},
    store::Share,
};

/// The waits for further slots before the caches are listed for those that were gained.
struct ListDelay {
    /// From the last slot to the next one.
    next_slot: Duration,
    max: Duration,
}

/// The waits of a replica that starts. The lists of other replicas, which start together, delay its Leases.
const FIRST_LIST_DELAY: ListDelay =
    ListDelay { next_slot: Duration::from_millis(150), max: Duration::from_millis(500) };
/// The waits of a replica that works already.
const LIST_DELAY: ListDelay = ListDelay { next_slot: Duration::from_millis(50), max: Duration::from_millis(200) };

/// Opens the gate of a controller for each new tenure, once its caches are as new as the tenure. Drops the objects of
/// tenures that have ended, and the records of their uncertain writes, applied states and errors. Never returns.
///
/// Mappers may have to see all objects of a kind before all keys of a slot are queued. Slots that are gained during
/// that time don't wait for it.
pub(in crate::manager) async fn serve_new_slots(
    tenures: &Tenures,
    env: &Env,
    queue: &WorkQueue<ObjectKey>,
    history: &History,
) {
    // The primaries to map to. As a set they are at most all primaries, however often slots move during a scan.
    let (left, has_more) = (Mutex::new(BTreeSet::new()), Notify::new());
    let open = open_gates(tenures, env, queue, history, |more| {
        left.lock().extend(more);
        has_more.notify_one();
    });
    let scan = async {
        loop {
            has_more.notified().await;
            let primaries = std::mem::take(&mut *left.lock());
            enqueue_by_relations(env, queue, primaries).await;
        }
    };
    tokio::join!(open, scan);
}

/// Does the work of [`serve_new_slots`], apart from the keys that other relations may queue: `left` takes these.
async fn open_gates(
    tenures: &Tenures,
    env: &Env,
    queue: &WorkQueue<ObjectKey>,
    history: &History,
    left: impl Fn(BTreeSet<ObjectKey>),
) {
    let (mut n_dropped, mut delay) = (0, FIRST_LIST_DELAY);
    loop {
        let n_changes = tenures.n_changes();
        let n_ended = tenures.n_ended();
        if n_ended != n_dropped {
            for source in env.caches() {
                source.drop_lost().await;
            }
            env.writer.uncertain_writes().retain(|key| tenures.has(key));
            env.applied.retain(|key| tenures.has(key));
            history.retain_failures(&env.spec.name, |key| tenures.has(key));
            n_dropped = n_ended;
        }
        if tenures.serving().iter().all(|tenure| env.gate.is_open(tenure)) {
            tenures.changed_since(n_changes).await;
            continue;
        }
        wait_for_more_slots(tenures, &std::mem::replace(&mut delay, LIST_DELAY)).await;
        let new: Vec<_> = tenures.serving().into_iter().filter(|tenure| !env.gate.is_open(tenure)).collect();
        let n_begun = tenures.n_begun();
        // The previous owner wrote until its tenure ended. A cache without these writes would make this replica repeat
        // them.
        env.complete().await;
        env.compare_since(n_begun).await;
        let slots: Vec<u32> = new.iter().map(|tenure| tenure.slot()).collect();
        // States of an earlier tenure no longer count, and the states of primaries that were deleted in between would
        // never be removed.
        env.applied.retain(|key| !slots.contains(&env.gate.slot(key)));
        for tenure in &new {
            env.gate.open(tenure);
        }
        let dropped = enqueue_slots(env, queue, &slots).await;
        if !dropped.is_empty() {
            left(dropped);
        }
    }
}

/// Waits for further slots that are about to be gained, because one list serves all of them.
///
/// Returns at once if this replica waits for no Lease. Otherwise it costs at most the delay after the last slot, and its
/// maximum altogether. A slot may be waited for much longer while its owner finishes its reconciles.
async fn wait_for_more_slots(tenures: &Tenures, delay: &ListDelay) {
    let limit = Instant::now() + delay.max;
    while tenures.phases().contains(&Phase::Waiting) {
        let n_begun = tenures.n_begun();
        let next = async {
            loop {
                // Read before the check, so that no change is missed.
                let n_changes = tenures.n_changes();
                if tenures.n_begun() != n_begun || !tenures.phases().contains(&Phase::Waiting) {
                    return;
                }
                tenures.changed_since(n_changes).await;
            }
        };
        if timeout_at(limit.min(Instant::now() + delay.next_slot), next).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending, sync::Arc};

    use futures::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, client::Body};
    use tokio::time::timeout;

    use super::{super::ShardConfig, *};
    use crate::{
        manager::{Manager, lease::ElectionConfig},
        reconcile::{Action, Context, Controller, Reconcile, Result},
        shard::ShardBy,
        spec::{ControllerSpec, SpecBuilder},
        store::Delta,
        writer::WritePermit,
    };

    struct Idle;

    impl Controller for Idle {
        type Primary = ConfigMap;
        type Verbs = ();

        fn spec() -> ControllerSpec {
            SpecBuilder::<Self>::new("Idle", file!(), line!()).build()
        }
    }

    impl Reconcile for Idle {
        async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
            Ok(Action::await_change())
        }
    }

    /// Returns the manager of a program with one controller and two slots, and its tenures.
    fn sharded(client: Client) -> (Manager, Arc<Tenures>) {
        let config = ShardConfig::new(ElectionConfig::new("web", "default", "a"), 2, ShardBy::Object).unwrap();
        let manager = Manager::new(client.clone(), "web", Arc::new(|_report| {})).shard(client, config);
        let mut manager = manager.unwrap();
        manager.add(Idle);
        let tenures = manager.coordinator.as_ref().unwrap().tenures().clone();
        (manager, tenures)
    }

    fn key_of(tenures: &Tenures, slot: u32) -> ObjectKey {
        let mut keys = (0..).map(|number| ObjectKey::new(Some("default"), &format!("web-{number}")));
        keys.find(|key| tenures.slots().slot_for(key) == slot).unwrap()
    }

    /// Returns a client whose requests get no response.
    fn silent_client() -> Client {
        let silent = tower::service_fn(|_request: http::Request<Body>| {
            pending::<std::result::Result<http::Response<Body>, Infallible>>()
        });
        Client::new(silent, "default")
    }

    #[tokio::test]
    async fn owned_slot_names_controllers_that_wait_for_it() {
        let (manager, tenures) = sharded(silent_client());
        let (view, env) = (manager.view(), &manager.controllers[0].env);
        let (shards, key) = (view.shards().unwrap(), key_of(&tenures, 1));
        let waits = format!("{} waits for the list of its objects.", env.spec.name);
        assert!(!shards.explain(&key).reason.contains(&waits), "another replica owns it");
        let tenure = tenures.begin(1, &WritePermit::always());
        let reason = shards.explain(&key).reason;
        assert!(reason.ends_with(&waits), "{reason}");
        env.gate.open(&tenure);
        assert!(!shards.explain(&key).reason.contains(&waits), "it works on it");
    }

    #[tokio::test]
    async fn uncertain_writes_are_forgotten_with_a_lost_slot() {
        let (manager, tenures) = sharded(silent_client());
        let controller = &manager.controllers[0];
        let (env, queue) = (&controller.env, &controller.queue);
        for slot in 0..2 {
            drop(tenures.begin(slot, &WritePermit::always()));
            env.writer.uncertain_writes().add_lost(&key_of(&tenures, slot), &env.primary);
        }
        tenures.end(0);
        assert!(serve_new_slots(&tenures, env, queue, &controller.history).now_or_never().is_none(), "it continues");
        assert_eq!(env.writer.uncertain_writes().keys(), [key_of(&tenures, 1)]);
    }

    /// The object is created again after the list, by the owner in between. It is not in the cache when its slot is gained, and
    /// only what is forgotten for keys outside of the cache is checked here.
    #[tokio::test(start_paused = true)]
    async fn applied_states_are_forgotten_with_regained_slot() {
        let empty = tower::service_fn(|_request: http::Request<Body>| {
            let list = br#"{"metadata":{"resourceVersion":"10"},"items":[]}"#;
            std::future::ready(Ok::<_, Infallible>(http::Response::new(Body::from(list.to_vec()))))
        });
        let (manager, tenures) = sharded(Client::new(empty, "default"));
        let controller = &manager.controllers[0];
        let (env, queue) = (&controller.env, &controller.queue);
        tokio::spawn(env.primary.store().clone().write());
        env.primary.store().push_and_wait(Delta::Replace(None, Vec::new(), "10".into())).await;
        for slot in 0..2 {
            env.gate.open(&tenures.begin(slot, &WritePermit::always()));
            env.applied.add(&key_of(&tenures, slot), env.primary.config());
        }
        // Both happen before the loop below looks.
        tenures.end(0);
        let regained = tenures.begin(0, &WritePermit::always());
        let served = timeout(Duration::from_secs(1), serve_new_slots(&tenures, env, queue, &controller.history)).await;
        assert!(served.is_err() && env.gate.is_open(&regained), "it continues");
        assert_eq!(env.applied.primaries(), [key_of(&tenures, 1)]);
    }
}
