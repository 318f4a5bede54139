//! Changes → keys: the object itself, its controller, or what a mapper says. Reads changes of stores, adds to a work queue.

mod aside;
pub(crate) mod mailbox;
pub mod predicate;
mod weight;

use std::{collections::BTreeMap, sync::Arc};

pub(crate) use aside::Aside;
pub use mailbox::CHANGES_WAITING_MAX;
use weight::Weight;

use crate::{
    echo,
    key::ObjectKey,
    object::{Kind, Stored},
    queue::{Cause, WorkQueue},
    spec::{RelationSpec, Role},
    store::{Change, Handler, SharedStore},
};

/// Priority of what is there when a program starts: fresh changes go first (controller-runtime, `handler/eventhandler.go`).
pub const PRIORITY_INITIAL: i32 = -100;

/// The tag of what was there at the start.
pub const TAG_INITIAL: u32 = 1 << 2;
/// The tag of a resync.
pub const TAG_RESYNC: u32 = 1 << 3;
/// The tag of keys from outside.
pub const TAG_TRIGGERED: u32 = 1 << 4;
/// The tag of the primary's changes; those of the relations follow.
const TAG_PRIMARY_BIT: usize = 5;
/// All tags of changed objects.
pub(crate) const RELATION_TAGS: u32 = u32::MAX << TAG_PRIMARY_BIT;

/// The tag of changes of one kind of a declaration: 0 is the primary. Declarations of more than 26 cached kinds share the last.
pub(crate) fn relation_tag(index: usize) -> u32 {
    1 << (TAG_PRIMARY_BIT + index).min(31)
}

/// Returns a handler that queues the key of each changed object; initial objects have a lower priority. It is the only handler that a
/// program with one kind and without the macro needs.
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
/// handled.delivered().await;
/// assert_eq!(queue.get().await.unwrap().key.to_string(), "default/web-0");
/// # });
/// ```
pub fn for_object(queue: WorkQueue<ObjectKey>) -> Handler {
    Arc::new(move |change, initial| {
        add(&queue, change, change.latest().key().clone(), Weight::of_primary(change), (0, initial));
    })
}

/// Queues a key from outside, as if its object had changed.
pub fn trigger(queue: &WorkQueue<ObjectKey>, key: ObjectKey) {
    queue.add_tagged(key, 0, TAG_TRIGGERED);
}

/// The handler of one relation: queues the keys that a change concerns. `index` is 0 for the primary, and 1 for the first of
/// the other cached kinds: it tells in [`Context::reason`](crate::reconcile::Context::reason) what changed.
pub fn for_relation(
    index: usize,
    relation: &RelationSpec,
    primary: &RelationSpec,
    primaries: Arc<SharedStore>,
    queue: WorkQueue<ObjectKey>,
) -> Handler {
    let relation = relation.clone();
    let primary = (primary.kind.clone(), primary.namespaced);
    Arc::new(move |change, initial| {
        if !passes(&relation, change) {
            return;
        }
        for (key, weight) in concerned(&relation, change, &primary, &primaries) {
            add(&queue, change, key, weight, (index, initial));
        }
    })
}

/// The keys that a change concerns, and how much it means for each of them.
fn concerned(
    relation: &RelationSpec,
    change: &Change<Stored>,
    primary: &(Kind, bool),
    primaries: &Arc<SharedStore>,
) -> BTreeMap<ObjectKey, Weight> {
    let mut keys: BTreeMap<ObjectKey, Weight> = BTreeMap::new();
    let mut note = |key, weight: Weight| {
        let known = keys.entry(key).or_insert(weight);
        *known = weight.max(*known);
    };
    for object in change.states() {
        match relation.role {
            Role::Primary => note(object.key().clone(), Weight::of_primary(change)),
            Role::Owned => {
                if let Some(owner) = controller_key(object, &primary.0, primary.1) {
                    note(owner, Weight::Unchanged);
                }
            }
            _ => {}
        }
        if let Some(map) = &relation.map {
            for key in map(object, primaries) {
                note(key, Weight::Asked);
            }
        }
    }
    keys
}

fn add(
    queue: &WorkQueue<ObjectKey>,
    change: &Change<Stored>,
    key: ObjectKey,
    weight: Weight,
    (index, initial): (usize, bool),
) {
    let cause = match weight {
        Weight::Unchanged => Cause::Unchanged,
        Weight::Asked => Cause::Asked,
        Weight::Changed => Cause::Changed,
    };
    queue.add_brought(key, priority(initial), cause, tag(index, initial), echo::brought(change));
}

fn priority(initial: bool) -> i32 {
    if initial { PRIORITY_INITIAL } else { 0 }
}

fn tag(index: usize, initial: bool) -> u32 {
    if initial { TAG_INITIAL } else { relation_tag(index) }
}

fn passes(relation: &RelationSpec, change: &Change<Stored>) -> bool {
    relation.when.as_ref().is_none_or(|when| when(change))
}

/// The primary that controls an object. References are compared by group and kind: one written with another version of
/// the same kind counts (controller-runtime, `handler/enqueue_owner.go`).
fn controller_key(object: &Stored, primary: &Kind, namespaced: bool) -> Option<ObjectKey> {
    let owner = object.meta().controller()?;
    (owner.group() == primary.group && owner.kind == primary.kind).then(|| {
        let namespace = object.meta().namespace().filter(|_| namespaced);
        ObjectKey::new(namespace, &owner.name)
    })
}
