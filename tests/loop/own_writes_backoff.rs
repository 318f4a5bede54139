//! Own writes of a failing reconcile: they neither end its backoff nor restart its retries, and changes by others do.

use kctl::{
    ApiError,
    kube::api::{Patch, PatchParams},
    prelude::*,
};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    deployments_controller::controlled_by,
    world::{World, advance_seconds, app, pod},
};

/// The write that a reconcile makes before it fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Writes {
    Nothing,
    Status,
    /// After ten seconds, in which another client can change something.
    StatusLate,
    Annotation,
    Specification,
    NewPod,
    LabelOfPod,
    DeletesPod,
}

/// The way in which a reconcile fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fails {
    Usually,
    Terminally,
    InConflict,
    /// Fails late, so that another client can change something before.
    AfterAMinute,
    /// Fails late, and not terminally.
    AfterAMinuteUsually,
}

/// The times at which runs began.
type Runs = Arc<Mutex<Vec<Instant>>>;

/// Writes and fails in every reconcile.
#[controller(of = Deployment, owns = Pod, primary(status, patch), retries = 3)]
struct Hopeless {
    writes: Writes,
    fails: Fails,
    runs: Runs,
}

impl Reconcile for Hopeless {
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: Context<Self>) -> Result<Action> {
        let run = self.runs.lock().len();
        self.runs.lock().push(Instant::now());
        let pods = cx.owned::<Pod>();
        let first = pods.iter().next();
        match (self.writes, first) {
            (Writes::Nothing, _) => {}
            (Writes::Status | Writes::StatusLate, _) => {
                let late = Duration::from_secs(if self.writes == Writes::StatusLate { 10 } else { 0 });
                tokio::time::sleep(late).await;
                let replicas = Some(i32::try_from(run)? + 1);
                cx.patch_status(kctl::k8s::api::apps::v1::DeploymentStatus { replicas, ..Default::default() }).await?;
            }
            (Writes::Annotation, _) => {
                cx.patch(kctl::json!({ "metadata": { "annotations": { "run": run.to_string() } } })).await?;
            }
            (Writes::Specification, _) => {
                cx.patch(kctl::json!({ "spec": { "replicas": run + 10 } })).await?;
            }
            (Writes::LabelOfPod, Some(pod)) => {
                pods.patch(&pod, kctl::json!({ "metadata": { "labels": { "run": run.to_string() } } })).await?;
            }
            (Writes::DeletesPod, Some(pod)) => pods.delete(&pod).await?,
            (Writes::NewPod | Writes::LabelOfPod | Writes::DeletesPod, _) => {
                let _new = pods.create(pod(&format!("{}-{run}", deployment.name_any()))).await?;
            }
        }
        match self.fails {
            Fails::Usually => Err("no".into()),
            Fails::Terminally => Err::<Action, _>("no").terminal(),
            Fails::InConflict => {
                let status = r#"{"reason":"Conflict","message":"the object has been modified"}"#;
                Err(ApiError::rejected("update Deployment default/web", 409, None, status).into())
            }
            Fails::AfterAMinute => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Err::<Action, _>("no").terminal()
            }
            Fails::AfterAMinuteUsually => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                Err("no".into())
            }
        }
    }
}

async fn start(world: &mut World, writes: Writes, fails: Fails) -> Runs {
    let runs = Runs::default();
    let counted = runs.clone();
    let hopeless = move |_env| std::future::ready(Ok(Hopeless { writes, fails, runs: counted.clone() }));
    world.run(app().controller_with(hopeless)).await;
    runs
}

const WRITES: [Writes; 7] = [
    Writes::Nothing,
    Writes::Status,
    Writes::Annotation,
    Writes::Specification,
    Writes::NewPod,
    Writes::LabelOfPod,
    Writes::DeletesPod,
];

