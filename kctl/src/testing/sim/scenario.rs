//! What is simulated: an app, the objects that it starts with, what people do, and what must always hold.

use std::{pin::Pin, sync::Arc, time::Duration};

use kctl_runtime::reconcile::Result;
use kube::Client;

use super::Snapshot;
use crate::App;

pub(super) type MakeApp = Arc<dyn Fn() -> App + Send + Sync>;
type Doing = Pin<Box<dyn Future<Output = Result<()>> + Send>>;
type Do = Arc<dyn Fn(Client) -> Doing + Send + Sync>;
type Holds = Arc<dyn Fn(&Snapshot) -> Result<(), String> + Send + Sync>;

/// Requests that an app may send for each change of the state, on average over a run, unless the scenario says otherwise.
const REQUESTS_PER_CHANGE: u64 = 30;

/// What the app's own cluster does by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Simulated {
    Nothing,
    /// Pods run.
    Pods,
    /// And Deployments, `ReplicaSets` and Jobs have some.
    Workloads,
}

/// The description of a simulation: app, objects, steps and invariants. It runs many times, each time from the start.
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
    pub(super) simulated: Simulated,
    pub(super) ignored: Vec<String>,
    pub(super) kept: Vec<String>,
    pub(super) requests_per_change: u64,
    pub(super) outdated_lists: bool,
    pub(super) clock_faults: bool,
    /// Plurals, and plurals with `/status`.
    pub(super) time_dependent: Vec<String>,
    /// Keys that come due within this time are waited for.
    pub(super) requeues_within: Duration,
}

/// Something that a user does.
#[derive(Clone)]
pub(super) struct Step {
    pub(super) name: String,
    /// So long after the step before, or once the system has settled.
    pub(super) after: Option<Duration>,
    pub(super) action: Do,
}

#[derive(Clone)]
pub(super) struct Invariant {
    pub(super) name: String,
    pub(super) holds: Holds,
}

impl Default for Scenario {
    /// Of an app without controllers: [`app`](Self::app) gives it one.
    fn default() -> Self {
        Self::new(|| App::new("nothing"))
    }
}

impl Scenario {
    /// A scenario of this app. The function is called at each start and restart of the program. Each run has a thread of its
    /// own, so that thread-local values last for one run and outlive a crash, as a system outside of the cluster does.
    pub fn new(app: impl Fn() -> App + Send + Sync + 'static) -> Self {
        Self {
            app: Arc::new(app),
            objects: String::new(),
            steps: Vec::new(),
            invariants: Vec::new(),
            settled: Vec::new(),
            instances: 1,
            unfenced: false,
            simulated: Simulated::Pods,
            ignored: Vec::new(),
            kept: Vec::new(),
            requests_per_change: REQUESTS_PER_CHANGE,
            outdated_lists: true,
            clock_faults: true,
            time_dependent: Vec::new(),
            requeues_within: Duration::ZERO,
        }
    }

    /// The app.
    #[must_use]
    pub fn app(mut self, app: impl Fn() -> App + Send + Sync + 'static) -> Self {
        self.app = Arc::new(app);
        self
    }

    /// Objects that are applied first, as a stream of YAML documents. They are deleted at the end, when everything that
    /// belongs to them has to go.
    #[must_use]
    pub fn objects(mut self, yaml: &str) -> Self {
        if !self.objects.is_empty() {
            self.objects += "\n---\n";
        }
        self.objects += yaml;
        self
    }

    /// Something that a user does, once the system has settled.
    #[must_use]
    pub fn step<F, Fut>(self, name: &str, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_step(name, None, action)
    }

    /// Something that a user does so long after the step before it (or after the objects were applied), while the system is
    /// busy.
    #[must_use]
    pub fn step_at<F, Fut>(self, after: Duration, name: &str, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_step(name, Some(after), action)
    }

