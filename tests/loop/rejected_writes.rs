//! Writes that are always rejected: another owner has the name, or a child is never in the expected state.

use kctl::{
    kube::{Api, api::PostParams},
    prelude::*,
};
use kctl_tests::Fault;
use parking_lot::Mutex;

use crate::world::{World, advance_seconds, app};

const HOUR: u64 = 3_600;
/// Attempts in an hour after conflicts, whose shortest delay is a second: nine in the first eight seconds, then with delays
/// that double up to a thousand seconds.
const N_CONFLICTS: usize = 21;
/// Attempts in an hour after an ordinary error, whose first delay is 5 ms.
const N_FAILURES: usize = 21;

/// Creates a Secret named after each `ConfigMap`, without checking whether it exists.
#[controller(owns = Secret(create))]
async fn wants(config: Arc<ConfigMap>, cx: Context<wants>) -> Result<Action> {
    let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
    cx.owned::<Secret>().create(Secret { metadata, ..Secret::default() }).await?;
    Ok(Action::await_change())
}

#[tokio::test(start_paused = true)]
async fn child_rejected_for_ever_is_retried_with_backoff() {
    for (rejected_as_conflict, expected) in [(false, N_FAILURES), (true, N_CONFLICTS)] {
        let mut world = World::new();
        let metadata = ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() };
        let theirs = Secret { metadata, ..Secret::default() };
        Api::default_namespaced(world.client.clone()).create(&PostParams::default(), &theirs).await.unwrap();
        let requests = Arc::new(Mutex::new(0));
        let counted = requests.clone();
        let is_create = move |request: &kctl_tests::RequestSummary| {
            let is_create = request.method == "POST" && request.path.ends_with("/secrets");
            *counted.lock() += usize::from(is_create);
            is_create && rejected_as_conflict
        };
        world.faults.add(Fault::Reject(409), is_create);
        world.set("a", "1").await;
        world.run(app().controller::<wants>()).await;
        advance_seconds(HOUR).await;
        let n_requests = *requests.lock();
        assert_eq!(n_requests, expected, "conflict: {rejected_as_conflict}");
        // A change may remove the cause, so it ends the wait.
        world.set("a", "2").await;
        advance_seconds(1).await;
        assert!(*requests.lock() > n_requests, "a change of the object is tried at once");
        // The backoff has started again from its first delay.
        advance_seconds(9).await;
        let again = *requests.lock() - n_requests;
        assert!((8..=12).contains(&again), "its backoff starts again: {again}");
    }
}
