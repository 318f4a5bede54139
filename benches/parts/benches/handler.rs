//! Measures how a change gets from the store to the work queue: `cargo bench -p parts --bench handler`.
//!
//! The handler runs in the store's writer task, so its cost delays all events of the kind. The keys of the measured
//! change are already queued, so the work queue only counts them.

use std::sync::Arc;

use divan::{Bencher, black_box, counter::ItemsCount};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kctl_runtime::{
    handler,
    key::{Key, ObjectKey},
    object::{Kind, Stored},
    queue::{QueueConfig, WorkQueue},
    reconcile::Controller,
    spec::{ControllerSpec, Relation, SpecBuilder},
    store::{Change, Handler, SharedStore, Store},
};
use tokio::runtime;

/// Number of keys that one change is mapped to, as for a Secret that many objects use.
const FAN_OUT: usize = 100;

fn main() {
    divan::main();
}

/// A controller with an owned and a watched kind.
///
/// It never runs. The benchmarks only use its declaration and its mappers.
struct Configs;

impl Controller for Configs {
    type Primary = ConfigMap;
    type Verbs = ();

    fn spec() -> ControllerSpec {
        SpecBuilder::<Self>::new("Configs", file!(), line!())
            .relation(Relation::<Self, Pod>::owned("Pod"))
            .relation(Relation::<Self, Secret>::watched("Secret").map(of_secret))
            .build()
    }
}

/// Maps a Secret to [`FAN_OUT`] keys.
fn of_secret(_secret: &Secret, _configs: &Store<ConfigMap>) -> Vec<Key<ConfigMap>> {
    (0..FAN_OUT).map(|n| Key::namespaced("default", &format!("config-{n}"))).collect()
}

/// Returns an owned object at a given `resourceVersion`.
fn stored(kind: &Kind, version: usize) -> Arc<Stored> {
    let json = format!(
        r#"{{"metadata":{{"name":"a","namespace":"default","uid":"1","resourceVersion":"{version}","ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap","name":"config-1","uid":"2","controller":true}}]}}}}"#
    );
    Arc::new(Stored::accept(kind, &json).unwrap())
}

/// Returns the handler of a relation, the queue that it fills, and a change.
///
/// `index` is the index of the relation in the declaration of [`Configs`].
fn world(index: usize) -> (Handler, WorkQueue<ObjectKey>, Change<Stored>) {
    let (spec, queue) = (Configs::spec(), WorkQueue::new(QueueConfig::default()));
    let relation = &spec.relations[index];
    let handler =
        handler::for_relation(index + 1, relation, &spec.primary, Arc::new(SharedStore::default()), queue.clone());
    let change = Change::Updated { old: stored(&relation.kind, 1), new: stored(&relation.kind, 2) };
    (handler, queue, change)
}

/// Measures a change whose keys are already queued, as in a burst of changes.
fn again(bencher: Bencher<'_, '_>, index: usize, n_keys: usize) {
    let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _entered = runtime.enter();
    let (handler, queue, change) = world(index);
    handler(&change, kctl_runtime::store::Origin::Live);
    assert_eq!(queue.len(), n_keys);
    bencher
        .counter(ItemsCount::new(n_keys))
        .bench_local(|| handler(black_box(&change), kctl_runtime::store::Origin::Live));
}

/// An owned object is mapped to one key, the key of its owner.
#[divan::bench]
fn owner(bencher: Bencher<'_, '_>) {
    again(bencher, 0, 1);
}

/// A mapper returns a hundred keys, for both the old and the new state.
///
/// The mapper runs twice per update, because a key that only the old state maps to also has to be reconciled.
#[divan::bench]
fn fan_out(bencher: Bencher<'_, '_>) {
    again(bencher, 1, FAN_OUT);
}
