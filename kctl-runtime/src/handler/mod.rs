//! Event handlers: they turn the changes of a store into keys on a work queue.
//!
//! A handler is a function that a [`SharedStore`] calls for each change, in order. [`for_object`] enqueues the key of the
//! changed object. [`for_relation`] does what the declaration of a controller asks for:
//!
//! | Relation | Queued keys |
//! |---|---|
//! | primary | the object itself |
//! | `owns = K` | the primary in the object's controller reference |
//! | `watches = K(map = f)` | the keys that the mapper `f` returns |
//! | `reads = K` | none, the cache is only read |
//!
//! Mappers run on the old and on the new state, so both the old and the new owner of an object are queued. A
//! [`predicate`] (`when = f`) drops changes before that. They correspond to controller-runtime's `pkg/handler` and
//! `pkg/predicate`.
//!
//! Handlers that run user code have a task and a mailbox each. A slow mapper therefore delays only its own controller,
//! and at [`CHANGES_WAITING_MAX`] waiting changes the changes of one object are merged.

mod backoff_effect;
pub(crate) mod mailbox;
pub mod predicate;
mod spawned;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use backoff_effect::effect_on_primary;
pub use mailbox::CHANGES_WAITING_MAX;
pub(crate) use spawned::{HANDLED_AT_ONCE, SpawnedHandler, run_user_code};

use crate::{
    declaration::{RelationKind, RelationSpec},
    key::ObjectKey,
    object::{Kind, Stored},
    own_writes,
    queue::{Add, BackoffEffect, TAG_CONFLICTED, TAG_REQUEUED, TAG_RETRIED, WorkQueue},
    store::{Change, Handler, Origin, SharedStore},
};

/// Priority of the objects in the initial list: changes that happen after the start go first. The value comes from
/// controller-runtime (`pkg/handler/eventhandler.go`, `LowPriority`).
pub const PRIORITY_INITIAL: i32 = -100;

// Tags are bits. The queue adds the tags of `queue/state.rs` itself, and does not interpret the others:
//
// | Bit | Tag | Defined in | `ReconcileReason` |
// |---|---|---|---|
// | 0 | `TAG_REQUEUED` | `queue/state.rs` | `is_requeue` |
// | 1 | `TAG_RETRIED` | `queue/state.rs` | `is_retry` |
// | 2 | `TAG_INITIAL` | here | `is_initial` |
// | 3 | `TAG_RESYNC` | here | `is_resync` |
// | 4 | `TAG_TRIGGERED` | here | `is_triggered` |
// | 5 | `TAG_CONFLICTED` | `queue/state.rs` | `is_conflict` |
// | 6 to 31 | `relation_tag` | here | `changed_kinds` |
const _: () = assert!(
    TAG_REQUEUED | TAG_RETRIED | TAG_INITIAL | TAG_RESYNC | TAG_TRIGGERED | TAG_CONFLICTED == !RELATION_TAGS,
    "each bit below the bits of the relations has one tag"
);

/// The tag of keys that are queued because their object was in the initial list, or because this replica gained their
/// slot.
pub(crate) const TAG_INITIAL: u32 = 1 << 2;
/// The tag of keys that a resync queued.
pub(crate) const TAG_RESYNC: u32 = 1 << 3;
/// The tag of keys that were queued from outside, by [`trigger`].
pub(crate) const TAG_TRIGGERED: u32 = 1 << 4;
/// The bit of the tag for changes of the primary. The bits above it belong to the other relations.
const TAG_PRIMARY_BIT: usize = 6;
/// All tags that represent a changed object.
pub(crate) const RELATION_TAGS: u32 = u32::MAX << TAG_PRIMARY_BIT;

/// Returns the tag for changes of one relation of a declaration: 0 is the primary. With more than 25 further cached
/// kinds, the rest share the last tag.
pub(crate) fn relation_tag(index: usize) -> u32 {
    1 << (TAG_PRIMARY_BIT + index).min(31)
}

