//! Each checker of the simulator finds its kind of bug, in controllers that have only that bug.

use kctl::{
    k8s::api::{coordination::v1::Lease, core::v1::PersistentVolumeClaim, rbac::v1::PolicyRule},
    kube::{
        Api, Client, Resource,
        api::{Patch, PatchParams, PostParams},
    },
    prelude::*,
    testing::{Scenario, Sim, Snapshot},
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Patches its object at this interval.
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

/// Creates an object without an owner, and never deletes it.
#[controller(reads = Secret(create))]
async fn leaves(config: Arc<ConfigMap>, cx: Context<leaves>) -> Result<Action> {
    let name = Some(config.name_any());
    let metadata = ObjectMeta { name, namespace: config.namespace(), ..ObjectMeta::default() };
    if cx.store::<Secret>().is_empty() {
        cx.objects::<Secret>().create(&Secret { metadata, ..Secret::default() }).await?;
    }
    Ok(Action::await_change())
}

/// Creates an object of an owned kind without an owner reference.
#[controller(owns = Secret, rbac(making()))]
async fn disowns(config: Arc<ConfigMap>, cx: Context<disowns>) -> Result<Action> {
    let secrets = Api::<Secret>::namespaced(cx.client(), &config.namespace().unwrap_or_default());
    let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
    secrets.create(&PostParams::default(), &Secret { metadata, ..Secret::default() }).await?;
    Ok(Action::await_change())
}

fn making() -> PolicyRule {
    let [groups, resources, verbs] = ["", "secrets", "create"].map(|one| vec![one.to_owned()]);
    PolicyRule { api_groups: Some(groups), resources: Some(resources), verbs, ..PolicyRule::default() }
}

/// Requeues after 100 ms although nothing is left to do.
#[controller]
async fn spins(_config: Arc<ConfigMap>, _cx: Context<spins>) -> Result<Action> {
    Ok(Action::requeue(Duration::from_millis(100)))
}

/// Requeues without delay.
#[controller]
async fn restarts(_config: Arc<ConfigMap>, _cx: Context<restarts>) -> Result<Action> {
    Ok(Action::requeue(Duration::ZERO))
}

/// Patches its object in an endless loop.
#[controller(primary(patch))]
async fn floods(_config: Arc<ConfigMap>, cx: Context<floods>) -> Result<Action> {
    for n in 0_u64.. {
        cx.patch(kctl::json!({ "metadata": { "annotations": { "n": n.to_string() } } })).await?;
    }
    Ok(Action::await_change())
}

/// Reads its object from the API server hundreds of times.
#[controller(primary(get))]
async fn asks(_config: Arc<ConfigMap>, cx: Context<asks>) -> Result<Action> {
    for _ in 0..400 {
        cx.get().await?;
    }
    Ok(Action::await_change())
}

/// Reads its object from the API server in an endless loop.
#[controller(primary(get))]
async fn rages(_config: Arc<ConfigMap>, cx: Context<rages>) -> Result<Action> {
    loop {
        cx.get().await?;
    }
}

/// Sends the same patch in each reconcile, which changes nothing.
#[controller(primary(patch))]
async fn repeats(_config: Arc<ConfigMap>, cx: Context<repeats>) -> Result<Action> {
    cx.patch(kctl::json!({ "metadata": { "labels": { "seen": "yes" } } })).await?;
    Ok(Action::requeue(Duration::from_secs(100)))
}

/// Sends an invalid patch in each reconcile, and ignores its error.
#[controller(primary(patch))]
async fn ignores(_config: Arc<ConfigMap>, cx: Context<ignores>) -> Result<Action> {
    let _ignored = cx.patch(kctl::json!({ "metadata": { "labels": { "not a label": "yes" } } })).await;
    Ok(Action::requeue(Duration::from_secs(100)))
}

/// A kind with an observed generation.
mod shop {
    use kctl::prelude::*;

    /// A door that is painted.
    #[resource(group = "shop.example.com", version = "v1", kind = "Door", namespaced, status = "DoorStatus")]
    pub(crate) struct DoorSpec {
        pub color: String,
    }

    /// The color of a door.
    #[schema]
    #[derive(Default)]
    pub(crate) struct DoorStatus {
        #[serde(default)]
        pub color: String,
        #[serde(default)]
        pub observed_generation: Option<i64>,
    }
}

/// Paints a door, and writes the generation only with its first color.
#[controller]
async fn paints(door: Arc<shop::Door>, cx: Context<paints>) -> Result<Action> {
    let before = door.status.clone().unwrap_or_default();
    let observed_generation = before.observed_generation.or(door.metadata.generation);
    cx.patch_status(shop::DoorStatus { color: door.spec.color.clone(), observed_generation }).await?;
    Ok(Action::await_change())
}

/// A kind with the plural of the Leases of leader election.
mod gym {
    use kctl::prelude::*;

    /// A locker of a gym.
    #[resource(group = "gym.example.com", version = "v1", kind = "Lease", namespaced)]
    pub(crate) struct LeaseSpec {
        pub locker: u32,
    }
}

/// Rents a locker, and never returns it.
#[controller(reads = gym::Lease(create))]
async fn rents(config: Arc<ConfigMap>, cx: Context<rents>) -> Result<Action> {
    if cx.store::<gym::Lease>().is_empty() {
        let mut lease = gym::Lease::new(&config.name_any(), gym::LeaseSpec { locker: 7 });
        lease.metadata.namespace = config.namespace();
        cx.objects::<gym::Lease>().create(&lease).await?;
    }
    Ok(Action::await_change())
}

/// Takes a separate Lease, in addition to the Leases of the app's processes, and never deletes it.
#[controller(reads = Lease(create))]
async fn locks(config: Arc<ConfigMap>, cx: Context<locks>) -> Result<Action> {
    if cx.store::<Lease>().is_empty() {
        let metadata =
            ObjectMeta { name: Some(config.name_any()), namespace: config.namespace(), ..ObjectMeta::default() };
        cx.objects::<Lease>().create(&Lease { metadata, ..Lease::default() }).await?;
    }
    Ok(Action::await_change())
}

struct Edge;
impl Cluster for Edge {
    const NAME: &'static str = "edge";
}

/// Does the same as [`leaves`] on another cluster.
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
    // The simulator replaces this client by its own.
    App::new("leaver").controller::<leaves_there>().cluster(Edge::NAME, || async { Err("not connected".into()) })
}

