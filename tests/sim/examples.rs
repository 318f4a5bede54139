//! Each example controller survives single faults and combinations of faults: up to 24 of each, and 200 every night.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use config_restarter::InMemoryRegistry;
use kctl::{
    json,
    kube::{
        Api, Client,
        api::{DynamicObject, Patch, PatchParams},
        core::{ApiResource, GroupVersionKind},
    },
    prelude::*,
    testing::{Scenario, Sim, Snapshot},
};
use kctl_runtime::{
    key::ObjectKey,
    shard::{ShardBy, Slots},
};

#[path = "../../examples/quickstart/src/main.rs"]
#[expect(dead_code, unreachable_pub, clippy::default_trait_access, reason = "only the app of this program is used")]
mod quickstart;

/// Patches an object in the default namespace.
async fn patch(client: Client, kind: &str, name: &str, change: kctl::Json) -> Result<()> {
    let (group, version) = if kind == "ConfigMap" { ("", "v1") } else { ("apps.example.com", "v1") };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let objects = Api::<DynamicObject>::default_namespaced_with(client, &resource);
    objects.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
    Ok(())
}

/// Returns `true` for a Pod with the condition `Ready` that is not being deleted.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut ready = conditions.into_iter().flatten().filter(|condition| condition.type_ == "Ready");
    pod.metadata.deletion_timestamp.is_none() && ready.any(|condition| condition.status == "True")
}

/// Returns the rule that all desired Pods of each object of this kind are ready, and that these fields of its status say
/// so. The Pods of an object have its name as their label `app`.
fn all_are_ready(
    plural: &'static str,
    fields: &'static [&'static str],
) -> impl Fn(&Snapshot) -> Result<(), String> + Send + Sync {
    move |snapshot| {
        let pods = snapshot.all::<Pod>();
        let mut objects = snapshot.json("apps.example.com", plural).peekable();
        objects.peek().ok_or("no object")?;
        for object in objects {
            let (name, wanted, status) = (&object["metadata"]["name"], &object["spec"]["replicas"], &object["status"]);
            let own = pods.iter().filter(|pod| pod.labels().get("app").is_some_and(|app| name == app.as_str()));
            let n_ready = own.filter(|pod| is_ready(pod)).count();
            if json!(n_ready) != *wanted || fields.iter().any(|field| status[field] != *wanted) {
                return Err(format!("{name}: {n_ready} of {wanted} Pods are ready, status {status}"));
            }
        }
        Ok(())
    }
}

/// Names of objects in the default namespace, each in another of the four slots of a sharded scenario.
const NAMES: [&str; 4] = ["web", "db", "shop", "cache"];

/// Returns the objects of an example once for each of [`NAMES`], with two Pods each.
fn for_each_name(objects: &str) -> String {
    NAMES.map(|name| objects.replace("web", name).replace("replicas: 3", "replicas: 2")).join("---\n")
}

const QUICKSTART: &str = include_str!("../../examples/quickstart/web.yaml");

fn quickstart_with(objects: &str) -> Scenario {
    Scenario::new(quickstart::app).objects(objects).settled("all Pods are ready", all_are_ready("podsets", &["ready"]))
}

fn quickstart() -> Scenario {
    quickstart_with(QUICKSTART)
}

const PODSET: &str = include_str!("../../examples/podset/web.yaml");

fn podset_with(objects: &str) -> Scenario {
    Scenario::new(podset::app)
        .objects(objects)
        .settled("all Pods are ready", all_are_ready("podsets", &["replicas", "readyReplicas"]))
}

fn podset() -> Scenario {
    podset_with(PODSET)
}

/// Scales all sets of [`NAMES`].
fn all_scaled(scenario: Scenario) -> Scenario {
    let scale = |client: Client, replicas: i32| async move {
        for name in NAMES {
            patch(client.clone(), "PodSet", name, json!({ "spec": { "replicas": replicas } })).await?;
        }
        Ok(())
    };
    scenario.step("scale to 1", move |client| scale(client, 1)).step_at(
        Duration::from_millis(500),
        "scale to 2 in between",
        move |client| scale(client, 2),
    )
}

fn scaled(scenario: Scenario) -> Scenario {
    scenario.step("scale to 1", |client| patch(client, "PodSet", "web", json!({ "spec": { "replicas": 1 } }))).step_at(
        Duration::from_millis(500),
        "scale to 2 in between",
        |client| patch(client, "PodSet", "web", json!({ "spec": { "replicas": 2 } })),
    )
}

#[kctl::test(seeds = 24)]
fn quickstart_survives_simulated_faults() -> Scenario {
    scaled(quickstart())
}

/// Names of faults in a report's counts.
const KINDS: [&str; 15] = [
    "conflict",
    "connection reset",
    "crash",
    "event repeated",
    "events held",
    "gone",
    "half response",
    "outdated list",
    "rejected",
    "slow response",
    "stale read",
    "state skipped",
    "too many requests",
    "watch closed",
    "watch expired",
];
/// Number of runs with single faults for one set of two Pods without user actions.
const SINGLES: std::ops::RangeInclusive<usize> = 100..=1_000;

/// Injects each possible fault into each request and each event, and restarts the program after each write with each
/// older state. A third Pod would add faults of the same kinds at the same places of the program.
#[test]
fn quickstart_survives_each_single_fault_there_is() {
    let objects = QUICKSTART.replace("replicas: 3", "replicas: 2");
    assert_ne!(objects, QUICKSTART);
    let report = Sim::single_faults().run(&quickstart_with(&objects)).unwrap();
    if let Some(failure) = report.failure() {
        panic!("{failure}");
    }
    assert!(SINGLES.contains(&report.runs()), "{} runs", report.runs());
    let injected: Vec<_> = report.injected_by_kind().keys().copied().collect();
    assert_eq!(injected, KINDS);
}

