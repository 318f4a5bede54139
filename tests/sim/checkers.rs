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

#[controller]
async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
    Ok(Action::await_change())
}

#[test]
fn each_checker_of_a_run_finds_what_it_is_for() {
    let idler = || Scenario::new(|| App::new("idler").controller::<idles>());
    let cases = [
        ("the state settles", Scenario::new(|| ticks(Duration::from_secs(10)))),
        ("no more writes", Scenario::new(|| ticks(Duration::from_secs(100)))),
        ("no leaked objects", Scenario::new(|| App::new("leaver").controller::<leaves>())),
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
