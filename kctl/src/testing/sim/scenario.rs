//! The description of a simulation: an app, its objects, the steps of users, and what must hold.

mod options;

use std::{pin::Pin, sync::Arc, time::Duration};

use kctl_runtime::{__private_0_1::Planted, reconcile::Result, shard::Slots};
use kube::Client;

use super::{Snapshot, panics, progress::STUCK_AFTER};
use crate::App;

pub(super) type MakeApp = Arc<dyn Fn() -> App + Send + Sync>;
type StepFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;
type StepAction = Arc<dyn Fn(Client) -> StepFuture + Send + Sync>;
type SnapshotCheck = Arc<dyn Fn(&Snapshot) -> Result<(), String> + Send + Sync>;

/// Default of [`Scenario::requests_per_change`].
pub(super) const REQUESTS_PER_CHANGE: u64 = 30;

/// The simulated parts of the app's own cluster. Other clusters have [`Workloads`](Self::Workloads), or
/// [`Nothing`](Self::Nothing) like the own one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Simulated {
    /// Objects are only stored.
    Nothing,
    /// A simulated kubelet runs Pods.
    Pods,
    /// Also, Deployments, `ReplicaSets` and Jobs get Pods.
    Workloads,
}

/// The description of a simulation: app, objects, steps and invariants. It runs many times, each
/// time from the start.
///
/// The methods return the scenario, so that a test chains them. Only an app and objects are needed;
/// the checkers that need no description, such as "no hot loop" and "no leaked objects", always
/// run. The [guide](https://github.com/kctl-rs/kctl/blob/main/guide/simulation.md#checkers) lists
/// them.
///
/// Think of three kinds of statements:
///
/// * [`invariant`](Self::invariant) holds after *each* change: "never more than one leader Pod".
/// * [`settled`](Self::settled) holds once nothing happens any more: "all replicas are ready". [`expect`](Self::expect) is
///   the same at one place among the steps.
/// * The final state has to equal the final state of the run without faults. This needs no code;
///   [`ignoring`](Self::ignoring) and [`depending_on_time`](Self::depending_on_time) exclude what
///   may differ.
///
/// ```
/// use kctl::{prelude::*, testing::{Scenario, Snapshot}};
///
/// # #[controller]
/// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
/// fn app() -> App {
///     App::new("idler").controller::<idle>()
/// }
///
/// let scenario = Scenario::new(app)
///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
///     .invariant("one ConfigMap of settings", |snapshot: &Snapshot| {
///         let configs: Vec<ConfigMap> = snapshot.all();
///         if configs.len() > 1 { Err(format!("{} ConfigMaps", configs.len())) } else { Ok(()) }
///     });
/// # let _ = scenario;
/// ```
#[derive(Clone)]
pub struct Scenario {
    pub(super) app: MakeApp,
    pub(super) objects: String,
    pub(super) stages: Vec<Stage>,
    pub(super) invariants: Vec<Invariant>,
    pub(super) settled: Vec<Invariant>,
    pub(super) instances: usize,
    pub(super) unfenced: bool,
    /// The slots that divide the keys among the instances.
    pub(super) slots: Option<Slots>,
    pub(super) planted: Option<Planted>,
    pub(super) server_selection: ServerSelection,
    /// Simulated parts of the app's own cluster.
    pub(super) simulated: Simulated,
    /// Fields that are not compared: JSON pointers, perhaps with a plural before them.
    pub(super) ignored: Vec<String>,
    /// Plurals of objects that may outlive their primaries.
    pub(super) kept: Vec<String>,
    pub(super) requests_per_change: u64,
    pub(super) optional_faults: OptionalFaults,
    /// Accepts or reports keys that still fail once the state has settled.
    pub(super) failing_keys: FailingKeys,
    /// The treatment of the objects that the app makes if it starts with the final ones of the users.
    pub(super) fresh_start: FreshStart,
    /// Accepts or reports tasks that outlive all processes.
    pub(super) spawned_tasks: SpawnedTasks,
    /// Plurals, and plurals with `/status`.
    pub(super) time_dependent: Vec<String>,
    /// Requeues that come due within this time are waited for.
    pub(super) requeues_within: Duration,
    /// Seconds of real time without progress after which a run is given up.
    pub(super) stuck_after: u32,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("instances", &self.instances).finish_non_exhaustive()
    }
}