#[controller]
async fn idles(_config: Arc<ConfigMap>, _cx: Context<idles>) -> Result<Action> {
    Ok(Action::await_change())
}

/// Panics on the main task of the program, outside of a reconcile.
fn panics() -> App {
    App::new("idler").controller_with(|_env| async { no_disk() })
}

fn no_disk() -> Result<idles> {
    panic!("no disk")
}

/// Does not start.
fn starts_without_disk() -> App {
    App::new("idler").controller_with(|_env| std::future::ready(Err::<idles, _>("no disk".into())))
}

/// Fails for each object.
#[controller]
async fn fails(_config: Arc<ConfigMap>, _cx: Context<fails>) -> Result<Action> {
    Err("no disk".into())
}

/// Fails for each object, and is not called again.
#[controller]
async fn rejects(_config: Arc<ConfigMap>, _cx: Context<rejects>) -> Result<Action> {
    Err("no disk").terminal()
}

/// Panics for each object.
#[controller]
async fn drops(config: Arc<ConfigMap>, _cx: Context<drops>) -> Result<Action> {
    assert!(config.metadata.name.is_none(), "a vase");
    Ok(Action::await_change())
}

/// Waits forever.
#[controller]
async fn hangs(_config: Arc<ConfigMap>, _cx: Context<hangs>) -> Result<Action> {
    std::future::pending().await
}

fn no_secret_there(snapshot: &Snapshot) -> Result<(), String> {
    let (here, there) = (snapshot.all::<Secret>(), snapshot.on("edge").all::<Secret>());
    assert!(here.is_empty(), "it is not made here");
    there.first().map_or(Ok(()), |secret| Err(secret.name_any()))
}

