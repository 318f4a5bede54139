//! The event handlers of one controller: created with it, and subscribed to the stores when it runs.
//!
//! A handler turns a change of a cache into keys. Handlers without user code run inside the store's writer, so a change
//! and its key are never apart. A `map` or `when` function runs in its own task behind a bounded buffer. While it is
//! slow, the store and the other controllers that share the cache are not delayed. client-go gives each handler an
//! unbounded buffer instead (`tools/cache/shared_informer.go`, `processorListener`).
//!
//! An optional kind needs one thing more. Its CRD may appear or vanish without any object of it, and reconciles may
//! depend on that. So all primaries are queued when it happens.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::task::JoinSet;

use crate::{
    freezer,
    handler::{self, SpawnedHandler},
    key::ObjectKey,
    object::Stored,
    panic::panic_text,
    queue::{Add, Cause, WorkQueue},
    reconcile::Env,
    source::{Presence, Source},
    spec::{RelationKind, RelationSpec},
    store::{Change, Handler, SharedStore},
};

/// The handlers of one controller, one per relation that is cached.
pub(super) struct Handlers {
    env: Arc<Env>,
    queue: WorkQueue<ObjectKey>,
    /// Each cache with its handler: first the primary's, then the relations' in the order of the declaration.
    all: Vec<(Arc<Source>, Caller)>,
    /// Caches of optional kinds, with the tag that names the relation in a reconcile's reason.
    optional: Vec<(Arc<Source>, u32)>,
}

/// The task that calls a handler.
enum Caller {
    /// The writer of the store calls it, because it only enqueues a key.
    Writer(Handler),
    /// A separate task calls it, because it runs user code, which may be slow.
    SpawnedHandler(Arc<SpawnedHandler>),
}

impl Handlers {
    /// Builds the handlers without subscribing them.
    pub(super) fn new(env: &Arc<Env>, queue: &WorkQueue<ObjectKey>) -> Self {
        let primary = &env.spec.primary;
        let related = env.sources.iter().map(|(relation, source)| (relation, source));
        let relations = std::iter::once((primary, &env.primary)).chain(related).enumerate();
        let all = relations.map(|(index, (relation, source))| {
            let primaries = env.primary.store().clone();
            let handler = handler::for_relation(index, relation, primary, primaries, queue.clone());
            let caller = if relation.map.is_some() || relation.when.is_some() {
                Caller::SpawnedHandler(Arc::new(SpawnedHandler::new(&env.spec.name, name(relation), handler)))
            } else {
                Caller::Writer(handler)
            };
            (source.clone(), caller)
        });
        let all = all.chain(assignment_handler(env, queue));
        let optional = env.sources.iter().enumerate().filter(|(_, (source, _))| source.presence == Presence::Optional);
        let optional = optional.map(|(index, (_, source))| (source.clone(), handler::relation_tag(index + 1)));
        Self { all: all.collect(), optional: optional.collect(), env: env.clone(), queue: queue.clone() }
    }

    /// Returns the handlers that run in a separate task.
    pub(super) fn spawned_handlers(&self) -> impl Iterator<Item = &Arc<SpawnedHandler>> {
        self.all.iter().filter_map(|(_, caller)| match caller {
            Caller::SpawnedHandler(spawned) => Some(spawned),
            Caller::Writer(_) => None,
        })
    }

    /// Subscribes to the stores, and returns once all present objects have been handled.
    ///
    /// The subscriptions end when `alive` is dropped.
    ///
    /// "Handled" means queued, not reconciled. Workers that start after it find all objects in the queue, ordered by
    /// priority and not by the order of the lists (controller-runtime: `WaitForSync` of each source).
    pub(super) async fn start(&self, alive: &Arc<()>, tasks: &mut JoinSet<()>) {
        let mut subscriptions = Vec::new();
        for (source, caller) in &self.all {
            let handler = match caller {
                Caller::Writer(handler) => handler.clone(),
                Caller::SpawnedHandler(spawned) => {
                    let (spawned, env, queue) = (spawned.clone(), self.env.clone(), self.queue.clone());
                    let sender = spawned.sender();
                    freezer::spawn(tasks, async move { spawned.run(|| enqueue_all(&env, &queue)).await });
                    sender
                }
            };
            subscriptions.push(source.store().subscribe_while(handler, Arc::downgrade(alive)).await);
        }
        for (source, tag) in &self.optional {
            let (store, tag, env, queue) = (source.store().clone(), *tag, self.env.clone(), self.queue.clone());
            let n_changes = store.n_served_changes();
            let enqueue =
                async move { on_served_change(&store, n_changes, || enqueue_tagged(&env, &queue, tag)).await };
            freezer::spawn(tasks, enqueue);
        }
        for subscription in subscriptions {
            subscription.wait_until_delivered().await;
        }
        for spawned in self.spawned_handlers() {
            spawned.wait_until_delivered().await;
        }
    }
}

/// Returns a handler that enqueues a primary when the sharder assigns it to this shard of a controller ring, and when a
/// hand-over of it begins or ends.
///
/// It is separate from the handler of the declaration, whose `when` may drop these changes.
fn assignment_handler(env: &Arc<Env>, queue: &WorkQueue<ObjectKey>) -> Option<(Arc<Source>, Caller)> {
    let (ring, queue) = (env.gate.ring()?.clone(), queue.clone());
    let handler: Handler = Arc::new(move |change, _origin| {
        if ring.labels().changes_assignment(change) {
            // This ends a backoff, so that the key is handed over at once. It is not added as an event. The response to
            // an own write may be the first state with the label, and a key that failed ignores the events of its
            // writes.
            let key = change.latest().key().clone();
            queue.add(Add::new(key).tags(handler::relation_tag(0)).cause(Cause::Changed));
        }
    });
    Some((env.primary.clone(), Caller::Writer(handler)))
}

