//! Apps and steps that never come to an end: loops without a wait, tasks that outlive their process, endless steps.

use std::sync::atomic::{AtomicBool, Ordering};

use kctl::{
    prelude::*,
    testing::{Scenario, Sim},
};

/// Adds the object that all scenarios have.
fn with_a(scenario: Scenario) -> Scenario {
    scenario.objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
}

#[controller]
async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Set for each loop once it is found, so that its abandoned thread ends and leaves the processor to other tests.
static LOOPS_FOUND: AtomicBool = AtomicBool::new(false);
static POLLS_FOUND: AtomicBool = AtomicBool::new(false);
static STEP_FOUND: AtomicBool = AtomicBool::new(false);

/// Loops without waiting for anything.
#[controller]
async fn loops(_config: Arc<ConfigMap>, _cx: Context<loops>) -> Result<Action> {
    while !LOOPS_FOUND.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok(Action::await_change())
}

/// Lets other tasks run, but needs no time and no request.
#[controller]
async fn polls(_config: Arc<ConfigMap>, _cx: Context<polls>) -> Result<Action> {
    while !POLLS_FOUND.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    Ok(Action::await_change())
}

/// Simulated time does not advance in either loop, so a limit of real time ends the run.
#[test]
fn loop_that_never_waits_is_found() {
    let in_step = Scenario::new(|| App::new("idler").controller::<idles>()).step("loop", |_| async {
        while !STEP_FOUND.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
        Ok(())
    });
    let cases = [
        ("configmap default/a in app-0.1", Scenario::new(|| App::new("loops").controller::<loops>()), &LOOPS_FOUND),
        ("configmap default/a in app-0.1", Scenario::new(|| App::new("polls").controller::<polls>()), &POLLS_FOUND),
        ("code outside of a reconcile (a task of the app, a step or a rule)", in_step, &STEP_FOUND),
    ];
    for (busy, scenario, is_found) in cases {
        let report = Sim::seeds(0..1).run(&with_a(scenario).stuck_after(3)).unwrap();
        is_found.store(true, Ordering::Relaxed);
        let failure = report.failure().expect("nothing is found");
        assert_eq!((failure.checker(), failure.seed()), ("the app yields", "none"), "{failure}");
        let message = "has run for 3 s of real time without a request or a finished wait; a loop needs an end";
        assert!(failure.message().starts_with(&format!("{busy} {message}")), "{failure}");
        assert!(failure.to_string().contains("app-0.1  starts"), "the timeline until then: {failure}");
    }
}

/// Starts a task that works concurrently with its reconciles, and that nothing ends.
fn spawns() -> App {
    App::new("spawner").controller_with(|_env| async {
        tokio::spawn(work_for_ever());
        Ok(Idles)
    })
}

async fn work_for_ever() {
    loop {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

#[controller(of = ConfigMap)]
struct Idles;

impl Reconcile for Idles {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

#[test]
fn task_that_outlives_its_process_is_found() {
    let scenario = with_a(Scenario::new(spawns));
    let report = Sim::seeds(0..1).run(&scenario).unwrap();
    let failure = report.failure().expect("nothing is found");
    assert_eq!((failure.checker(), failure.seed()), ("tasks end with their process", "none"), "{failure}");
    let message = "1 task still runs after all processes have ended: await what `tokio::spawn` starts";
    assert!(failure.message().starts_with(message), "{failure}");
    let report = Sim::seeds(0..2).run(&scenario.allowing_spawned_tasks()).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}

/// A task that ends within the reconcile, or soon after it, is fine.
#[test]
fn task_that_ends_is_not_a_finding() {
    let app = || {
        App::new("spawner").controller_with(|_env| async {
            tokio::spawn(tokio::time::sleep(Duration::from_secs(30)));
            Ok(Idles)
        })
    };
    let report = Sim::seeds(0..2).run(&with_a(Scenario::new(app))).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}

/// Fails for each object.
#[controller]
async fn fails(_config: Arc<ConfigMap>, _cx: Context<fails>) -> Result<Action> {
    Err("no disk".into())
}

#[test]
fn endless_step_names_failing_keys() {
    let scenario = Scenario::new(|| App::new("failing").controller::<fails>());
    let waits = scenario.step_at(Duration::from_secs(1), "wait", |_| std::future::pending());
    let report = Sim::seeds(0..1).run(&with_a(waits)).unwrap();
    let failure = report.failure().expect("nothing is found");
    assert_eq!(failure.checker(), "the steps of the scenario", "{failure}");
    let (start, end) = ("wait: it has not ended after 3600s of simulated time; configmap default/a failed ", "no disk");
    assert!(failure.message().starts_with(start) && failure.message().ends_with(end), "{failure}");
}