/// Start of the message about reconciles that change nothing.
const SIXTY: &str = "configmap reconciles default/a 60 times within 10s although nothing changed; the last time:";

/// The author of a change in a report: process, controller and key.
const BY: &str = "app-0.1, configmap default/a";

#[test]
fn each_checker_reports_its_bug_and_author() {
    let idler = || Scenario::new(|| App::new("idler").controller::<idles>());
    let at_once = "200 changes of configmaps default/a at one moment by";
    let (every, more) =
        ("600 requests within 10s although nothing changed, the last one:", "although nothing was left to do");
    let needless = format!("{more}, first {BY}: patch configmaps default/a, which changes nothing");
    let cases = [
        (
            "the state settles",
            format!(", last configmaps default/a by {BY}"),
            Scenario::new(|| ticks(Duration::from_secs(10))),
        ),
        (
            "no more writes",
            format!("{more}, first {BY}: patch configmaps default/a"),
            Scenario::new(|| ticks(Duration::from_secs(100))),
        ),
        ("no more writes", needless, Scenario::new(|| App::new("repeater").controller::<repeats>())),
        (
            "no more writes",
            format!("{more}, first {BY}: patch configmaps default/a, answered 422"),
            Scenario::new(|| App::new("ignorer").controller::<ignores>()),
        ),
        ("no secret there", "a".into(), Scenario::new(with_edge).invariant("no secret there", no_secret_there)),
        (
            "no write on objects that are not owned",
            format!("{BY}: creates secrets default/a, but it has no owner references"),
            Scenario::new(|| App::new("disowner").controller::<disowns>()),
        ),
        (
            "bounded requests per change",
            "more than 30 for each; 400 of them get configmaps, by configmap".into(),
            Scenario::new(|| App::new("asker").controller::<asks>()),
        ),
        (
            "no hot loop",
            format!("{every} {BY}: get configmaps default/a"),
            Scenario::new(|| App::new("rager").controller::<rages>()),
        ),
        (
            "no hot loop",
            format!("{SIXTY} done, requeue after 100ms"),
            Scenario::new(|| App::new("spinner").controller::<spins>()),
        ),
        ("no hot loop", format!("{at_once} {BY}"), Scenario::new(|| App::new("flooder").controller::<floods>())),
        (
            "no panic",
            "a rule that is wrong itself".into(),
            idler().invariant("a rule", |_: &Snapshot| panic!("a rule that is wrong itself")),
        ),
        ("a rule", "always".into(), idler().invariant("a rule", |_: &Snapshot| Err("always".into()))),
        (
            "the steps of the scenario",
            "try: it does not work".into(),
            idler().step("try", |_| async { Err("it does not work".into()) }),
        ),
    ];
    for (checker, message, scenario) in cases {
        check(checker, &message, scenario);
    }
}

#[test]
fn leaked_objects_are_reported_with_their_author() {
    let cases = [
        ("secrets default/a", Scenario::new(|| App::new("leaver").controller::<leaves>())),
        ("leases default/a", Scenario::new(|| App::new("renter").controller::<rents>())),
        ("leases default/a", Scenario::new(|| App::new("locker").controller::<locks>())),
        ("secrets default/a on edge", Scenario::new(with_edge)),
    ];
    for (object, scenario) in cases {
        let message = format!("still there after everything that users created was deleted: {object} (made by {BY})");
        check("no leaked objects", &message, scenario);
    }
}

/// The invariant panics within a request of the app.
#[test]
fn invariant_panicking_on_app_write_is_found() {
    let fits_no_secret = |snapshot: &Snapshot| {
        assert!(snapshot.all::<Secret>().is_empty(), "a rule that fits no secret");
        Ok(())
    };
    let leaver = Scenario::new(|| App::new("leaver").controller::<leaves>());
    let message = r#"invariant "about secrets": a rule that fits no secret"#;
    check("no panic", message, leaver.invariant("about secrets", fits_no_secret));
}

