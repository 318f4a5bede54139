//! Each example controller survives single faults and combinations of faults: up to 24 of each, and 200 every night.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

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

/// Returns the rule that all desired Pods of the only object of this kind are ready, and that these fields of its status
/// say so.
fn all_are_ready(
    plural: &'static str,
    fields: &'static [&'static str],
) -> impl Fn(&Snapshot) -> Result<(), String> + Send + Sync {
    move |snapshot| {
        let Some(object) = snapshot.json("apps.example.com", plural).next() else { return Err("no object".into()) };
        let (wanted, status) = (&object["spec"]["replicas"], &object["status"]);
        let n_ready = snapshot.all::<Pod>().into_iter().filter(is_ready).count();
        let is_reached = json!(n_ready) == *wanted && fields.iter().all(|field| status[field] == *wanted);
        if is_reached { Ok(()) } else { Err(format!("{n_ready} of {wanted} Pods are ready, status {status}")) }
    }
}

const QUICKSTART: &str = include_str!("../../examples/quickstart/web.yaml");

fn quickstart_with(objects: &str) -> Scenario {
    Scenario::new(quickstart::app).objects(objects).settled("all Pods are ready", all_are_ready("podsets", &["ready"]))
}

fn quickstart() -> Scenario {
    quickstart_with(QUICKSTART)
}

fn podset() -> Scenario {
    Scenario::new(podset::app)
        .objects(include_str!("../../examples/podset/web.yaml"))
        .settled("all Pods are ready", all_are_ready("podsets", &["replicas", "readyReplicas"]))
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

/// Three replicas share the `PodSet`s: each has one owner at a time, whatever fails.
#[test]
fn sharded_podset_survives_simulated_faults() {
    sharded(scaled(podset()));
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
    let config = snapshot.get::<ConfigMap>("default", "web-config").ok_or("no ConfigMap")?;
    let policy = snapshot.json("apps.example.com", "restartpolicies").next().ok_or("no RestartPolicy")?;
    let registered = policy["status"]["registeredHash"].as_str().ok_or("nothing is registered")?;
    for pod in snapshot.all::<Pod>() {
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

fn restarter() -> Scenario {
    Scenario::new(|| config_restarter::app(REGISTRY.with(Arc::clone)))
        .objects(include_str!("../../examples/config-restarter/web.yaml"))
        .settled("all Pods are ready", all_are_ready("restartpolicies", &["ready", "updated"]))
        .settled("all Pods have the newest data", all_have_the_newest_data)
        .step("change the data", |client| {
            patch(client, "ConfigMap", "web-config", json!({ "data": { "GREETING": "good morning" } }))
        })
}

#[kctl::test(seeds = 24)]
fn config_restarter_survives_simulated_faults() -> Scenario {
    restarter()
}

/// Three replicas share the restarters.
#[test]
fn sharded_config_restarter_survives_simulated_faults() {
    sharded(restarter());
}
