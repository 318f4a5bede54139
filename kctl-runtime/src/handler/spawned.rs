//! Handlers that run user code (`map`, `when`). Each has a mailbox and a task, so that a slow one delays only its own
//! controller.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::watch,
    task,
    time::Instant,
};

use super::mailbox::{CHANGES_WAITING_MAX, Mailbox, MailboxSender, QueuedChange};
use crate::{panic::panic_text, store::Handler};

/// Maximum number of changes handled in one turn, before other tasks of the thread run.
pub(crate) const HANDLED_AT_ONCE: usize = 16;

/// A handler that cannot keep up enqueues all objects of its controller once per this many changes, or when it has
/// caught up.
const REQUEUE_ALL_INTERVAL: usize = CHANGES_WAITING_MAX;

/// A handler with its own task, separate from the writer of its store. It is at most [`CHANGES_WAITING_MAX`] changes
/// plus one per object behind.
pub(crate) struct SpawnedHandler {
    controller: String,
    relation: String,
    handler: Handler,
    mailbox: Arc<Mailbox>,
    current: Mutex<Option<CurrentChange>>,
    handled: watch::Sender<u64>,
}

#[derive(Clone, Copy)]
struct CurrentChange {
    waits_since: Instant,
    begun: Instant,
}

impl SpawnedHandler {
    pub(crate) fn new(controller: &str, relation: String, handler: Handler) -> Self {
        Self {
            controller: controller.into(),
            relation,
            handler,
            mailbox: Arc::default(),
            current: Mutex::default(),
            handled: watch::Sender::new(0),
        }
    }

    /// Returns the handler that the store calls: it only puts changes into the mailbox. Once it is dropped,
    /// [`run`](Self::run) ends after the last change.
    pub(crate) fn sender(&self) -> Handler {
        let sender = MailboxSender::new(self.mailbox.clone());
        Arc::new(move |change, origin| sender.put(change, origin))
    }

    /// Handles changes until the sender is dropped.
    ///
    /// `all` queues every object of the controller. It is called after states were merged away. A reconcile may have
    /// read one of these states, and no change will report that it has passed. A panic of `map` or `when` is logged and
    /// costs one change.
    ///
    /// # Cancel safety
    /// Dropping the future ends the handler.
    pub(crate) async fn run(&self, all: impl Fn() + Send + Sync) {
        let mut n_behind = 0;
        while let Some(first) = poll_fn(|context| self.mailbox.poll_recv(context)).await {
            let run_batch = || {
                let rest = std::iter::from_fn(|| self.mailbox.take());
                std::iter::once(first).chain(rest).take(HANDLED_AT_ONCE).map(|queued| self.handle(&queued)).count()
            };
            n_behind += run_user_code(run_batch);
            let (n_put, n_taken) = self.mailbox.counts();
            if n_put == n_taken || n_behind >= REQUEUE_ALL_INTERVAL {
                n_behind = 0;
                self.catch_up(&all);
            }
            self.handled.send_replace(n_taken);
            task::yield_now().await;
        }
    }