fn has_a_secret(snapshot: &Snapshot) -> Result<(), String> {
    if snapshot.all::<Secret>().is_empty() { Err("no secret".into()) } else { Ok(()) }
}

/// A rule that something never happens gets no such advice.
#[test]
fn goal_as_invariant_gets_advice() {
    let scenario = with_a(Scenario::new(|| App::new("keeper").controller::<keeps>()));
    let never = |snapshot: &Snapshot| match has_a_secret(snapshot) {
        Ok(()) => Err("a secret".to_owned()),
        Err(_) => Ok(()),
    };
    let cases = [
        (scenario.clone().invariant("a secret", has_a_secret), true),
        (scenario.clone().invariant("no secret", never), false),
        (scenario.settled("no secret", never), false),
    ];
    for (scenario, has_advice) in cases {
        let report = Sim::seeds(0..1).run(&scenario).unwrap();
        let text = report.failure().unwrap().to_string();
        assert_eq!(
            text.contains("help: the app has not changed anything yet: a rule about a goal"),
            has_advice,
            "{text}"
        );
    }
}

#[test]
fn panicking_settled_rule_is_named() {
    let idler = Scenario::new(|| App::new("idler").controller::<idles>());
    let panics = idler.settled("a goal", |_: &Snapshot| panic!("a goal that is wrong itself"));
    check("no panic", r#"rule "a goal": a goal that is wrong itself"#, panics);
}

#[test]
fn panicking_reconcile_is_found_with_its_place() {
    let report = Sim::seeds(0..1).run(&with_a(Scenario::new(|| App::new("panics").controller::<drops>()))).unwrap();
    let failure = report.failure().expect("nothing is found");
    assert_eq!(failure.checker(), "the app works");
    let message = "the last time: panic: a vase at tests/sim/checkers.rs:";
    assert!(failure.message().contains(message), "{failure}");
}

/// `Sim::run` returns an error, because each run would panic.
#[test]
fn panicking_app_function_is_named() {
    let scenario = Scenario::new(|| panic!("no configuration"));
    let error = Sim::seeds(0..1).run(&with_a(scenario)).unwrap_err().to_string();
    let start = "no panic: the function of `.app(…)`: no configuration at tests/sim/checkers.rs:";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn panic_on_app_main_task_is_found() {
    check("no panic", "a task of the app or of the simulator: no disk", Scenario::new(panics));
}

#[test]
fn app_that_does_not_work_is_found() {
    type NewApp = fn() -> App;
    let failed = "configmap default/a failed";
    let cases: [(&str, &str, NewApp); 3] = [
        ("app-0 is not up: app-0.", " has ended: no disk", starts_without_disk),
        (failed, " times in a row, the last time: failed: no disk", || App::new("failing").controller::<fails>()),
        (failed, " and is not tried again: failed: no disk", || App::new("rejects").controller::<rejects>()),
    ];
    for (begin, end, app) in cases {
        check("the app works", end, Scenario::new(app));
        let report = Sim::seeds(0..1).run(&with_a(Scenario::new(app))).unwrap();
        let message = report.failure().unwrap().message();
        assert!(message.starts_with(begin), "{message:?} does not begin with {begin:?}");
    }
    let report = Sim::seeds(0..1).run(&with_a(Scenario::new(|| App::new("hangs").controller::<hangs>()))).unwrap();
    let failure = report.failure().unwrap();
    assert!(failure.message().starts_with("configmap default/a is being reconciled for "), "{failure}");
}

#[test]
fn allowed_failure_never_excuses_failed_start() {
    let cases: [(bool, fn() -> App); 3] = [
        (false, || App::new("failing").controller::<fails>()),
        (false, || App::new("rejects").controller::<rejects>()),
        (true, starts_without_disk),
    ];
    for (is_found, app) in cases {
        let report = Sim::seeds(0..2).run(&with_a(Scenario::new(app).allowing_failures())).unwrap();
        assert_eq!(report.failure().is_some(), is_found, "{:?}", report.failure().map(ToString::to_string));
    }
}

/// Adds the object that all scenarios have.
fn with_a(scenario: Scenario) -> Scenario {
    scenario.objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
}

/// Checks that a scenario fails without any faults, in this checker and with a message that ends with this text.
fn check(checker: &str, message: &str, scenario: Scenario) {
    let report = Sim::single_faults().run(&with_a(scenario)).unwrap();
    let failure = report.failure().unwrap_or_else(|| panic!("{checker}: nothing is found"));
    assert_eq!((failure.checker(), failure.seed()), (checker, "none"), "{failure}");
    let found = match checker {
        // The place of a panic changes with this file.
        "no panic" => failure.message().rsplit_once(" at tests/sim/checkers.rs:").expect("it names the place").0,
        _ => failure.message(),
    };
    assert!(found.ends_with(message), "{message:?} is not the end of {found:?}");
}

#[test]
fn unknown_resource_of_option_is_rejected() {
    let new = || with_a(Scenario::new(|| App::new("keeper").controller::<keeps>()));
    let none = "the API server has no such resource; write";
    let unknown = format!("{none} the plural of a kind that the app or a CRD of `.objects(…)` defines");
    let cases = [
        (new().keeping("ConfigMap"), format!(r#"keeping("ConfigMap"): {none} "configmaps""#)),
        (new().keeping("sitess"), format!(r#"keeping("sitess"): {unknown}"#)),
        (new().depending_on_time("job/status"), format!(r#"depending_on_time("job/status"): {none} "jobs/status""#)),
    ];
    for (scenario, expected) in cases {
        assert_eq!(Sim::seeds(0..1).run(&scenario).unwrap_err().to_string(), expected);
    }
    Sim::seeds(0..1).run(&new().keeping("persistentvolumeclaims").depending_on_time("jobs/status")).unwrap();
}

/// Keeps one Secret for each `ConfigMap`.
#[controller(owns = Secret(create))]
async fn keeps(config: Arc<ConfigMap>, cx: Context<keeps>) -> Result<Action> {
    let secrets = cx.owned::<Secret>();
    if secrets.is_empty() {
        let metadata = ObjectMeta { name: Some(config.name_any()), ..ObjectMeta::default() };
        secrets.create(Secret { metadata, ..Secret::default() }).or_get().await?;
    }
    Ok(Action::await_change())
}

async fn create_b(client: Client) -> Result<()> {
    let metadata = ObjectMeta { name: Some("b".into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    Api::default_namespaced(client).create(&PostParams::default(), &config).await?;
    Ok(())
}

#[test]
fn built_in_primary_of_a_step_is_deleted() {
    let scenario = Scenario::new(|| App::new("keeper").controller::<keeps>()).step("create b", create_b);
    let secrets = |snapshot: &Snapshot| match snapshot.all::<Secret>().len() {
        2 => Ok(()),
        n => Err(format!("{n} secrets")),
    };
    let report = Sim::seeds(0..2).run(&with_a(scenario.clone())).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    check("two secrets", "1 secrets", scenario.settled("two secrets", secrets));
}

#[test]
fn expectation_is_checked_at_its_place() {
    let new = || with_a(Scenario::new(|| App::new("keeper").controller::<keeps>()));
    let has = |n: usize| {
        move |snapshot: &Snapshot| match snapshot.all::<Secret>().len() {
            found if found == n => Ok(()),
            found => Err(format!("{found} secrets")),
        }
    };
    let fits = new().expect("one secret", has(1)).step("create b", create_b).expect("two secrets", has(2));
    let report = Sim::seeds(0..4).run(&fits).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    let report = Sim::seeds(0..1).run(&new().step("create b", create_b).expect("one secret", has(1))).unwrap();
    let failure = report.failure().expect("there are two by then");
    assert_eq!((failure.checker(), failure.message(), failure.seed()), ("one secret", "2 secrets", "none"));
}

/// Never lets an object go.
#[controller(of = ConfigMap, primary(patch), finalizer = "checkers.example.com/held")]
struct Holds;

impl Reconcile for Holds {
    async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
        Ok(Action::await_change())
    }
}

impl Finalize for Holds {
    async fn finalize(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
        Err("no disk".into())
    }
}

#[test]
fn built_in_primary_with_a_finalizer_is_found() {
    let held = r#"configmaps default/a (being deleted, held by the finalizers ["checkers.example.com/held"])"#;
    let app = || App::new("holder").controller_with(|_env| std::future::ready(Ok(Holds)));
    check("no leaked objects", held, Scenario::new(app));
}

/// Adds a finalizer without declaring it, and never removes it.
#[controller(primary(patch))]
async fn keeps_back(config: Arc<ConfigMap>, cx: Context<keeps_back>) -> Result<Action> {
    if config.finalizers().is_empty() {
        cx.patch(kctl::json!({ "metadata": { "finalizers": ["checkers.example.com/back"] } })).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn undeclared_finalizer_that_remains_is_found() {
    let held = r#"configmaps default/a (being deleted, held by the finalizers ["checkers.example.com/back"])"#;
    check("no leaked objects", held, Scenario::new(|| App::new("keeper").controller::<keeps_back>()));
}

#[test]
fn stale_observed_generation_is_found() {
    let scenario = Scenario::new(|| App::new("painter").controller::<paints>())
        .objects("{apiVersion: shop.example.com/v1, kind: Door, metadata: {name: front}, spec: {color: red}}")
        .step("paint it blue", |client| async move {
            let blue = Patch::Merge(kctl::json!({ "spec": { "color": "blue" } }));
            Api::<shop::Door>::default_namespaced(client).patch("front", &PatchParams::default(), &blue).await?;
            Ok(())
        });
    let report = Sim::seeds(0..1).run(&scenario).unwrap();
    let failure = report.failure().expect("nothing is found");
    assert_eq!((failure.checker(), failure.seed()), ("the newest generation is observed", "none"), "{failure}");
    let message = "status.observedGeneration of doors default/front is 1, and its generation 2; ";
    assert!(failure.message().starts_with(message), "{failure}");
    let left_out =
        [scenario.clone().ignoring("/status/observedGeneration"), scenario.depending_on_time("doors/status")];
    for scenario in left_out {
        let report = Sim::seeds(0..1).run(&scenario).unwrap();
        assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    }
}

#[test]
fn requeue_without_delay_is_found_in_frozen_time() {
    let restarter = Scenario::new(|| App::new("restarter").controller::<restarts>());
    check("no hot loop", &format!("{SIXTY} done, requeue after 0ns"), restarter);
}

/// Applies an owned and another object in each reconcile, and requeues.
#[controller(owns = Secret(apply), reads = Service(apply))]
async fn applies(config: Arc<ConfigMap>, cx: Context<applies>) -> Result<Action> {
    let (name, namespace) = (config.name_any(), config.namespace());
    cx.owned::<Secret>().apply(kctl::json!({ "metadata": { "name": name }, "stringData": { "a": "b" } })).await?;
    let service = kctl::json!({
        "metadata": { "name": name, "namespace": namespace, "ownerReferences": [config.owner_ref(&())] },
        "spec": { "ports": [{ "port": 80 }] },
    });
    cx.objects::<Service>().apply(service).await?;
    Ok(Action::requeue(Duration::from_secs(50)))
}

#[test]
fn settled_controller_that_applies_writes_no_more() {
    let scenario = Scenario::new(|| App::new("applier").controller::<applies>())
        .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    let report = Sim::seeds(0..8).run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}

#[controller]
async fn claims(_claim: Arc<PersistentVolumeClaim>, _cx: Context<claims>) -> Result<Action> {
    Ok(Action::await_change())
}

/// The API server adds a finalizer to each claim, which a controller of Kubernetes removes in a cluster.
#[test]
fn object_that_others_hold_is_not_leaked() {
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a},
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}";
    let scenario = Scenario::new(|| App::new("claims").controller::<claims>()).objects(claim);
    let report = Sim::seeds(0..1).run(&scenario).unwrap();
    assert!(report.failure().is_none(), "{}", report.failure().unwrap());
}