/// The faults that a scenario can turn off.
#[derive(Clone, Copy)]
pub(super) struct OptionalFaults {
    pub(super) outdated_lists: bool,
    pub(super) clock_faults: bool,
    pub(super) freezes: bool,
}

/// Accepts or reports keys that fail in a settled state.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FailingKeys {
    /// They are a finding.
    #[default]
    Found,
    /// The scenario has objects that fail on purpose.
    Allowed,
}

/// The treatment of a start with the final objects of the users.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FreshStart {
    /// It has to lead to the same objects of the app as the steps.
    Compared,
    /// The objects of the app may depend on their history.
    Ignored,
}

/// Accepts or reports tasks that still run after all processes have ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SpawnedTasks {
    /// They are a finding.
    Found,
    /// The app is known to spawn them.
    Allowed,
}

/// The API server's part in selecting the objects of a replica, with `ShardBy::NamespaceRange`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerSelection {
    /// The feature gate `ShardedListAndWatch` is on.
    Available,
    /// It is off, so each replica selects among all objects.
    Missing,
}

/// A part of a run between the start and the end, in the order in which they were added.
#[derive(Clone)]
pub(super) enum Stage {
    Step(Step),
    /// A rule that holds once the state has settled at this place.
    Expectation(Invariant),
}

/// An action of a user.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) name: String,
    /// Time since the previous step; `None` waits until the state has settled.
    pub(super) after: Option<Duration>,
    pub(super) action: StepAction,
}

#[derive(Clone)]
pub(super) struct Invariant {
    pub(super) name: String,
    pub(super) holds: SnapshotCheck,
}

impl Default for Scenario {
    /// Creates a scenario with an app that has no controllers; [`app`](Self::app) replaces it.
    fn default() -> Self {
        Self::new(|| App::new("nothing"))
    }
}