    fn handle(&self, queued: &QueuedChange) {
        *self.current.lock() = Some(CurrentChange { waits_since: queued.since, begun: Instant::now() });
        let QueuedChange { change, origin, .. } = queued;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.handler)(change, *origin))) {
            tracing::error!(
                controller = self.controller,
                relation = self.relation,
                object = %change.latest().key(),
                "`map` or `when` panicked: {}; this change of the object enqueues nothing for this controller",
                panic_text(&*panic)
            );
        }
        *self.current.lock() = None;
    }

    fn catch_up(&self, all: &impl Fn()) {
        if !self.mailbox.has_skipped() {
            return;
        }
        tracing::warn!(
            controller = self.controller,
            relation = self.relation,
            "`map` and `when` were more than {CHANGES_WAITING_MAX} changes behind and did not see every state: all objects of the \
             controller are reconciled once; make them quicker, by an index for instance"
        );
        all();
    }

    /// Returns once every change that is in the mailbox now has been handled.
    pub(crate) async fn wait_until_delivered(&self) {
        let (n_put, _) = self.mailbox.counts();
        let mut handled = self.handled.subscribe();
        let _ended = handled.wait_for(|n_handled| *n_handled >= n_put).await;
    }

    pub(crate) fn controller(&self) -> &str {
        &self.controller
    }

    pub(crate) fn relation(&self) -> &str {
        &self.relation
    }

    /// Returns the number of changes whose turn has not ended. If it is 0, all keys of the changes are queued, and so are
    /// all objects after states were merged away.
    pub(crate) fn waiting(&self) -> usize {
        // Read first. A change that is put in between counts as waiting, where the reverse would hide one.
        let n_handled = self.n_handled();
        let (n_put, _) = self.mailbox.counts();
        debug_assert!(n_handled <= n_put, "only changes that were put are handled");
        usize::try_from(n_put - n_handled).unwrap_or(usize::MAX)
    }

    /// Returns how long the change that is handled now, or next, has waited.
    pub(crate) fn lag(&self) -> Duration {
        let current = self.current.lock().map(|current| current.waits_since);
        current.or_else(|| self.mailbox.waits_since()).map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Returns how long the present change has been handled, or `None` between two changes.
    pub(crate) fn busy_for(&self) -> Option<Duration> {
        self.current.lock().map(|current| current.begun.elapsed())
    }

    /// Returns the number of changes that were taken since the start. It grows with each change, also within a turn.
    pub(crate) fn n_taken(&self) -> u64 {
        self.mailbox.counts().1
    }

    /// Returns the number of changes in the turns that have ended.
    fn n_handled(&self) -> u64 {
        *self.handled.borrow()
    }
}

