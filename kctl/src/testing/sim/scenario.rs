//! The description of a simulation: an app, its objects, the steps of users, and what must hold.

use std::{pin::Pin, sync::Arc, time::Duration};

use kctl_runtime::{
    __private_0_1::Planted,
    reconcile::Result,
    shard::{ShardBy, Slots},
};
use kube::Client;

use super::Snapshot;
use crate::App;

/// Number of slots in a sharded scenario: few, because each costs a renewal every 2 s of simulated time.
const SLOTS: u32 = 4;

pub(super) type MakeApp = Arc<dyn Fn() -> App + Send + Sync>;
type Doing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;
type Do = Arc<dyn Fn(Client) -> Doing + Send + Sync>;
type Holds = Arc<dyn Fn(&Snapshot) -> Result<(), String> + Send + Sync>;

/// Default of [`Scenario::requests_per_change`].
const REQUESTS_PER_CHANGE: u64 = 30;

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
/// * [`settled`](Self::settled) holds once nothing happens any more: "all replicas are ready".
/// * The final state has to equal that of the run without faults. This needs no code;
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
///     .invariant("settings stay", |snapshot: &Snapshot| {
///         let configs: Vec<ConfigMap> = snapshot.all();
///         if configs.len() > 1 { Err(format!("{} ConfigMaps", configs.len())) } else { Ok(()) }
///     });
/// # let _ = scenario;
/// ```
#[derive(Clone)]
pub struct Scenario {
    pub(super) app: MakeApp,
    pub(super) objects: String,
    pub(super) steps: Vec<Step>,
    pub(super) invariants: Vec<Invariant>,
    pub(super) settled: Vec<Invariant>,
    pub(super) instances: usize,
    pub(super) unfenced: bool,
    /// The slots by which the instances share the keys.
    pub(super) slots: Option<Slots>,
    pub(super) planted: Option<Planted>,
    /// Simulated parts of the app's own cluster.
    pub(super) simulated: Simulated,
    /// JSON pointers of fields that are not compared.
    pub(super) ignored: Vec<String>,
    /// Plurals of objects that may outlive their primaries.
    pub(super) kept: Vec<String>,
    pub(super) requests_per_change: u64,
    pub(super) outdated_lists: bool,
    pub(super) clock_faults: bool,
    /// The judgement of keys that still fail once the state has settled.
    pub(super) failing_keys: FailingKeys,
    /// Plurals, and plurals with `/status`.
    pub(super) time_dependent: Vec<String>,
    /// Requeues that come due within this time are waited for.
    pub(super) requeues_within: Duration,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("instances", &self.instances).finish_non_exhaustive()
    }
}

/// The judgement of keys that fail in a settled state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FailingKeys {
    /// They are a finding.
    Found,
    /// The scenario has objects that fail on purpose.
    Allowed,
}

/// An action of a user.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) name: String,
    /// Time since the previous step; `None` waits until the state has settled.
    pub(super) after: Option<Duration>,
    pub(super) action: Do,
}

#[derive(Clone)]
pub(super) struct Invariant {
    pub(super) name: String,
    pub(super) holds: Holds,
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
            steps: Vec::new(),
            invariants: Vec::new(),
            settled: Vec::new(),
            instances: 1,
            unfenced: false,
            slots: None,
            planted: None,
            simulated: Simulated::Pods,
            ignored: Vec::new(),
            kept: Vec::new(),
            requests_per_change: REQUESTS_PER_CHANGE,
            outdated_lists: true,
            clock_faults: true,
            failing_keys: FailingKeys::Found,
            time_dependent: Vec::new(),
            requeues_within: Duration::ZERO,
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
    /// They are deleted at the end of a run, and so are objects that the steps created. Everything that
    /// the app created has to disappear then, by its owner references or by a finalizer; the checker
    /// `no leaked objects` reports what is left. Calls add up.
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
    /// An error, or a step that takes more than 24 simulated hours, fails the run.
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
    /// For the first step, the time counts from when the objects were applied. Use it for changes
    /// that overtake a reconcile: a spec that changes during a rollout, a primary that is deleted
    /// while its finalizer runs.
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
        let action: Do = Arc::new(move |client| Box::pin(action(client)));
        self.steps.push(Step { name: name.into(), after, action });
        self
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

    /// Runs `n` replicas of the program with leader election, one by default.
    ///
    /// With several, plans also contain Leases that a leader fails to renew, writes that arrive
    /// late, replicas that are stopped and start again, and rolling updates. The checker `only the
    /// leader writes` is active.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().instances(2);
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn instances(mut self, n: usize) -> Self {
        self.instances = n.max(1);
        self
    }

    /// Runs leaders with a write permit that always grants: a bug that the simulator has to find.
    #[doc(hidden)]
    #[must_use]
    pub fn unfenced(mut self) -> Self {
        self.unfenced = true;
        self
    }