impl Scenario {
    /// Creates a scenario for an app.
    ///
    /// The function is called at each start and restart of the program, so a new [`App`] must not
    /// carry state over. Each run has a separate thread: a `thread_local!` lasts for one run and
    /// outlives a crash, as a system outside of the cluster does. Use one for a fake cloud or
    /// registry.
    ///
    /// ```
    /// use std::cell::RefCell;
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// thread_local! {
    ///     /// A registry outside of the cluster.
    ///     static REGISTRY: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// }
    ///
    /// /// Registers each `ConfigMap` once.
    /// #[controller]
    /// async fn registers(config: Arc<ConfigMap>, _cx: Context<registers>) -> Result<Action> {
    ///     REGISTRY.with_borrow_mut(|names| {
    ///         let name = config.name_any();
    ///         if !names.contains(&name) {
    ///             names.push(name);
    ///         }
    ///     });
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("registers").controller::<registers>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
    ///     .settled("registered once", |_snapshot| match REGISTRY.with_borrow(Vec::len) {
    ///         1 => Ok(()),
    ///         n => Err(format!("registered {n} times")),
    ///     });
    /// assert!(Sim::seeds(0..2).run(&scenario)?.failure().is_none());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    pub fn new(app: impl Fn() -> App + Send + Sync + 'static) -> Self {
        Self {
            app: Arc::new(app),
            objects: String::new(),
            stages: Vec::new(),
            invariants: Vec::new(),
            settled: Vec::new(),
            instances: 1,
            unfenced: false,
            slots: None,
            planted: None,
            server_selection: ServerSelection::Available,
            simulated: Simulated::Pods,
            ignored: Vec::new(),
            kept: Vec::new(),
            requests_per_change: REQUESTS_PER_CHANGE,
            optional_faults: OptionalFaults { outdated_lists: true, clock_faults: true, freezes: true },
            failing_keys: FailingKeys::Found,
            fresh_start: FreshStart::Ignored,
            spawned_tasks: SpawnedTasks::Found,
            time_dependent: Vec::new(),
            requeues_within: Duration::ZERO,
            stuck_after: STUCK_AFTER,
        }
    }

    /// Sets the app; see [`new`](Self::new). A test with `#[kctl::test]` gets a scenario without
    /// one.
    #[must_use]
    pub fn app(mut self, app: impl Fn() -> App + Send + Sync + 'static) -> Self {
        self.app = Arc::new(app);
        self
    }

    /// Adds objects that a user applies first, as a stream of YAML documents.
    ///
    /// They are deleted at the end of a run, and so are objects that the steps created. Everything that the app created
    /// has to disappear then, by its owner references or by a finalizer. The checker `no leaked objects` reports what
    /// is left. Calls add up.
    ///
    /// Kinds that the app declares and no Rust type defines need their CRD here, unless they are
    /// optional: without it [`Sim::run`](crate::testing::Sim::run) returns an error.
    #[must_use]
    pub fn objects(mut self, yaml: &str) -> Self {
        if !self.objects.is_empty() {
            self.objects += "\n---\n";
        }
        self.objects += yaml;
        self
    }

    /// Adds an action of a user, which happens once the state has settled after the previous one.
    ///
    /// The client has all permissions. Steps happen in the order in which they are added.
    ///
    /// ```
    /// use kctl::{kube::{Api, api::{Patch, PatchParams}}, prelude::*, testing::Scenario};
    ///
    /// # #[controller]
    /// # async fn idle(_config: Arc<ConfigMap>, _cx: Context<idle>) -> Result<Action> { Ok(Action::await_change()) }
    /// let scenario = Scenario::new(|| App::new("idler").controller::<idle>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {replicas: '2'}}")
    ///     .step("scale to 5", |client| async move {
    ///         let configs = Api::<ConfigMap>::default_namespaced(client);
    ///         let patch = kctl::json!({ "data": { "replicas": "5" } });
    ///         configs.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
    ///         Ok(())
    ///     });
    /// # let _ = scenario;
    /// ```
    ///
    /// An error fails the run, and so does a step that takes more than a simulated hour plus twice the time of
    /// [`waiting_for_requeues`](Self::waiting_for_requeues).
    #[must_use]
    pub fn step<F, Fut>(self, name: &str, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_step(name, None, action)
    }

    /// Adds an action of a user that happens a fixed time after the previous step, while the system
    /// is busy.
    ///
    /// The time counts from the end of the previous step. For the first step it counts from when the objects were
    /// applied, and after an [`expect`](Self::expect) from that check. Use it for changes that overtake a reconcile: a
    /// spec that changes during a rollout, a primary that is deleted while its finalizer runs.
    ///
    /// ```
    /// use kctl::{kube::{Api, api::DeleteParams}, prelude::*, testing::Scenario};
    ///
    /// let scenario = Scenario::default()
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
    ///     .step_at(Duration::from_millis(300), "delete it at once", |client| async move {
    ///         Api::<ConfigMap>::default_namespaced(client).delete("web", &DeleteParams::default()).await?;
    ///         Ok(())
    ///     });
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn step_at<F, Fut>(self, after: Duration, name: &str, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_step(name, Some(after), action)
    }

    /// Adds a step; `after` is `None` for one that waits until the state has settled.
    fn add_step<F, Fut>(mut self, name: &str, after: Option<Duration>, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let action: StepAction = Arc::new(move |client| Box::pin(action(client)));
        self.stages.push(Stage::Step(Step { name: name.into(), after, action }));
        self
    }

    /// Adds a rule that is checked once, at this place among the steps: it waits until the state has settled after the
    /// previous step.
    ///
    /// A rule of [`settled`](Self::settled) holds before each step, so the effect of one step is not a rule of that kind.
    ///
    /// ```
    /// use kctl::{kube::{Api, api::{Patch, PatchParams}}, prelude::*, testing::{Scenario, Sim, Snapshot}};
    ///
    /// /// Copies the color into a label.
    /// #[controller(primary(patch))]
    /// async fn colors(config: Arc<ConfigMap>, cx: Context<colors>) -> Result<Action> {
    ///     let color = config.data.as_ref().and_then(|data| data.get("color"));
    ///     cx.patch(kctl::json!({ "metadata": { "labels": { "color": color } } })).await?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// fn is_red(snapshot: &Snapshot) -> Result<(), String> {
    ///     match snapshot.all::<ConfigMap>().iter().find(|config| config.labels().get("color").is_none_or(|color| color != "red")) {
    ///         Some(config) => Err(format!("{} is not", config.name_any())),
    ///         None => Ok(()),
    ///     }
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("colors").controller::<colors>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {color: blue}}")
    ///     .step("set red", |client| async move {
    ///         let red = Patch::Merge(kctl::json!({ "data": { "color": "red" } }));
    ///         Api::<ConfigMap>::default_namespaced(client).patch("web", &PatchParams::default(), &red).await?;
    ///         Ok(())
    ///     })
    ///     .expect("the label is red", is_red);
    /// let report = Sim::seeds(0..1).run(&scenario)?;
    /// assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn expect(
        mut self,
        name: &str,
        holds: impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.stages.push(Stage::Expectation(Invariant { name: name.into(), holds: Arc::new(holds) }));
        self
    }

    /// Returns the same scenario with other objects, and without steps.
    pub(super) fn starting_with(&self, objects: String) -> Self {
        Self { objects, stages: Vec::new(), ..self.clone() }
    }

    /// Returns the number of steps.
    pub(super) fn n_steps(&self) -> usize {
        self.stages.iter().filter(|stage| matches!(stage, Stage::Step(_))).count()
    }

    /// Returns all rules.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Invariant> {
        let expectations = self.stages.iter().filter_map(|stage| match stage {
            Stage::Expectation(rule) => Some(rule),
            Stage::Step(_) => None,
        });
        self.invariants.iter().chain(&self.settled).chain(expectations)
    }

    /// Adds a rule that is checked after each change of the state. It returns an error text when it
    /// is violated.
    ///
    /// Use it for what must never be seen, even for a moment. A rule about a goal, such as "three
    /// Pods are ready", is violated at the start of each run and belongs in
    /// [`settled`](Self::settled).
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Snapshot}};
    ///
    /// let scenario = Scenario::default().invariant("at most one primary database", |snapshot: &Snapshot| {
    ///     let pods = snapshot.all::<Pod>();
    ///     match pods.iter().filter(|pod| pod.labels().get("role").is_some_and(|role| role == "primary")).count() {
    ///         0 | 1 => Ok(()),
    ///         n => Err(format!("{n} Pods have the role `primary`")),
    ///     }
    /// });
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn invariant(
        mut self,
        name: &str,
        holds: impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.invariants.push(Invariant { name: name.into(), holds: Arc::new(holds) });
        self
    }

    /// Adds a rule that is checked whenever the state has settled: before each step, and before
    /// everything is deleted at the end.
    ///
    /// The result of a later requeue is seen only with
    /// [`waiting_for_requeues`](Self::waiting_for_requeues). When a rule fails while a requeue is
    /// pending, the message names the key and its wait.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Snapshot}};
    ///
    /// let scenario = Scenario::default().settled("all replicas are ready", |snapshot: &Snapshot| {
    ///     for deployment in snapshot.all::<Deployment>() {
    ///         let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
    ///         if ready != deployment.spec.replicas {
    ///             return Err(format!("{} has {ready:?} ready replicas", deployment.name_any()));
    ///         }
    ///     }
    ///     Ok(())
    /// });
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn settled(
        mut self,
        name: &str,
        holds: impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.settled.push(Invariant { name: name.into(), holds: Arc::new(holds) });
        self
    }

    /// Returns a new app, and names its function in the finding of a panic.
    pub(super) fn new_app(&self) -> App {
        panics::within("the function of `.app(…)`", || (self.app)())
    }

    /// Returns `true` if the replicas elect a leader.
    pub(super) fn elects(&self) -> bool {
        self.instances > 1 && self.slots.is_none()
    }
}
