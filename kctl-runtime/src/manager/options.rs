//! Options of a manager that are set before it runs.

use std::{sync::atomic::Ordering, time::Duration};

use kube::Client;

use super::Manager;
use crate::{
    clock::Clock,
    worker::{BeginObserver, Observer},
};

impl Manager {
    /// Adds the client of another cluster, for relations that are declared with `on = name`.
    ///
    /// Call it before the controllers that name the cluster are added. Leader election uses the first
    /// client, and the events of a controller use the client of its primary.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use kube::client::Body;
    /// # type Response = http::Response<Body>;
    /// # let offline = |_: http::Request<Body>| async { Err::<Response, _>(std::io::Error::other("offline")) };
    /// # let client = kube::Client::new(tower::service_fn(offline), "default");
    /// # let member_client = client.clone();
    /// use std::sync::Arc;
    /// use kctl_runtime::manager::Manager;
    ///
    /// let manager = Manager::new(client, "settings.example.com", Arc::new(|_report| {}))
    ///     .cluster("member-1", member_client);
    /// # drop(manager);
    /// # });
    /// # Ok::<_, std::io::Error>(())
    /// ```
    #[must_use]
    pub fn cluster(mut self, name: &str, client: Client) -> Self {
        self.clusters.insert(name.into(), client);
        self
    }

    /// Replaces the clock for times that are written into objects. The default is the system's.
    ///
    /// Timers, backoff and the election are not affected: they use tokio's clock, which tests can pause.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        self.shared_options.set_clock(clock);
        self
    }

    /// Sets a function that is called with controller, key and trace when a reconcile begins.
    ///
    /// Together with [`on_end`](Self::on_end) it can open and close a span of a tracing system.
    #[must_use]
    pub fn on_begin(self, begun: BeginObserver) -> Self {
        self.shared_options.set_begin_observer(begun);
        self
    }

    /// Adds a function that is called after each reconcile, after the earlier ones.
    #[must_use]
    pub fn on_end(self, ended: Observer) -> Self {
        self.shared_options.add_end_observer(ended);
        self
    }

    /// Sets the time that running reconciles get after the manager is stopped.
    ///
    /// The default is [`GRACEFUL_TIMEOUT`](super::GRACEFUL_TIMEOUT). Zero does not wait, and `None` waits without a limit.
    ///
    /// A Pod gets `terminationGracePeriodSeconds` between SIGTERM and SIGKILL, 30 s by default. Set that to at least
    /// this timeout and 15 s more. After the reconciles, events are sent (5 s) and the Lease is released (10 s).
    #[must_use]
    pub fn graceful_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.graceful_timeout = timeout;
        self
    }

    /// Derives trace ids from a seed, so that each run has the same ones. The default is random ids.
    ///
    /// Recorded runs of the simulator compare trace ids, so they need the same ones.
    #[must_use]
    pub fn trace_seed(self, seed: u64) -> Self {
        self.shared_options.seed_traces(seed);
        self
    }

    /// Sets the number of consecutive failures after which a `Warning` event is recorded on the object; 0 turns
    /// it off. The default is [`WARN_AFTER_FAILURES`](super::WARN_AFTER_FAILURES).
    ///
    /// A key gets the event each time it is given up, and after more than
    /// [`CONFLICTS_BEFORE_WARNING`](crate::worker::CONFLICTS_BEFORE_WARNING) conflicts in a row. Failures and conflicts are
    /// reported once until a success or a change of the spec resets their counts.
    #[must_use]
    pub fn warn_after_failures(self, failures: u32) -> Self {
        self.warn_after_failures.store(failures, Ordering::Relaxed);
        self
    }

    /// Limits caches and reconciles to these namespaces, instead of those that controllers declare.
    ///
    /// An empty list changes nothing. Cluster-scoped kinds are not limited. Applies to controllers that are
    /// added later.
    ///
    /// A Role per namespace is enough then for namespaced kinds, instead of a `ClusterRole`.
    #[must_use]
    pub fn namespaces(mut self, namespaces: Vec<String>) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Requests the initial state of each kind as a stream of watch events (KEP-3157, `WatchList`) where the API
    /// server supports it. See [`Source::stream_state`](crate::source::Source::stream_state).
    #[must_use]
    pub fn stream_states(self) -> Self {
        self.informers.0.stream_states();
        self
    }
}