/// Runs `map` or `when`, which may block. The other tasks of the thread move to another thread, if there is one.
pub(crate) fn run_user_code<T>(run: impl FnOnce() -> T) -> T {
    // `block_in_place` panics on a runtime with one thread.
    let has_threads = Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread;
    if has_threads { task::block_in_place(run) } else { run() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::Pod;
    use tokio::{task::JoinHandle, time::timeout};

    use super::*;
    use crate::{
        object::{Kind, Stored},
        store::{Change, Origin},
    };

    fn pod(name: &str, version: usize) -> Arc<Stored> {
        let json = format!(r#"{{"metadata":{{"name":"{name}","uid":"1","resourceVersion":"{version}"}}}}"#);
        Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    }

    /// A handler that records its changes, and panics at `bad`.
    struct World {
        spawned: Arc<SpawnedHandler>,
        sender: Handler,
        received: Arc<Mutex<Vec<String>>>,
        n_all: Arc<AtomicUsize>,
    }

    impl World {
        fn new() -> Self {
            let received: Arc<Mutex<Vec<String>>> = Arc::default();
            let notes = received.clone();
            let handler: Handler = Arc::new(move |change, origin| {
                let object = change.latest();
                assert!(&*object.key().name != "bad", "planted");
                let initial = if origin == Origin::InitialList { "initial " } else { "" };
                notes.lock().push(format!("{initial}{}@{}", object.key().name, object.meta().resource_version));
            });
            let spawned = Arc::new(SpawnedHandler::new("web", "watches = Pod".into(), handler));
            Self { sender: spawned.sender(), spawned, received, n_all: Arc::default() }
        }

        fn put(&self, name: &str, version: usize, origin: Origin) {
            (self.sender)(&Change::Added(pod(name, version)), origin);
        }

        fn run(&self) -> JoinHandle<()> {
            let (spawned, n_all) = (self.spawned.clone(), self.n_all.clone());
            let count_all = move || {
                n_all.fetch_add(1, Ordering::Relaxed);
            };
            tokio::spawn(async move { spawned.run(count_all).await })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handler_gets_all_changes_in_order() {
        let world = World::new();
        world.put("a", 1, Origin::InitialList);
        let task = world.run();
        world.spawned.wait_until_delivered().await;
        world.put("a", 2, Origin::Live);
        world.put("b", 3, Origin::Live);
        world.spawned.wait_until_delivered().await;
        assert_eq!(*world.received.lock(), ["initial a@1", "a@2", "b@3"]);
        drop(world.sender);
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn handler_that_panics_misses_that_change_alone() {
        let world = World::new();
        let _task = world.run();
        for (name, version) in [("a", 1), ("bad", 2), ("b", 3)] {
            world.put(name, version, Origin::Live);
        }
        world.spawned.wait_until_delivered().await;
        assert_eq!(*world.received.lock(), ["a@1", "b@3"]);
        assert_eq!((world.spawned.waiting(), world.spawned.busy_for()), (0, None));
    }

    #[tokio::test(start_paused = true)]
    async fn overflow_merges_changes_and_queues_all_objects_once() {
        // Beyond a full mailbox, `n_objects` objects change `n_versions` times each.
        for (n_objects, n_versions, n_all) in [(1, 0, 0), (500, 1, 0), (500, 2, 1), (1, 5_000, 1)] {
            let world = World::new();
            for version in 0..CHANGES_WAITING_MAX {
                world.put("early", version, Origin::Live);
            }
            for version in 1..=n_versions {
                for object in 0..n_objects {
                    world.put(&format!("late-{object}"), version, Origin::Live);
                }
            }
            let n_held = if n_versions == 0 { 0 } else { n_objects };
            assert_eq!(world.spawned.waiting(), CHANGES_WAITING_MAX + n_held, "{n_versions} versions");
            let _task = world.run();
            world.spawned.wait_until_delivered().await;
            assert_eq!(world.received.lock().len(), CHANGES_WAITING_MAX + n_held);
            let newest = world
                .received
                .lock()
                .iter()
                .skip(CHANGES_WAITING_MAX)
                .all(|note| note.ends_with(&format!("@{n_versions}")));
            assert!(newest, "{:?}", world.received.lock().last());
            assert_eq!(world.n_all.load(Ordering::Relaxed), n_all, "{n_versions} versions of {n_objects} objects");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handler_always_behind_still_queues_all_objects() {
        let world = World::new();
        for version in 0..2 * CHANGES_WAITING_MAX {
            world.put("first", version, Origin::Live);
        }
        let _task = world.run();
        // Each turn adds one more object than the handler takes, so it never catches up.
        for version in 0..4 * CHANGES_WAITING_MAX / HANDLED_AT_ONCE {
            for object in 0..=HANDLED_AT_ONCE {
                world.put(&format!("hot-{object}"), version, Origin::Live);
            }
            task::yield_now().await;
        }
        assert!(world.spawned.waiting() > 0, "it has caught up");
        assert!(world.n_all.load(Ordering::Relaxed) > 0);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_wait_until_all_objects_are_queued() {
        let world = World::new();
        for version in 0..CHANGES_WAITING_MAX {
            world.put("early", version, Origin::Live);
        }
        for version in 0..2 {
            world.put("late", version, Origin::Live);
        }
        let (spawned, sender, waiting) = (world.spawned.clone(), world.sender.clone(), Arc::<Mutex<Vec<_>>>::default());
        let seen = waiting.clone();
        // The first call comes at the interval. Another merged change causes a second one, after the last change.
        let all = move || {
            let mut seen = seen.lock();
            seen.push(spawned.waiting());
            if seen.len() == 1 {
                sender(&Change::Added(pod("late", 2)), Origin::Live);
            }
        };
        let running = world.spawned.clone();
        tokio::spawn(async move { running.run(all).await });
        world.spawned.wait_until_delivered().await;
        assert_eq!(*waiting.lock(), [HANDLED_AT_ONCE + 1, 1]);
        assert_eq!(world.spawned.waiting(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn lag_is_the_wait_of_the_next_change() {
        let world = World::new();
        assert_eq!(world.spawned.lag(), Duration::ZERO);
        world.put("a", 1, Origin::Live);
        tokio::time::advance(Duration::from_secs(10)).await;
        world.put("b", 2, Origin::Live);
        assert_eq!((world.spawned.lag(), world.spawned.waiting()), (Duration::from_secs(10), 2));
        assert!(
            timeout(Duration::from_secs(1), world.spawned.wait_until_delivered()).await.is_err(),
            "no task has taken it"
        );
        let _task = world.run();
        world.spawned.wait_until_delivered().await;
        assert_eq!((world.spawned.lag(), world.spawned.waiting()), (Duration::ZERO, 0));
    }
}