    fn add_step<F, Fut>(mut self, name: &str, after: Option<Duration>, action: F) -> Self
    where
        F: Fn(Client) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let action: Do = Arc::new(move |client| Box::pin(action(client)));
        self.steps.push(Step { name: name.into(), after, action });
        self
    }

    /// Something that holds at all times: it is checked after each change of the state.
    #[must_use]
    pub fn invariant(
        mut self,
        name: &str,
        holds: impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.invariants.push(Invariant { name: name.into(), holds: Arc::new(holds) });
        self
    }

    /// Something that holds whenever the system has settled: before each step, and before everything is deleted at the end. What
    /// only a later requeue does is waited for with [`waiting_for_requeues`](Self::waiting_for_requeues).
    #[must_use]
    pub fn settled(
        mut self,
        name: &str,
        holds: impl Fn(&Snapshot) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.settled.push(Invariant { name: name.into(), holds: Arc::new(holds) });
        self
    }

    /// So many replicas of the program, one of which works: with leader election.
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

    /// Pods are not run.
    #[must_use]
    pub fn without_kubelet(mut self) -> Self {
        self.simulated = Simulated::Nothing;
        self
    }

    /// Deployments, `ReplicaSets` and Jobs have pods and say so, as in a cluster with the controllers of Kubernetes: for an app that
    /// makes them, and waits for what becomes of them. Other clusters of an app have that always.
    #[must_use]
    pub fn with_workloads(mut self) -> Self {
        self.simulated = Simulated::Workloads;
        self
    }

    /// No restart on a server that takes an old state for the newest one: for an app that relies on it that a list without a
    /// version is of the newest state, as API servers promise it.
    #[must_use]
    pub fn without_outdated_lists(mut self) -> Self {
        self.outdated_lists = false;
        self
    }

    /// Leaves out the faults that set the clock of a process wrong: for an app that compares [`Context::now`] with times that
    /// others wrote, such as `metadata.creationTimestamp`, and so relies on clocks that agree.
    ///
    /// [`Context::now`]: kctl_runtime::reconcile::Context::now
    #[must_use]
    pub fn without_clock_faults(mut self) -> Self {
        self.clock_faults = false;
        self
    }

    /// Waits for requeues that come due within this time before the state counts as settled, and so before each step, before
    /// [`settled`](Self::settled) rules, and before the final state is compared: a little longer than the longest
    /// `Action::requeue` after which a correct app still has something to do. Unless it is said, the state has settled once
    /// nothing has changed for 15 simulated seconds and no key is due within five.
    ///
    /// For an app that always has a requeue pending, as one with a schedule does, the state has settled when nothing but what
    /// [depends on time](Self::depending_on_time) has changed for so long: the app then has run for at least this time.
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

    /// Objects of this resource (its plural, such as `jobs`), and all that they own, depend on when something happens: two correct
    /// runs may differ in them. They are left out when final states are compared, their changes do not keep the state from being
    /// settled, and writes to them are no needless writes. `schedules/status` says the same of nothing but the status of a
    /// resource. Rules still see everything.
    #[must_use]
    pub fn depending_on_time(mut self, resource: &str) -> Self {
        self.time_dependent.push(resource.into());
        self
    }

    /// Leaves a field (a JSON pointer, such as `/status/attempts`) out when final states are compared.
    #[must_use]
    pub fn ignoring(mut self, pointer: &str) -> Self {
        self.ignored.push(pointer.into());
        self
    }

    /// Objects of this resource (its plural) that the app creates, or that others create for such objects, may stay when the primaries are
    /// gone: `keeping("pods")` for the Pods of a Job that the app deletes with `.orphan()`.
    #[must_use]
    pub fn keeping(mut self, plural: &str) -> Self {
        self.kept.push(plural.into());
        self
    }

    /// How many requests the app may send for each change of the state, on average over a run: 30 unless changed.
    #[must_use]
    pub fn requests_per_change(mut self, n: u64) -> Self {
        self.requests_per_change = n;
        self
    }
}
