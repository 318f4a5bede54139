//! Each checker of a whole run finds what it is for: controllers that are nothing but their fault.

use kctl::{
    prelude::*,
    testing::{Scenario, Sim, Snapshot},
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Writes again and again, so far apart.
#[controller(of = ConfigMap, primary(patch))]
struct Ticks {
    every: Duration,
    last: Mutex<Option<Instant>>,
}

impl Reconcile for Ticks {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let is_due = self.last.lock().is_none_or(|last| last.elapsed() >= self.every);
        if is_due {
            *self.last.lock() = Some(Instant::now());
            let n = config.annotations().get("n").and_then(|n| n.parse::<u32>().ok()).unwrap_or_default();
            cx.patch(kctl::json!({ "metadata": { "annotations": { "n": (n + 1).to_string() } } })).await?;
        }
        Ok(Action::requeue(self.every))
    }
}

fn ticks(every: Duration) -> App {
    App::new("ticks").controller_with(move |_env| std::future::ready(Ok(Ticks { every, last: Mutex::default() })))
}

/// Makes something that belongs to nobody, and never takes it away.
#[controller(reads = Secret(create))]
async fn leaves(config: Arc<ConfigMap>, cx: Context<leaves>) -> Result<Action> {
    let name = Some(config.name_any());
    let metadata = ObjectMeta { name, namespace: config.namespace(), ..ObjectMeta::default() };
    if cx.store::<Secret>().is_empty() {
        cx.objects::<Secret>().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

/// Asks the API server for the same again and again.
#[controller(primary(get))]
async fn asks(_config: Arc<ConfigMap>, cx: Context<asks>) -> Result<Action> {
    for _ in 0..400 {
        cx.get().await?;
    }
    Ok(Action::await_change())
}

/// Sends requests without an end.
#[controller(primary(get))]
async fn rages(_config: Arc<ConfigMap>, cx: Context<rages>) -> Result<Action> {
    loop {
        cx.get().await?;
    }
}

/// Sends the same again and again: the server accepts it, and nothing changes.
#[controller(primary(patch))]
async fn repeats(_config: Arc<ConfigMap>, cx: Context<repeats>) -> Result<Action> {
    cx.patch(kctl::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    Ok(Action::requeue(Duration::from_secs(100)))
}

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

/// The same as `leaves` on another cluster.
#[controller(reads = Secret(create, on = Edge))]
async fn leaves_there(config: Arc<ConfigMap>, cx: Context<leaves_there>) -> Result<Action> {
    let metadata = ObjectMeta { name: Some(config.name_any()), namespace: config.namespace(), ..ObjectMeta::default() };
    let there = cx.cluster(Edge);
    if there.store::<Secret>().is_empty() {
        there.objects::<Secret>().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

fn with_edge() -> App {
    // The simulator has its own clients.
    App::new("leaver").controller::<leaves_there>().cluster(Edge::NAME, || async { Err("not connected".into()) })
}

#[controller]
async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
    Ok(Action::await_change())
}

fn no_secret_there(snapshot: &Snapshot) -> Result<(), String> {
    let (here, there) = (snapshot.all::<Secret>(), snapshot.on("edge").all::<Secret>());
    assert!(here.is_empty(), "it is not made here");
    there.first().map_or(Ok(()), |secret| Err(secret.name_any()))
}

#[test]
fn report_of_a_needless_write_names_who_wrote_what() {
    let scenario = Scenario::new(|| App::new("repeater").controller::<repeats>());
    let report = Sim::seeds(0..0).run(&scenario.objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"));
    let message = report.unwrap().failure().unwrap().message().to_owned();
    let names = "first app-0.1, configmap default/a: patch configmaps default/a, which changes nothing";
    assert!(message.contains(names), "{message}");
}

#[test]
fn report_of_a_leak_names_the_cluster() {
    let scenario = Scenario::new(with_edge).objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    let report = Sim::seeds(0..0).run(&scenario).unwrap();
    let message = report.failure().unwrap().message();
    assert_eq!(message, "still there after the end of all primaries: secrets default/a on edge");
}

#[test]
fn each_checker_of_a_run_finds_what_it_is_for() {
    let idler = || Scenario::new(|| App::new("idler").controller::<idles>());
    let cases = [
        ("the state settles", Scenario::new(|| ticks(Duration::from_secs(10)))),
        ("no more writes", Scenario::new(|| ticks(Duration::from_secs(100)))),
        ("no leaked objects", Scenario::new(|| App::new("leaver").controller::<leaves>())),
        ("no more writes", Scenario::new(|| App::new("repeater").controller::<repeats>())),
        ("no leaked objects", Scenario::new(with_edge)),
        ("no secret there", Scenario::new(with_edge).invariant("no secret there", no_secret_there)),
        ("bounded requests per change", Scenario::new(|| App::new("asker").controller::<asks>())),
        ("no hot loop", Scenario::new(|| App::new("rager").controller::<rages>())),
        ("no panic", idler().invariant("a rule", |_: &Snapshot| panic!("a rule that is wrong itself"))),
        ("a rule", idler().invariant("a rule", |_: &Snapshot| Err("always".into()))),
        ("the steps of the scenario", idler().step("try", |_| async { Err("it does not work".into()) })),
    ];
    for (checker, scenario) in cases {
        let scenario = scenario.objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
        let report = Sim::single_faults().run(&scenario).unwrap();
        let failure = report.failure().unwrap_or_else(|| panic!("{checker}: nothing is found"));
        assert_eq!((failure.checker(), failure.seed()), (checker, "none"), "{failure}");
    }
}