/// Returns a handler that enqueues the key of each changed object: all that a program with one kind needs.
///
/// Objects of the initial list get [`PRIORITY_INITIAL`]. A change of the spec resets the failures of the key; a change
/// of the status alone does not end its backoff.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::{
///     handler,
///     object::{Kind, Stored},
///     queue::{QueueConfig, WorkQueue},
///     store::{Delta, SharedStore},
/// };
///
/// let store = Arc::new(SharedStore::default());
/// tokio::spawn(store.clone().write());
/// let queue = WorkQueue::new(QueueConfig::default());
/// let handled = store.subscribe(handler::for_object(queue.clone())).await;
///
/// let pod = r#"{"metadata":{"namespace":"default","name":"web-0","uid":"1","resourceVersion":"7"}}"#;
/// let pod = Stored::accept(&Kind::of::<Pod>(), pod).unwrap();
/// store.push(Delta::Replace(None, vec![Arc::new(pod)], "7".into())).await;
/// handled.wait_until_delivered().await;
/// assert_eq!(queue.get().await.unwrap().key.to_string(), "default/web-0");
/// # });
/// ```
pub fn for_object(queue: WorkQueue<ObjectKey>) -> Handler {
    Arc::new(move |change, origin| {
        add(&queue, change, change.latest().key().clone(), Effects::on_primary(change), (0, origin));
    })
}

/// Enqueues a key from outside of the loop, with the normal priority and the tag of triggers. A key that waits in a backoff
/// runs now.
///
/// Use it for events that no watch reports, for example a webhook of an external service.
///
/// ```
/// use kctl_runtime::{handler, key::ObjectKey, queue::{QueueConfig, WorkQueue}};
///
/// let queue = WorkQueue::new(QueueConfig::default());
/// handler::trigger(&queue, ObjectKey::new(Some("default"), "web"));
/// assert_eq!(queue.len(), 1);
/// ```
pub fn trigger(queue: &WorkQueue<ObjectKey>, key: ObjectKey) {
    queue.add(Add::new(key).tags(TAG_TRIGGERED));
}

/// Returns the handler of one relation of a controller: it enqueues the keys of the primaries that a change concerns.
///
/// `index` is the position of the relation among the cached kinds of the declaration: 0 for the primary, 1 for the
/// first of the others. [`changed_kinds`](crate::reconcile::ReconcileReason::changed_kinds) uses it to name the kinds.
/// `primaries` is the store of the primary, which mappers read.
pub fn for_relation(
    index: usize,
    relation: &RelationSpec,
    primary: &RelationSpec,
    primaries: Arc<SharedStore>,
    queue: WorkQueue<ObjectKey>,
) -> Handler {
    let (relation, kind, namespaced) = (relation.clone(), primary.kind.clone(), primary.namespaced);
    Arc::new(move |change, origin| {
        if !passes(&relation, change) {
            if let (RelationKind::Primary, Change::Deleted { last }) = (relation.declared_as, change) {
                free_entry(&queue, change, last.key(), origin);
            }
            return;
        }
        for (key, effects) in affected_primaries(&relation, change, PrimaryKind { kind: &kind, namespaced }, &primaries)
        {
            add(&queue, change, key, effects, (index, origin));
        }
    })
}

/// Returns the keys that the handler of a relation enqueues for a change.
pub(crate) fn keys_of(
    relation: &RelationSpec,
    change: &Change<Stored>,
    primary: &RelationSpec,
    primaries: &Arc<SharedStore>,
) -> Vec<ObjectKey> {
    if !passes(relation, change) {
        return Vec::new();
    }
    let primary = PrimaryKind { kind: &primary.kind, namespaced: primary.namespaced };
    affected_primaries(relation, change, primary, primaries).into_keys().collect()
}

#[derive(Clone, Copy)]
struct Effects {
    /// The effect on a key that failed.
    backoff: BackoffEffect,
    /// The least effect of an own write that explains the whole change.
    min_write_effect: BackoffEffect,
}

impl Effects {
    fn on_primary(change: &Change<Stored>) -> Self {
        let backoff = effect_on_primary(change);
        Self { backoff, min_write_effect: backoff }
    }

