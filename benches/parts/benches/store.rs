//! Measures how objects are stored in the cache and read from it: `cargo bench -p parts --bench store`.
//!
//! Decoding, updating and reading are measured separately. Objects are stored as compact JSON and decoded at the first
//! read. The decode cache keeps recently read objects.

use std::sync::Arc;

use divan::{Bencher, black_box, counter::ItemsCount};
use k8s_openapi::api::core::v1::Pod;
use kctl_runtime::{
    key::{Key, ObjectKey},
    object::{Kind, Stored},
    store::{Delta, SharedStore, Store},
};
use tokio::runtime;

/// Number of Pods in the store.
const PODS: usize = 10_000;
/// Number of Pods per owner.
const OWNED: usize = 10;

fn main() {
    divan::main();
}

/// Returns a Pod as an API server sends it: about 3 kB of JSON, and another 3 kB of `managedFields`.
fn pod(n: usize, version: usize) -> String {
    let owner = n / OWNED;
    let fields = r#""f:name":{},"f:image":{},"f:resources":{".":{},"f:requests":{".":{},"f:cpu":{}}},"#.repeat(30);
    let env: Vec<_> = (0..30)
        .map(|i| format!(r#"{{"name":"VARIABLE_{i}","value":"the value of variable {i}, in words"}}"#))
        .collect();
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-{n}","namespace":"ns-{}","uid":"{n:036}","resourceVersion":"{version}","labels":{{"app":"web-{owner}"}},"ownerReferences":[{{"apiVersion":"apps.example.com/v1","kind":"PodSet","name":"set-{owner}","uid":"set-{owner}","controller":true}}],"managedFields":[{{"manager":"a","fieldsV1":{{{}"x":{{}}}}}}]}},"spec":{{"nodeName":"node-{}","containers":[{{"name":"web","image":"nginx","env":[{}]}}]}},"status":{{"phase":"Running","conditions":[{{"type":"Ready","status":"True"}}]}}}}"#,
        n % 10,
        fields,
        n % 100,
        env.join(",")
    )
}

/// Returns a Pod in the form in which the cache holds it.
fn stored(n: usize, version: usize) -> Arc<Stored> {
    Arc::new(Stored::accept(&Kind::of::<Pod>(), &pod(n, version)).unwrap())
}

/// A user-defined index.
///
/// It takes the typed Pod, so the store has to decode each state for it.
fn by_node(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

/// A filled store, its typed view, and the runtime of its writer task.
struct World {
    /// Runs the store's writer task while the benchmark waits for it.
    runtime: runtime::Runtime,
    /// The untyped store, which the benchmark writes to.
    shared: Arc<SharedStore>,
    /// The typed view, as a controller reads it.
    pods: Store<Pod>,
}

/// Creates a store of 10,000 Pods with an index, in addition to the built-in ones by owner and namespace.
///
/// Objects arrive as the result of a list, as in a program.
fn world() -> World {
    let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let shared = Arc::new(SharedStore::default());
    let pods: Store<Pod> = Store::new(shared.clone());
    pods.add_index(by_node);
    runtime.spawn(shared.clone().write());
    runtime.block_on(async {
        let all = (0..PODS).map(|n| stored(n, n + 1)).collect();
        shared.push_and_wait(Delta::Replace(None, all, PODS.to_string())).await;
    });
    World { runtime, shared, pods }
}

/// Converts bytes to the stored form: parsed metadata, and JSON without `managedFields`.
#[divan::bench]
fn accept(bencher: Bencher<'_, '_>) {
    let (kind, json) = (Kind::of::<Pod>(), pod(1, 1));
    bencher.counter(divan::counter::BytesCount::of_str(&json)).bench_local(|| Stored::accept(&kind, &json).unwrap());
}

/// Updates known objects without decoding: the cost of indexes, and of the round trip to the writer task.
///
/// The benchmark keeps references to the old states, so that freeing their decoded forms does not count.
#[divan::bench]
fn update(bencher: Bencher<'_, '_>) {
    // All of them fit into the decode cache, because a real update is applied right after it has been decoded.
    const UPDATES: usize = 50;
    let world = world();
    let mut version = PODS;
    bencher
        .counter(ItemsCount::new(UPDATES))
        .with_inputs(|| {
            version += UPDATES;
            (0..UPDATES)
                .map(|n| {
                    let update = stored(n * 7 % PODS, version + n);
                    // Decoded for the index here, outside of the measured part.
                    update.decode::<Pod>().unwrap();
                    let old = world.shared.get(update.key()).unwrap();
                    (update, old)
                })
                .unzip::<_, _, Vec<_>, Vec<_>>()
        })
        .bench_local_values(|(updates, old)| {
            world.runtime.block_on(async {
                let last = updates.len() - 1;
                for (n, update) in updates.into_iter().enumerate() {
                    if n == last {
                        world.shared.push_and_wait(Delta::Apply(update)).await;
                    } else {
                        world.shared.push(Delta::Apply(update)).await;
                    }
                }
            });
            old
        });
}

/// Reads an object that is in the decode cache.
///
/// The store returns an `Arc` of the decoded object, so nothing is copied.
#[divan::bench]
fn get(bencher: Bencher<'_, '_>) {
    let world = world();
    let key = Key::<Pod>::namespaced("ns-3", "web-123");
    assert!(world.pods.get(&key).is_some());
    bencher.bench_local(|| world.pods.get(black_box(&key)));
}

/// Finds the ten Pods of an owner among 10,000: the lookup behind `cx.owned::<Pod>()`.
#[divan::bench]
fn owned_by(bencher: Bencher<'_, '_>) {
    let world = world();
    let set = "set-7".into();
    assert_eq!(world.shared.owned_by(&set).len(), OWNED);
    bencher.counter(ItemsCount::new(OWNED)).bench_local(|| world.shared.owned_by(black_box(&set)));
}

/// Finds the hundred Pods of a node among 10,000, with the user-defined index.
///
/// Iterating decodes each Pod that is not in the decode cache.
#[divan::bench]
fn by_index(bencher: Bencher<'_, '_>) {
    let world = world();
    let n = world.pods.by_index(by_node, "node-7").count();
    bencher.counter(ItemsCount::new(n)).bench_local(|| world.pods.by_index(by_node, black_box("node-7")).count());
}

/// Looks up an object without decoding it. Metadata such as owners and labels are already parsed.
#[divan::bench]
fn meta_of_one(bencher: Bencher<'_, '_>) {
    let world = world();
    let key = ObjectKey::new(Some("ns-3"), "web-123");
    bencher.bench_local(|| world.shared.get(black_box(&key)));
}