/// Queues every object with the priority of the initial list, behind real changes.
///
/// Nothing changed, so a key in the backoff of a failure keeps waiting. A key that was given up has no wait, and runs.
///
/// It serves the periodic resync, and a handler whose mailbox has merged changes.
pub(super) fn enqueue_all(env: &Env, queue: &WorkQueue<ObjectKey>) {
    for object in env.primary.store().all() {
        queue.add(
            Add::new(object.key().clone())
                .priority(handler::PRIORITY_INITIAL)
                .tags(handler::TAG_RESYNC)
                .cause(Cause::Unchanged),
        );
    }
}

/// Queues the objects of these slots, which this replica has just begun to own, as a start does. Returns those whose addition
/// the predicate of the primary drops: they are queued only if another relation enqueues them
/// ([`enqueue_by_relations`]).
pub(super) async fn enqueue_slots(env: &Env, queue: &WorkQueue<ObjectKey>, slots: &[u32]) -> BTreeSet<ObjectKey> {
    let add = |key: ObjectKey| add_initial(queue, key);
    let mut objects = env.primary.store().all();
    objects.retain(|object| slots.contains(&env.gate.slot(object.key())));
    let mut left: BTreeSet<ObjectKey> = objects.iter().map(|object| object.key().clone()).collect();
    for one in env.primary.all_unreadable() {
        let (key, is_deleted) = (one.stored.key(), one.stored.meta().deletion_timestamp().is_some());
        // Its finalizer waits for this controller, and no predicate can read it.
        if is_deleted && slots.contains(&env.gate.slot(key)) {
            add(key.clone());
        }
    }
    enqueue_by(env, queue, &env.spec.primary, &objects, &mut left).await;
    left
}

/// Queues each of these primaries that an object of another relation enqueues. Mappers see all objects of their kinds,
/// so it may take long.
pub(super) async fn enqueue_by_relations(env: &Env, queue: &WorkQueue<ObjectKey>, mut left: BTreeSet<ObjectKey>) {
    for (relation, source) in &env.sources {
        if left.is_empty() {
            return;
        }
        enqueue_by(env, queue, relation, &source.store().all(), &mut left).await;
    }
}

/// Queues each of these primaries that one of the objects enqueues through a relation, and removes it from `left`.
async fn enqueue_by(
    env: &Env,
    queue: &WorkQueue<ObjectKey>,
    relation: &RelationSpec,
    objects: &[Arc<Stored>],
    left: &mut BTreeSet<ObjectKey>,
) {
    for turn in objects.chunks(handler::HANDLED_AT_ONCE) {
        for key in initial_keys(env, relation, turn).await {
            if left.remove(&key) {
                add_initial(queue, key);
            }
        }
    }
}

fn add_initial(queue: &WorkQueue<ObjectKey>, key: ObjectKey) {
    queue.add(Add::new(key).priority(handler::PRIORITY_INITIAL).tags(handler::TAG_INITIAL));
}

/// Returns the keys that objects of an initial list enqueue through one relation. A panic of `map` or `when` is logged,
/// and its object enqueues nothing.
async fn initial_keys(env: &Env, relation: &RelationSpec, objects: &[Arc<Stored>]) -> Vec<ObjectKey> {
    let keys_of = |object: &Arc<Stored>| {
        handler::keys_of(relation, &Change::Added(object.clone()), &env.spec.primary, env.primary.store())
    };
    if relation.map.is_none() && relation.when.is_none() {
        return objects.iter().flat_map(keys_of).collect();
    }
    let keys_or_panic = |object: &Arc<Stored>| {
        catch_unwind(AssertUnwindSafe(|| keys_of(object))).unwrap_or_else(|panic| {
            tracing::error!(
                controller = env.spec.name,
                relation = name(relation),
                object = %object.key(),
                "`map` or `when` panicked: {}; the object enqueues nothing for this controller",
                panic_text(&*panic)
            );
            Vec::new()
        })
    };
    let keys = handler::run_user_code(|| objects.iter().flat_map(keys_or_panic).collect());
    tokio::task::yield_now().await;
    keys
}

/// Queues every object because an optional kind appeared or disappeared. No other handler does so, because the kind may
/// have no objects.
fn enqueue_tagged(env: &Env, queue: &WorkQueue<ObjectKey>, tag: u32) {
    for object in env.primary.store().all() {
        queue.add(Add::new(object.key().clone()).priority(handler::PRIORITY_INITIAL).tags(tag));
    }
}

/// Calls the function each time the kind of a store appears or disappears. Never returns.
async fn on_served_change(store: &SharedStore, mut n_changes: u64, queue: impl Fn()) {
    loop {
        n_changes = store.wait_for_served_change(n_changes).await;
        queue();
    }
}

/// Returns the declaration of a relation with its cluster, which is unique in a controller.
fn name(relation: &RelationSpec) -> String {
    let text = if relation.declared_as == RelationKind::Primary {
        format!("of = {}", relation.kind)
    } else {
        relation.text.clone()
    };
    if relation.cluster.is_empty() { text } else { format!("{text} on {}", relation.cluster) }
}