    /// Returns the effects on the key of another object. Any own write of the version explains the change, since the
    /// contents of these objects are not compared.
    fn on_other(backoff: BackoffEffect) -> Self {
        Self { backoff, min_write_effect: BackoffEffect::Keep }
    }

    fn max(self, other: Self) -> Self {
        Self {
            backoff: self.backoff.max(other.backoff),
            min_write_effect: self.min_write_effect.max(other.min_write_effect),
        }
    }
}

/// The kind of the primary, as controller references name it.
#[derive(Clone, Copy)]
struct PrimaryKind<'a> {
    kind: &'a Kind,
    namespaced: bool,
}

fn affected_primaries(
    relation: &RelationSpec,
    change: &Change<Stored>,
    primary: PrimaryKind<'_>,
    primaries: &Arc<SharedStore>,
) -> BTreeMap<ObjectKey, Effects> {
    let mut keys: BTreeMap<ObjectKey, Effects> = BTreeMap::new();
    let mut note = |key, effects: Effects| {
        let merged = keys.entry(key).or_insert(effects);
        *merged = effects.max(*merged);
    };
    for object in change.states() {
        match relation.declared_as {
            RelationKind::Primary => note(object.key().clone(), Effects::on_primary(change)),
            RelationKind::Owned => {
                if let Some(owner) = controller_key(object, primary) {
                    note(owner, Effects::on_other(BackoffEffect::Keep));
                }
            }
            _ => {}
        }
        if let Some(map) = &relation.map {
            for key in map(object, primaries) {
                note(key, Effects::on_other(BackoffEffect::End));
            }
        }
    }
    keys
}

/// Enqueues a key for a change, with the priority and the tag of the initial list or of the relation.
fn add(
    queue: &WorkQueue<ObjectKey>,
    change: &Change<Stored>,
    key: ObjectKey,
    effects: Effects,
    (index, origin): (usize, Origin),
) {
    let event = own_writes::event(change, effects.backoff, effects.min_write_effect);
    queue.add(Add::new(key).priority(priority(origin)).tags(tag(index, origin)).event(event));
}

/// Enqueues the key of a deleted primary whose predicate drops the deletion, if the queue has an entry of it. The run
/// finds no object and frees the entry; without it, a key that was given up would count as failing indefinitely.
fn free_entry(queue: &WorkQueue<ObjectKey>, change: &Change<Stored>, key: &ObjectKey, origin: Origin) {
    if queue.has_entry(key) {
        add(queue, change, key.clone(), Effects::on_primary(change), (0, origin));
    }
}

/// Returns the priority of a key: objects of the initial list wait behind fresh changes.
fn priority(origin: Origin) -> i32 {
    match origin {
        Origin::InitialList | Origin::LateList => PRIORITY_INITIAL,
        Origin::Live => 0,
    }
}

/// Returns the tag that records why a key was queued.
///
/// An object of a later list may be new to a primary that was reconciled without it. So another relation's object gets
/// the tag of the relation: with `TAG_INITIAL` alone, `converged` could skip the run. The primary would also lose its
/// requeue, because the add ends that wait.
fn tag(index: usize, origin: Origin) -> u32 {
    match (origin, index) {
        (Origin::InitialList, _) | (Origin::LateList, 0) => TAG_INITIAL,
        (Origin::LateList | Origin::Live, _) => relation_tag(index),
    }
}

/// Returns `true` unless the predicate of the relation (`when = f`) drops the change.
fn passes(relation: &RelationSpec, change: &Change<Stored>) -> bool {
    relation.when.as_ref().is_none_or(|when| when(change))
}

/// Returns the key of the primary that controls an object. References are compared by group and kind, so that a
/// reference with another version of the kind counts (controller-runtime, `pkg/handler/enqueue_owner.go`).
fn controller_key(object: &Stored, primary: PrimaryKind<'_>) -> Option<ObjectKey> {
    let owner = object.meta().controller()?;
    (owner.group() == primary.kind.group && owner.kind == primary.kind.kind).then(|| {
        let namespace = object.meta().namespace().filter(|_| primary.namespaced);
        ObjectKey::new(namespace, &owner.name)
    })
}
