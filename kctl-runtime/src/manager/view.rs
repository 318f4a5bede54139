//! The view of a running manager, from which health, metrics and the debug page are served.

use std::sync::Arc;

use super::{
    Manager,
    external::{Bound, ReadyCheck},
    lease::{Elector, Leadership},
    ring::RingView,
    shards::ShardView,
    unused::Declared,
};
use crate::{
    handler::SpawnedHandler,
    key::ObjectKey,
    queue::WorkQueue,
    reconcile::{Env, TimedRuns},
    shard::Gate,
    source::Source,
    spec::ControllerSpec,
    watches::Informers,
    writer::RecorderView,
};

/// A running manager, seen from outside: its caches, queues, handlers and leader election.
///
/// [`Manager::view`] returns it before the manager runs, and it remains valid afterwards. Health, metrics and the debug
/// page read it; `kctl dev` waits with [`is_idle`](Self::is_idle).
///
/// A view keeps no task alive, and reading it only takes short locks. It is cheap to clone.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # use kube::client::Body;
/// # type Response = http::Response<Body>;
/// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
/// # let client = kube::Client::new(tower::service_fn(offline), "default");
/// # use std::sync::Arc;
/// use kctl_runtime::manager::Manager;
///
/// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}));
/// let view = manager.view();
/// for (spec, queue) in view.controllers() {
///     println!("{}: {} keys wait", spec.name, queue.len());
/// }
/// assert!(view.controllers().is_empty() && view.leadership().is_none());
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct View {
    pub(super) sources: Vec<Arc<Source>>,
    pub(super) informers: Informers,
    pub(super) bounds: Vec<Bound>,
    pub(super) others_ready: Vec<ReadyCheck>,
    /// Declaration and queue of each controller, in the order in which they were added.
    pub(super) queues: Vec<(ControllerSpec, WorkQueue<ObjectKey>)>,
    pub(super) primaries: Vec<Arc<Source>>,
    /// For each controller, the caches that its workers wait for.
    pub(super) awaited: Vec<Vec<Arc<Source>>>,
    pub(super) recorders: Vec<RecorderView>,
    /// Handlers with user code, which have their own backlogs.
    pub(super) spawned_handlers: Vec<Arc<SpawnedHandler>>,
    pub(super) leadership: Option<Leadership>,
    pub(super) shards: Option<ShardView>,
    pub(super) ring: Option<RingView>,
    /// The gates of all controllers, which are open for the slots that they work on.
    pub(super) gates: Vec<Gate>,
    /// The runs of the functions of each controller.
    pub(super) timed_runs: Vec<TimedRuns>,
    pub(super) declared: Vec<Declared>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl Manager {
    /// Returns a view of the manager with its controllers, queues and caches as of now.
    ///
    /// Controllers that are added later are not in it.
    pub fn view(&self) -> View {
        View {
            sources: self.sources(),
            informers: self.informers.0.clone(),
            bounds: self.bounds.clone(),
            others_ready: self.others_ready.clone(),
            queues: self.controllers.iter().map(|c| (c.env.spec.clone(), c.queue.clone())).collect(),
            primaries: self.controllers.iter().map(|c| c.env.primary.clone()).collect(),
            awaited: self.controllers.iter().map(|c| c.env.caches().cloned().collect()).collect(),
            recorders: self.controllers.iter().map(|c| c.env.recorder.view()).collect(),
            spawned_handlers: self.controllers.iter().flat_map(|c| c.handlers.spawned_handlers().cloned()).collect(),
            leadership: self.elector.as_ref().map(Elector::leadership),
            shards: self.coordinator.as_ref().map(|coordinator| {
                let gates = self.controllers.iter().map(|c| (c.env.spec.name.clone(), c.env.gate.clone()));
                coordinator.view().with_gates(gates.collect())
            }),
            ring: self.ring.clone(),
            gates: self.controllers.iter().map(|c| c.env.gate.clone()).collect(),
            timed_runs: self.controllers.iter().map(|c| c.env.timed_runs.clone()).collect(),
            declared: self.controllers.iter().map(|c| declared_caches(&c.env)).collect(),
        }
    }
}

/// Returns the caches of a controller, with the record of those that its reconciles read.
fn declared_caches(env: &Env) -> Declared {
    let relations = env.sources.iter().map(|(relation, _)| relation.clone()).collect();
    Declared { controller: env.spec.name.clone(), relations, used: env.used.clone() }
}

impl View {
    /// Returns the caches that controllers declare, sorted by watch config.
    pub fn sources(&self) -> &[Arc<Source>] {
        &self.sources
    }

    /// Returns all open caches, with those that were opened at run time.
    ///
    /// It may contain other clusters and kinds that do not exist: a watch at run time waits for its kind.
    pub fn sources_now(&self) -> Vec<Arc<Source>> {
        self.informers.open().into_iter().map(|(source, _n_users)| source).collect()
    }

    /// Returns all open caches with the number of their users.
    pub(crate) fn informers(&self) -> &Informers {
        &self.informers
    }

    pub(crate) fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    pub(crate) fn recorders(&self) -> &[RecorderView] {
        &self.recorders
    }

    /// Returns the handlers with user code (`map`, `when`), which can be behind their stores.
    pub(crate) fn spawned_handlers(&self) -> &[Arc<SpawnedHandler>] {
        &self.spawned_handlers
    }

    /// Returns the state of the leader election, `None` without one.
    pub fn leadership(&self) -> Option<&Leadership> {
        self.leadership.as_ref()
    }

    /// Returns the slots of a sharded program, `None` without [`Manager::shard`].
    pub fn shards(&self) -> Option<&ShardView> {
        self.shards.as_ref()
    }

    /// Returns the caches of the primaries, in the order of [`controllers`](Self::controllers).
    pub fn primaries(&self) -> &[Arc<Source>] {
        &self.primaries
    }

    /// Returns the caches that each controller waits for, in the order of [`controllers`](Self::controllers).
    pub(crate) fn awaited_caches(&self) -> &[Vec<Arc<Source>>] {
        &self.awaited
    }

    /// Returns the declarations and queues of all controllers, in the order in which they were added.
    pub fn controllers(&self) -> &[(ControllerSpec, WorkQueue<ObjectKey>)] {
        &self.queues
    }
}