/// Three replicas elect a leader, and no other one writes: under crashes, freezes, partitions, late writes, and clock jumps
/// of single replicas.
#[kctl::test(seeds = 16)]
fn three_candidates_survive_simulated_faults() -> Scenario {
    scaled(quickstart()).instances(3)
}

/// Three replicas share the `PodSet`s: each has one owner at a time, whatever fails. Each slot has one of them.
#[test]
fn sharded_podset_survives_simulated_faults() {
    sharded(all_scaled(podset_with(&for_each_name(PODSET))));
}

#[test]
fn names_are_in_different_slots() {
    let slots = Slots::new(4, ShardBy::Object);
    let used: BTreeSet<u32> = NAMES.map(|name| slots.slot_for(&ObjectKey::new(Some("default"), name))).into();
    assert_eq!(used, slots.all().collect());
}

/// Runs a scenario with three replicas that share the keys and 16 seeds. `KCTL_SEEDS=200` runs more.
///
/// The run without faults, one single fault and one seed are executed twice. Other tests repeat more runs, and theirs cost
/// less: these renew eight Leases.
fn sharded(scenario: Scenario) {
    let report = Sim::from_env(16).unwrap().twice(1).run(&scenario.instances(3).sharded()).unwrap();
    if let Some(failure) = report.failure() {
        panic!("{failure}");
    }
    let (fault_free, n_runs) = (2, report.runs());
    assert!(report.injected() > 0 || n_runs == fault_free, "no fault hit anything in {n_runs} runs");
}

/// In this seed all replicas are replaced after a crash, so the slot of the crashed one counts as held for longer than a
/// state needs to settle. A run that ended before another replica took the slot missed its key.
#[test]
fn run_waits_for_owner_of_each_slot() {
    let report = Sim::seeded(125).run(&scaled(podset()).instances(3).sharded()).unwrap();
    if let Some(failure) = report.failure() {
        panic!("{failure}");
    }
    assert!(report.injected() > 0);
}

#[kctl::test(seeds = 24)]
fn podset_survives_simulated_faults() -> Scenario {
    scaled(podset())
}

/// Fewer seeds, because the requests for a Lease more than double the cost of simulated time.
#[kctl::test(seeds = 12)]
fn two_podset_processes_survive_simulated_faults() -> Scenario {
    scaled(podset()).instances(2)
}

thread_local! {
    /// The registry outlives a crash of the program. Each run has a separate thread.
    static REGISTRY: Arc<InMemoryRegistry> = Arc::default();
    /// The hash that Pods had for each data of the ConfigMap.
    static HASHES: RefCell<BTreeMap<String, String>> = RefCell::default();
}

/// Checks that all Pods have the hash of the current data, which no other data has, and that it is registered.
fn all_have_the_newest_data(snapshot: &Snapshot) -> Result<(), String> {
    let mut policies = snapshot.json("apps.example.com", "restartpolicies").peekable();
    policies.peek().ok_or("no RestartPolicy")?;
    policies.try_for_each(|policy| has_the_newest_data(snapshot, policy))
}

fn has_the_newest_data(snapshot: &Snapshot, policy: &kctl::Json) -> Result<(), String> {
    let name = policy["metadata"]["name"].as_str().ok_or("no name")?;
    let config = snapshot.get::<ConfigMap>("default", &format!("{name}-config")).ok_or("no ConfigMap")?;
    let registered = policy["status"]["registeredHash"].as_str().ok_or("nothing is registered")?;
    for pod in snapshot.all::<Pod>().iter().filter(|pod| pod.labels().get("app").is_some_and(|app| app == name)) {
        let hash = pod.annotations().get("apps.example.com/config-hash").cloned().unwrap_or_default();
        if hash != registered {
            return Err(format!("{} has the hash {hash}, and {registered} is registered", pod.name_any()));
        }
    }
    HASHES.with_borrow_mut(|hashes| {
        hashes.insert(format!("{:?}", config.data), registered.to_owned());
        let other = hashes.values().filter(|hash| *hash == registered).nth(1);
        other.map_or(Ok(()), |hash| Err(format!("{hash} is the hash of older data as well: {hashes:?}")))
    })
}

const RESTARTER: &str = include_str!("../../examples/config-restarter/web.yaml");

/// Changes the data of `NAME-config` for each name.
fn restarter_with(objects: &str, names: &'static [&'static str]) -> Scenario {
    Scenario::new(|| config_restarter::app(REGISTRY.with(Arc::clone)))
        .objects(objects)
        .settled("all Pods are ready", all_are_ready("restartpolicies", &["ready", "updated"]))
        .settled("all Pods have the newest data", all_have_the_newest_data)
        .step("change the data", move |client| async move {
            for name in names {
                let change = json!({ "data": { "GREETING": "good morning" } });
                patch(client.clone(), "ConfigMap", &format!("{name}-config"), change).await?;
            }
            Ok(())
        })
}

fn restarter() -> Scenario {
    restarter_with(RESTARTER, &["web"])
}

#[kctl::test(seeds = 24)]
fn config_restarter_survives_simulated_faults() -> Scenario {
    restarter()
}

/// Three replicas share the restarters. Each slot has one of them.
#[test]
fn sharded_config_restarter_survives_simulated_faults() {
    sharded(restarter_with(&for_each_name(RESTARTER), &NAMES));
}
