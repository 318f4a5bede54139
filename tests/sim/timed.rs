//! Controllers that act at a given time: correct ones pass, and the bugs of their broken twins are found.

use std::collections::{BTreeMap, BTreeSet};

use kctl::{
    k8s::api::batch::v1::Job,
    kube::{
        Api,
        api::{Patch, PatchParams},
    },
    prelude::*,
    testing::{Failure, Scenario, Sim, Snapshot},
};
use parking_lot::Mutex;

/// Something that is deleted after a time.
#[resource(group = "sim.example.com", version = "v1", kind = "Session", namespaced)]
pub(crate) struct SessionSpec {
    pub ttl_seconds: u32,
}

fn time_left(session: &Session, now: kctl::k8s::jiff::Timestamp) -> Duration {
    let created = session.creation_timestamp().map_or(now, |created| created.0);
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    Duration::from_secs(session.spec.ttl_seconds.into()).saturating_sub(age)
}

/// Deletes an expired session, and requeues any other until it expires.
#[controller(primary(delete))]
async fn expires(session: Arc<Session>, cx: Context<expires>) -> Result<Action> {
    let left = time_left(&session, cx.now());
    if left.is_zero() {
        cx.delete().await?;
        return Ok(Action::await_change());
    }
    Ok(Action::requeue(left))
}

/// Does not requeue a session that has not expired.
#[controller(primary(delete))]
async fn forgets(session: Arc<Session>, cx: Context<forgets>) -> Result<Action> {
    if time_left(&session, cx.now()).is_zero() {
        cx.delete().await?;
    }
    Ok(Action::await_change())
}

/// Deletes a session 50 minutes too early.
#[controller(primary(delete))]
async fn hurries(session: Arc<Session>, cx: Context<hurries>) -> Result<Action> {
    let left = time_left(&session, cx.now()).saturating_sub(Duration::from_secs(3_000));
    if left.is_zero() {
        cx.delete().await?;
        return Ok(Action::await_change());
    }
    Ok(Action::requeue(left))
}

const SESSION: &str = "
apiVersion: sim.example.com/v1
kind: Session
metadata: { name: login }
spec: { ttlSeconds: 3600 }
";

fn sessions(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(SESSION)
        .without_clock_faults()
        .waiting_for_requeues(Duration::from_secs(3_700))
        .invariant("not before its time", |snapshot: &Snapshot| {
            // `creationTimestamp` has whole seconds, so a session may seem up to one second older than it is.
            let is_early = snapshot.all::<Session>().is_empty() && snapshot.time() < Duration::from_secs(3_599);
            if is_early { Err(format!("it is gone after {:?}", snapshot.time())) } else { Ok(()) }
        })
        .settled("all have expired", |snapshot: &Snapshot| match snapshot.all::<Session>().len() {
            0 => Ok(()),
            n => Err(format!("{n} are left")),
        })
}

/// Does something each minute.
#[resource(group = "sim.example.com", version = "v1", kind = "Schedule", namespaced, status = "ScheduleStatus")]
pub(crate) struct ScheduleSpec {
    pub history: usize,
}

#[schema]
#[derive(PartialEq, Eq)]
pub(crate) struct ScheduleStatus {
    pub last_minute: i64,
}

const SCHEDULE: &str = "
apiVersion: sim.example.com/v1
kind: Schedule
metadata: { name: backup }
spec: { history: 2 }
";

/// Label of a Job with its minute.
const MINUTE: &str = "minute";

/// Returns the current minute and the time until the next one.
fn minute(now: kctl::k8s::jiff::Timestamp) -> (i64, Duration) {
    let millis = u64::try_from(60_000 - now.as_millisecond().rem_euclid(60_000)).unwrap_or_default();
    (now.as_second().div_euclid(60), Duration::from_millis(millis))
}

fn job(named: kctl::Json, minute: i64) -> Result<Job> {
    let mut metadata = named;
    metadata["labels"] = kctl::json!({ MINUTE: minute.to_string() });
    let containers = kctl::json!([{ "name": "backup", "image": "example.com/backup" }]);
    let template = kctl::json!({ "spec": { "restartPolicy": "Never", "containers": containers } });
    Ok(kctl::from_json(kctl::json!({ "metadata": metadata, "spec": { "template": template } }))?)
}

fn is_due(schedule: &Schedule, minute: i64) -> bool {
    schedule.status.as_ref().is_none_or(|status| status.last_minute < minute)
}

/// Creates a Job each minute with a name derived from the minute, and keeps the newest Jobs.
#[controller(owns = Job(create, delete))]
async fn schedules(schedule: Arc<Schedule>, cx: Context<schedules>) -> Result<Action> {
    let (minute, left) = minute(cx.now());
    let jobs = cx.owned::<Job>();
    if is_due(&schedule, minute) {
        let name = format!("{}-{minute}", schedule.name_any());
        jobs.create(job(kctl::json!({ "name": name }), minute)?).or_get().await?;
        cx.patch_status(ScheduleStatus { last_minute: minute }).await?;
    }
    let known: BTreeMap<_, _> = jobs.iter().map(|job| (job.name_any(), job)).collect();
    let n_old = known.len().saturating_sub(schedule.spec.history);
    for job in known.values().take(n_old) {
        jobs.delete(job).await?;
    }
    Ok(Action::requeue(left))
}

/// Uses generated names: a crash between the two writes creates two Jobs for one minute.
#[controller(owns = Job(create, delete))]
async fn schedules_twice(schedule: Arc<Schedule>, cx: Context<schedules_twice>) -> Result<Action> {
    let (minute, left) = minute(cx.now());
    let jobs = cx.owned::<Job>();
    if is_due(&schedule, minute) {
        let named = kctl::json!({ "generateName": format!("{}-", schedule.name_any()) });
        jobs.create(job(named, minute)?).await?;
        cx.patch_status(ScheduleStatus { last_minute: minute }).await?;
    }
    Ok(Action::requeue(left))
}