    /// Makes all replicas work: they share the keys by four slots, as with `run --shards`.
    ///
    /// The checkers then check each slot: a key never runs twice at once, and only the owner of its
    /// slot writes for it.
    ///
    /// Plans of seeds also contain Leases of slots that are deleted by hand, and processes that
    /// crash and have slow lists after their restart. Slots move while such a list is on its way,
    /// and the watch is past it when it arrives. A process may be frozen in a reconcile for longer
    /// than its Leases last, as by SIGSTOP.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().instances(3).sharded();
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn sharded(self) -> Self {
        self.sharded_by(ShardBy::Object)
    }

    /// Makes all replicas work, as [`sharded`](Self::sharded) does, with another division of the keys: by
    /// [`ShardBy::Namespace`] the objects of a namespace have one owner.
    ///
    /// With [`ShardBy::NamespaceRange`] the API server selects the objects of a replica in runs with an even seed.
    ///
    /// ```
    /// use kctl::{app::ShardBy, testing::Scenario};
    ///
    /// let scenario = Scenario::default().instances(3).sharded_by(ShardBy::Namespace);
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn sharded_by(mut self, by: ShardBy) -> Self {
        self.slots = Some(Slots::new(SLOTS, by));
        self
    }

    /// Plants a bug in the protocol of slots, which the simulator has to find.
    #[doc(hidden)]
    #[must_use]
    pub fn planted(mut self, bug: Planted) -> Self {
        self.planted = Some(bug);
        self
    }

    /// Leaves Pods as they were created: no kubelet runs them, on any cluster. Other clusters of an app then have no
    /// controllers of Deployments, `ReplicaSets` and Jobs either.
    ///
    /// By default a Pod becomes ready a second after its creation, and takes its whole grace period
    /// to terminate.
    #[must_use]
    pub fn without_kubelet(mut self) -> Self {
        self.simulated = Simulated::Nothing;
        self
    }