/// Returns the times of the runs, counted from the first.
async fn times(writes: Writes, fails: Fails) -> Vec<Duration> {
    let mut world = World::new();
    world.create_deployment("web").await;
    let runs = start(&mut world, writes, fails).await;
    advance_seconds(600).await;
    let runs = runs.lock();
    runs.iter().map(|run| run.duration_since(runs[0])).collect()
}

async fn n_runs(writes: Writes, fails: Fails) -> usize {
    times(writes, fails).await.len()
}

#[tokio::test(start_paused = true)]
async fn failing_key_with_own_writes_keeps_its_backoff() {
    for writes in WRITES {
        let times = times(writes, Fails::Usually).await;
        let waits: Vec<Duration> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        assert!(waits.iter().zip([5, 10, 20]).all(|(wait, least)| wait.as_millis() >= least), "{writes:?}: {waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_key_with_own_writes_exhausts_its_retries() {
    for (fails, expected) in [(Fails::Usually, 4), (Fails::Terminally, 1), (Fails::AfterAMinute, 1)] {
        for writes in WRITES {
            assert_eq!(n_runs(writes, fails).await, expected, "{writes:?}, {fails:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_back_off_after_any_earlier_writes() {
    let least = n_runs(Writes::Nothing, Fails::InConflict).await;
    for writes in WRITES {
        assert_eq!(n_runs(writes, Fails::InConflict).await, least, "{writes:?}");
    }
}

/// Changes an object as another client would.
async fn change(world: &World, what: &str) {
    let params = PatchParams::default();
    match what {
        "the status" => {
            let status = Patch::Merge(kctl::json!({ "status": { "replicas": 70 } }));
            drop(world.deployments().patch_status("web", &params, &status).await.unwrap());
        }
        "an annotation" => {
            world.patch_deployment("web", kctl::json!({ "metadata": { "annotations": { "poke": "now" } } })).await;
        }
        "the specification" => world.patch_deployment("web", kctl::json!({ "spec": { "replicas": 7 } })).await,
        _ => {
            let label = Patch::Merge(kctl::json!({ "metadata": { "labels": { "color": "red" } } }));
            drop(world.pods().patch("its-pod", &params, &label).await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn foreign_change_restarts_exhausted_retries() {
    for writes in [Writes::Nothing, Writes::Status, Writes::LabelOfPod] {
        for what in ["the status", "an annotation", "the specification", "the pod"] {
            // The failing reconcile runs from 0 to 60 s.
            for at in [30, 90] {
                let mut world = World::new();
                let deployment = world.create_deployment("web").await;
                world.create_pod_of("its-pod", &[controlled_by(&deployment)]).await;
                let runs = start(&mut world, writes, Fails::AfterAMinute).await;
                advance_seconds(at).await;
                assert_eq!(runs.lock().len(), 1);
                change(&world, what).await;
                advance_seconds(600).await;
                assert_eq!(runs.lock().len(), 2, "{writes:?}, {what} after {at} s");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_old_spec_do_not_count() {
    for writes in [Writes::Nothing, Writes::Annotation] {
        let mut world = World::new();
        world.create_deployment("web").await;
        let runs = start(&mut world, writes, Fails::AfterAMinuteUsually).await;
        advance_seconds(30).await;
        change(&world, "the specification").await;
        advance_seconds(600).await;
        // The run of the old spec, then one and three retries for the new one.
        assert_eq!(runs.lock().len(), 5, "{writes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn own_status_write_hides_no_annotation_by_others() {
    let mut world = World::new();
    world.create_deployment("web").await;
    let runs = start(&mut world, Writes::StatusLate, Fails::Terminally).await;
    advance_seconds(5).await;
    assert_eq!(runs.lock().len(), 1);
    // The response to the write brings the annotation into the cache, before the watch does.
    world.stop_reads("deployments");
    change(&world, "an annotation").await;
    advance_seconds(10).await;
    world.faults.clear();
    advance_seconds(600).await;
    assert_eq!(runs.lock().len(), 2);
}