/// Does not requeue at the start of the next minute.
#[controller(owns = Job(create, delete))]
async fn schedules_once(schedule: Arc<Schedule>, cx: Context<schedules_once>) -> Result<Action> {
    let (minute, _left) = minute(cx.now());
    if is_due(&schedule, minute) {
        let name = format!("{}-{minute}", schedule.name_any());
        cx.owned::<Job>().create(job(kctl::json!({ "name": name }), minute)?).or_get().await?;
        cx.patch_status(ScheduleStatus { last_minute: minute }).await?;
    }
    Ok(Action::await_change())
}

fn minutes(snapshot: &Snapshot) -> Vec<i64> {
    let jobs = snapshot.all::<Job>();
    jobs.iter().filter_map(|job| job.labels().get(MINUTE)?.parse().ok()).collect()
}

fn one_a_minute(snapshot: &Snapshot) -> Result<(), String> {
    let minutes = minutes(snapshot);
    let different: BTreeSet<_> = minutes.iter().collect();
    if different.len() == minutes.len() { Ok(()) } else { Err(format!("{minutes:?}")) }
}

fn newest_is_of_now(snapshot: &Snapshot) -> Result<(), String> {
    // At the start of a minute its Job may not exist yet.
    let (due, _left) = minute(snapshot.now() - kctl::k8s::jiff::SignedDuration::from_secs(30));
    match minutes(snapshot).into_iter().max() {
        Some(newest) if newest >= due => Ok(()),
        newest => Err(format!("{newest:?} instead of {due}")),
    }
}

fn backups(app: fn() -> App) -> Scenario {
    Scenario::new(app)
        .objects(SCHEDULE)
        .without_clock_faults()
        .waiting_for_requeues(Duration::from_secs(300))
        .depending_on_time("jobs")
        .depending_on_time("schedules/status")
        .invariant("one Job a minute", one_a_minute)
        .settled("the newest Job is of now", newest_is_of_now)
}

fn find(scenario: &Scenario, seeds: u64) -> Option<Failure> {
    Sim::seeds(0..seeds).run(scenario).unwrap().failure().cloned()
}

#[test]
fn correct_ttl_and_schedule_controllers_pass() {
    let scenarios = [
        sessions(|| App::new("sessions").controller::<expires>()),
        backups(|| App::new("backups").controller::<schedules>()),
        backups(|| App::new("backups").controller::<schedules>()).instances(2),
    ];
    for (scenario, seeds) in scenarios.iter().zip([8, 8, 1]) {
        if let Some(failure) = find(scenario, seeds) {
            panic!("{failure}");
        }
    }
}

#[test]
fn broken_ttl_and_schedule_controllers_are_found() {
    let cases = [
        ("all have expired", sessions(|| App::new("sessions").controller::<forgets>())),
        ("not before its time", sessions(|| App::new("sessions").controller::<hurries>())),
        ("one Job a minute", backups(|| App::new("backups").controller::<schedules_twice>())),
        ("the newest Job is of now", backups(|| App::new("backups").controller::<schedules_once>())),
    ];
    for (checker, scenario) in cases {
        let failure = find(&scenario, 12).unwrap_or_else(|| panic!("{checker}: nothing is found"));
        assert_eq!(failure.checker(), checker, "{failure}");
    }
}

#[test]
fn settled_rule_that_fails_names_the_pending_requeue() {
    let scenario = sessions(|| App::new("sessions").controller::<expires>()).waiting_for_requeues(Duration::ZERO);
    let failure = find(&scenario, 1).unwrap();
    assert_eq!(failure.checker(), "all have expired", "{failure}");
    let message = failure.message();
    let (begin, end) =
        ("1 are left; session default/login asked to be reconciled again in 3", "waits for what that does");
    assert!(message.starts_with(begin) && message.ends_with(end), "{message}");
}

/// Remembers copied objects in memory, and never copies later changes.
#[controller(of = ConfigMap, primary(patch))]
struct CopiesOnce(Mutex<BTreeSet<String>>);

impl Reconcile for CopiesOnce {
    async fn reconcile(&self, config: Arc<ConfigMap>, cx: Context<Self>) -> Result<Action> {
        let is_copied = self.0.lock().contains(&config.name_any());
        if !is_copied {
            let version = config.data.as_ref().and_then(|data| data.get("version"));
            cx.patch(kctl::json!({ "metadata": { "annotations": { "copied": version } } })).await?;
            self.0.lock().insert(config.name_any());
        }
        Ok(Action::await_change())
    }
}

#[test]
fn wrong_run_without_faults_is_named() {
    let app = || App::new("copies").controller_with(|_env| std::future::ready(Ok(CopiesOnce(Mutex::default()))));
    let scenario = Scenario::new(app)
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {version: v1}}")
        .step("set v2", |client| async move {
            let change = Patch::Merge(kctl::json!({ "data": { "version": "v2" } }));
            Api::<ConfigMap>::default_namespaced(client).patch("a", &PatchParams::default(), &change).await?;
            Ok(())
        });
    let failure = Sim::seeds(0..64).run(&scenario).unwrap().failure().cloned().unwrap();
    assert_eq!(failure.checker(), "the same final state", "{failure}");
    let message = failure.message();
    assert!(message.contains(r#"is "v2" with these faults, and "v1" without"#), "{message}");
    assert!(message.contains("the run without faults is the wrong one"), "{message}");
}