    /// Runs controllers that create Pods for Deployments, `ReplicaSets` and Jobs and report their
    /// status.
    ///
    /// Use it for an app that creates such objects and waits for them. Other clusters of an app
    /// have these controllers without it, except in a scenario [`without_kubelet`](Self::without_kubelet).
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Keeps one Deployment for each `ConfigMap`.
    /// #[controller(owns = Deployment(apply))]
    /// async fn webs(config: Arc<ConfigMap>, cx: Context<webs>) -> Result<Action> {
    ///     cx.owned::<Deployment>().apply(kctl::json!({
    ///         "metadata": { "name": config.name_any() },
    ///         "spec": {
    ///             "selector": { "matchLabels": { "app": "web" } },
    ///             "template": {
    ///                 "metadata": { "labels": { "app": "web" } },
    ///                 "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
    ///             },
    ///         },
    ///     })).await?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("webs").controller::<webs>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")
    ///     .with_workloads()
    ///     .settled("a pod", |snapshot| match snapshot.all::<Pod>().len() {
    ///         1 => Ok(()),
    ///         n => Err(format!("{n} pods")),
    ///     });
    /// let report = Sim::seeds(0..1).run(&scenario)?;
    /// assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.simulated = Simulated::Workloads;
        self
    }

    /// Leaves out restarts on an API server that serves an old state as the newest one.
    ///
    /// A list without a `resourceVersion` returns the newest state; API servers promise that. The
    /// fault breaks the promise, as a restore of etcd from a backup does. Use this method for an
    /// app that has to rely on it; prefer a live read before an action that can't be undone.
    #[must_use]
    pub fn without_outdated_lists(mut self) -> Self {
        self.outdated_lists = false;
        self
    }

    /// Leaves out the faults that set the clock of a process wrong.
    ///
    /// Use it for an app that compares [`Context::now`] with times that others wrote, such as
    /// `metadata.creationTimestamp`, and so relies on clocks that agree.
    ///
    /// [`Context::now`]: kctl_runtime::reconcile::Context::now
    #[must_use]
    pub fn without_clock_faults(mut self) -> Self {
        self.clock_faults = false;
        self
    }

    /// Allows objects whose reconcile fails once the state has settled.
    ///
    /// By default the checker `the app works` reports them: an app whose reconciles always fail changes nothing, so its
    /// final state is the same in all runs. Use this method for an object that the app rejects on purpose, with a
    /// [`terminal`](kctl_runtime::reconcile::ResultExt::terminal) error for example.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim}};
    ///
    /// /// Rejects each `ConfigMap` without a color.
    /// #[controller]
    /// async fn colors(config: Arc<ConfigMap>, _cx: Context<colors>) -> Result<Action> {
    ///     let color = config.data.as_ref().and_then(|data| data.get("color"));
    ///     color.ok_or("it has no color")?;
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("colors").controller::<colors>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}");
    /// let failure = Sim::seeds(0..1).run(&scenario)?.failure().cloned().expect("the key always fails");
    /// assert_eq!(failure.checker(), "the app works");
    /// assert!(Sim::seeds(0..1).run(&scenario.allowing_failures())?.failure().is_none());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn allowing_failures(mut self) -> Self {
        self.failing_keys = FailingKeys::Allowed;
        self
    }

    /// Waits for requeues that come due within this time before the state counts as settled.
    ///
    /// That delays each step, each [`settled`](Self::settled) rule and the comparison of final
    /// states. Use a little more than the longest `Action::requeue` after which a correct app still
    /// has something to do. By default the state has settled once nothing has changed for 15
    /// simulated seconds.
    ///
    /// An app with a schedule always has a requeue pending. For it the state has settled when
    /// nothing but what [depends on time](Self::depending_on_time) has changed for this time: the
    /// app then has run for at least that long.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::{Scenario, Sim, Snapshot}};
    ///
    /// /// Deletes each ConfigMap an hour after it was created.
    /// #[controller(primary(delete))]
    /// async fn expires(config: Arc<ConfigMap>, cx: Context<expires>) -> Result<Action> {
    ///     let created = config.creation_timestamp().map_or(cx.now(), |time| time.0);
    ///     let left = Duration::from_secs(3_600).saturating_sub(cx.now().duration_since(created).unsigned_abs());
    ///     if left.is_zero() {
    ///         cx.delete().await?;
    ///         return Ok(Action::await_change());
    ///     }
    ///     Ok(Action::requeue(left))
    /// }
    ///
    /// let scenario = Scenario::new(|| App::new("expires").controller::<expires>())
    ///     .objects("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
    ///     .without_clock_faults()
    ///     .waiting_for_requeues(Duration::from_secs(2 * 3_600))
    ///     .settled("all have expired", |snapshot: &Snapshot| match snapshot.all::<ConfigMap>().len() {
    ///         0 => Ok(()),
    ///         n => Err(format!("{n} are left")),
    ///     });
    /// let report = Sim::seeds(0..4).run(&scenario)?;
    /// assert!(report.failure().is_none(), "{}", report.failure().unwrap());
    /// # Ok::<(), kctl::Error>(())
    /// ```
    #[must_use]
    pub fn waiting_for_requeues(mut self, within: Duration) -> Self {
        self.requeues_within = within;
        self
    }

    /// Excludes objects that depend on when something happens, and all that they own, from
    /// comparisons.
    ///
    /// `resource` is a plural, such as `jobs`; `schedules/status` excludes only the status of a
    /// resource. Two correct runs may differ in such objects. They are not compared, their changes
    /// do not keep the state from settling, and writes to them are not needless. Rules of
    /// [`invariant`](Self::invariant) and [`settled`](Self::settled) still see them.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::Scenario};
    ///
    /// // An app that starts a Job each minute: it is watched for five minutes.
    /// let scenario = Scenario::default()
    ///     .waiting_for_requeues(Duration::from_secs(300))
    ///     .depending_on_time("jobs")
    ///     .depending_on_time("schedules/status");
    /// # let _ = scenario;
    /// ```
    ///
    /// Another subresource than `status` makes [`Sim::run`](super::Sim::run) return an error.
    #[must_use]
    pub fn depending_on_time(mut self, resource: &str) -> Self {
        self.time_dependent.push(resource.into());
        self
    }

    /// Excludes a field from the comparison of final states. `pointer` is a JSON pointer, such as
    /// `/status/attempts`.
    ///
    /// Use it for counters and histories, which legitimately differ after a fault. Server-side
    /// fields, times, uids and generated names are excluded already.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().ignoring("/status/attempts").ignoring("/status/history");
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn ignoring(mut self, pointer: &str) -> Self {
        self.ignored.push(pointer.into());
        self
    }

    /// Allows objects of this resource (its plural) to outlive their primaries.
    ///
    /// It covers objects that the app creates, and those that others create for them:
    /// `keeping("pods")` for the Pods of a Job that the app deletes with `.orphan()`, or
    /// `keeping("persistentvolumeclaims")` for data that must survive.
    ///
    /// ```
    /// use kctl::testing::Scenario;
    ///
    /// let scenario = Scenario::default().keeping("persistentvolumeclaims");
    /// # let _ = scenario;
    /// ```
    #[must_use]
    pub fn keeping(mut self, plural: &str) -> Self {
        self.kept.push(plural.into());
        self
    }

    /// Sets how many requests the app may send for each change of the state, on average over a run:
    /// 30 by default.
    ///
    /// Raise it for an app that polls an external system through the API server. A run may send 200
    /// requests more than that.
    #[must_use]
    pub fn requests_per_change(mut self, n: u64) -> Self {
        self.requests_per_change = n;
        self
    }

    /// Returns `true` if the replicas elect a leader.
    pub(super) fn elects(&self) -> bool {
        self.instances > 1 && self.slots.is_none()
    }
}
