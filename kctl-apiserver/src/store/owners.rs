//! The graph of owner references by uid: follows each change of an object, and queues the objects that the garbage
//! collector has to check.
//!
//! Upstream: `graph_builder.go` of `pkg/controller/garbagecollector`. As there, most writes queue nothing. An object
//! that gets an owner which is already being deleted is kept until that owner is checked again.
//!
//! The store updates the graph in the same step as the write, not through watches. The collector never sees an outdated
//! graph, unlike one behind a watch.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::Key;
use crate::{
    deletion::{FOREGROUND, ORPHAN, is_being_deleted},
    registry::{BuiltInKinds, Registry, StoreRoles},
    status::GroupResource,
};

/// A resource and the key of an object.
type ObjectRef = (GroupResource, Key);

/// The graph of owner references.
#[derive(Clone)]
pub(crate) struct Owners {
    /// The built-in kinds. Some are ignored by the garbage collector, and some are emptied before they are removed.
    kinds: &'static BuiltInKinds,
    /// The object of each uid. A uid is present as long as its object exists.
    objects_by_uid: HashMap<String, ObjectRef>,
    /// The objects that name a uid as an owner. Invariant: no set is empty. Owners need not exist: a missing one is
    /// what makes its dependents garbage.
    dependents: HashMap<String, BTreeSet<ObjectRef>>,
    /// The number of references with `blockOwnerDeletion` to a uid. Invariant: no number is 0.
    n_blocking: HashMap<String, usize>,
    /// The uids of objects in foreground deletion: their dependents are deleted first. Invariant: each is in
    /// `objects_by_uid`.
    waiting: HashSet<String>,
    /// The uids in `waiting` with blocking dependents that the collector may not have seen. Other owners are not
    /// checked again before their last blocking dependent is gone.
    unseen: HashSet<String>,
    /// Objects that may have become garbage, or whose deletion may proceed.
    delete_queue: Queue,
    /// Objects with an owner of a kind that is not served, so it is not known whether the owner exists. They are
    /// checked again when the served kinds change.
    undecided: BTreeSet<ObjectRef>,
}

/// Objects in the order in which they were first added: dependents come before the owner that waits for them.
#[derive(Clone, Default)]
struct Queue {
    /// The queue, without duplicates.
    order: VecDeque<ObjectRef>,
    /// The objects in `order`. An object is queued at most once.
    queued: HashSet<ObjectRef>,
}

impl Queue {
    /// Appends an object, unless it is queued.
    fn insert(&mut self, object_ref: ObjectRef) {
        if self.queued.insert(object_ref.clone()) {
            self.order.push_back(object_ref);
        }
    }

    /// Appends several objects.
    fn extend(&mut self, object_refs: impl IntoIterator<Item = ObjectRef>) {
        object_refs.into_iter().for_each(|object_ref| self.insert(object_ref));
    }

    /// Takes the first object.
    fn pop_first(&mut self) -> Option<ObjectRef> {
        let first = self.order.pop_front()?;
        self.queued.remove(&first);
        debug_assert_eq!(self.order.len(), self.queued.len(), "an object is queued at most once");
        Some(first)
    }
}

/// Returns `metadata.ownerReferences`.
fn references(object: Option<&Value>) -> impl Iterator<Item = &Value> {
    let references = object.and_then(|object| object["metadata"]["ownerReferences"].as_array());
    references.into_iter().flatten()
}

/// Returns the uids in the owner references of an object.
fn owner_uids(object: Option<&Value>) -> impl Iterator<Item = &str> {
    references(object).filter_map(|reference| reference["uid"].as_str())
}

/// Returns the uids of the owners whose foreground deletion an object blocks.
fn blocked_owners(object: Option<&Value>) -> impl Iterator<Item = &str> {
    let blocking = references(object).filter(|reference| reference["blockOwnerDeletion"] == true);
    blocking.filter_map(|reference| reference["uid"].as_str())
}

/// Returns `true` if `metadata.finalizers` contains the name.
pub(crate) fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == name))
}

/// Returns `true` if the dependent with this reference blocks the foreground deletion of its owner. References without
/// `blockOwnerDeletion` do not hold their owner.
pub(crate) fn is_blocked_by(reference: &Value, uid: &str) -> bool {
    reference["blockOwnerDeletion"] == true && reference["uid"] == uid
}

/// Returns `true` for an object without owners that is not being deleted: the graph only has its uid.
fn has_only_uid(object: &Value) -> bool {
    let meta = &object["metadata"];
    !meta["ownerReferences"].is_array() && !meta["deletionTimestamp"].is_string()
}

/// Returns `true` if this write starts the deletion of an object with a finalizer (`deletionStartsWithFinalizer`).
fn starts_deletion_with(finalizer: &str, before: Option<&Value>, after: &Value) -> bool {
    let is_deleting = |object: &Value| is_being_deleted(object) && has_finalizer(object, finalizer);
    is_deleting(after) && !before.is_some_and(is_deleting)
}

impl Owners {
    /// Creates the graph of a store without objects.
    pub(super) fn new(kinds: &'static BuiltInKinds) -> Self {
        Self {
            kinds,
            objects_by_uid: HashMap::new(),
            dependents: HashMap::new(),
            n_blocking: HashMap::new(),
            waiting: HashSet::new(),
            unseen: HashSet::new(),
            delete_queue: Queue::default(),
            undecided: BTreeSet::new(),
        }
    }

    /// Updates the graph after a write (`after`) or a removal (`None`) of an object. `before` is `None` for a created
    /// object and after a start. An object whose uid has changed has been replaced: the old one is removed, and the new one
    /// is added.
    pub(super) fn update(
        &mut self,
        registry: &Registry,
        resource: &GroupResource,
        key: &Key,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        // The common case: a write that changes neither owners nor deletion queues nothing.
        if let (Some(before), Some(after)) = (before, after)
            && before["metadata"]["uid"] == after["metadata"]["uid"]
            && [before, after].iter().all(|object| has_only_uid(object))
        {
            return;
        }
        if after.is_none() {
            self.queue_containers(resource, key);
        }
        if self.kinds.find(resource).is_some_and(|kind| kind.delete.is_ignored_by_gc) {
            return;
        }
        let object_ref = (resource.clone(), key.clone());
        if self.undecided.remove(&object_ref) {
            self.delete_queue.insert(object_ref.clone());
        }
        for uid in owner_uids(before) {
            if let Some(dependents) = self.dependents.get_mut(uid) {
                debug_assert!(!dependents.is_empty(), "an owner without dependents has no entry");
                dependents.remove(&object_ref);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        for uid in blocked_owners(before) {
            if let Some(n_blocking) = self.n_blocking.get_mut(uid) {
                *n_blocking -= 1;
                if *n_blocking == 0 {
                    self.n_blocking.remove(uid);
                }
            }
        }
        match (before, after) {
            (Some(replaced), Some(after)) if replaced["metadata"]["uid"] != after["metadata"]["uid"] => {
                self.remove(replaced);
                self.add_references(registry, object_ref, None, after);
            }
            (_, Some(after)) => self.add_references(registry, object_ref, before, after),
            (Some(removed), None) => self.remove(removed),
            (None, None) => {}
        }
        debug_assert!(self.waiting.len() <= self.objects_by_uid.len(), "an object that is gone waits for no dependent");
    }

    /// Adds the references of a written object to the graph. Queues the object if an owner is missing or a deletion
    /// begins. Searches in sets: an object may have tens of thousands of references.
    fn add_references(&mut self, registry: &Registry, object_ref: ObjectRef, before: Option<&Value>, after: &Value) {
        let uid = after["metadata"]["uid"].as_str().unwrap_or_default();
        self.objects_by_uid.insert(uid.into(), object_ref.clone());
        for owner in owner_uids(Some(after)) {
            self.dependents.entry(owner.into()).or_default().insert(object_ref.clone());
        }
        for owner in blocked_owners(Some(after)) {
            *self.n_blocking.entry(owner.into()).or_default() += 1;
        }
        let blocked_before: HashSet<&str> = blocked_owners(before).collect();
        let is_unseen = |owner: &&str| self.waiting.contains(*owner) && !blocked_before.contains(*owner);
        self.unseen.extend(blocked_owners(Some(after)).filter(is_unseen).map(str::to_owned));
        // An owner that this object no longer blocks may be deleted now.
        let blocked: HashSet<&str> = blocked_owners(Some(after)).collect();
        for owner in blocked_owners(before).filter(|owner| !blocked.contains(owner)) {
            self.enqueue_owner(owner);
        }
        let known: HashSet<&str> = owner_uids(before).collect();
        let is_new = |reference: &&Value| reference["uid"].as_str().is_none_or(|owner| !known.contains(owner));
        if references(Some(after)).filter(is_new).any(|reference| !self.has_owner(registry, reference, &object_ref.1)) {
            self.delete_queue.insert(object_ref.clone());
        }
        if starts_deletion_with(FOREGROUND, before, after) {
            self.waiting.insert(uid.into());
            self.unseen.insert(uid.into());
            self.delete_queue.extend(self.dependents.get(uid).into_iter().flatten().cloned());
            self.delete_queue.insert(object_ref.clone());
        }
        let is_emptied_first = self.is_emptied_first(&object_ref.0) && is_being_deleted(after);
        if is_emptied_first || starts_deletion_with(ORPHAN, before, after) {
            self.delete_queue.insert(object_ref);
        }
    }

    /// Returns `true` if the object with the uid of a reference exists. It must have the name, kind and version of the
    /// reference, in a namespace that the dependent can refer to. A reference that does not match counts as absent even
    /// if an object has its uid. Upstream looks owners up by kind and name, and then compares the uid. A namespaced
    /// owner has to be in the namespace of the dependent.
    fn has_owner(&self, registry: &Registry, reference: &Value, dependent: &Key) -> bool {
        let owner = reference["uid"].as_str().and_then(|uid| self.objects_by_uid.get(uid));
        owner.is_some_and(|(group_resource, (namespace, name))| {
            let is_reachable = namespace.is_empty() || *namespace == dependent.0;
            let resource =
                registry.any_version(group_resource).filter(|_| is_reachable && reference["name"] == name.as_str());
            resource.is_some_and(|resource| {
                reference["kind"] == resource.kind_name() && reference["apiVersion"] == resource.api_version().as_str()
            })
        })
    }

    /// Removes an object from the graph. Its dependents, and owners that waited for it, are queued.
    fn remove(&mut self, removed: &Value) {
        let uid = removed["metadata"]["uid"].as_str().unwrap_or_default();
        self.objects_by_uid.remove(uid);
        self.waiting.remove(uid);
        self.unseen.remove(uid);
        self.delete_queue.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        for owner in owner_uids(Some(removed)) {
            self.enqueue_owner(owner);
        }
    }

    /// Queues an owner in foreground deletion, unless it still waits for dependents that the collector has seen: then
    /// each of many dependents would cause a check of all others.
    fn enqueue_owner(&mut self, uid: &str) {
        if self.waiting.contains(uid) && (!self.is_blocked(uid) || self.unseen.contains(uid)) {
            self.delete_queue.extend(self.objects_by_uid.get(uid).cloned());
        }
    }

    /// Returns `true` for a Namespace and a CRD, whose own controllers complete the deletion.
    fn is_emptied_first(&self, resource: &GroupResource) -> bool {
        self.kinds.find(resource).is_some_and(|kind| kind.delete.mark.is_some())
    }

    /// Queues the Namespace and the CRD of a removed object, which may wait until they are empty. They are queued even
    /// if they are not being deleted; the collector then leaves them alone.
    fn queue_containers(&mut self, resource: &GroupResource, key: &Key) {
        let StoreRoles { definition, namespace, .. } = self.kinds.roles;
        self.delete_queue.insert((namespace.group_resource(), (String::new(), key.0.clone())));
        self.delete_queue.insert((definition.group_resource(), (String::new(), resource.to_string())));
    }

    /// Returns the objects that name this uid as an owner.
    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Returns `true` if the object is in foreground deletion.
    pub(crate) fn is_waiting(&self, uid: &str) -> bool {
        self.waiting.contains(uid)
    }

    /// Returns `true` if a dependent blocks the foreground deletion of the object.
    pub(crate) fn is_blocked(&self, uid: &str) -> bool {
        self.n_blocking.contains_key(uid)
    }

    /// Returns `true` if the object has blocking dependents that the collector may not have seen. From now on, it has
    /// seen them.
    pub(crate) fn take_unseen(&mut self, uid: &str) -> bool {
        self.unseen.remove(uid)
    }

    /// Queues an object for the garbage collector.
    pub(crate) fn enqueue(&mut self, object_ref: ObjectRef) {
        self.delete_queue.insert(object_ref);
    }

    /// Removes an object from consideration until it changes, or until other kinds are served. Its owner may belong to
    /// a CRD that is installed later; deleting it would lose data.
    pub(crate) fn mark_absent_owner(&mut self, object_ref: ObjectRef) {
        self.undecided.insert(object_ref);
    }

    /// Queues the undecided objects, because other kinds are served now.
    pub(super) fn requeue_undecided(&mut self) {
        self.delete_queue.extend(std::mem::take(&mut self.undecided));
    }

    /// Takes the next object that the garbage collector has to check.
    pub(crate) fn next_suspect(&mut self) -> Option<ObjectRef> {
        self.delete_queue.pop_first()
    }

    /// Returns the length of the queue.
    pub(crate) fn n_suspects(&self) -> usize {
        self.delete_queue.order.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{clock::Clock, status::GroupResource, store::Store};

    /// Takes minutes if each reference is searched in the whole list.
    #[test]
    fn many_owners_are_compared_as_sets() {
        let mut store = Store::new(crate::kinds::built_in(), Clock::System, 0);
        for blocks in [true, false] {
            let owner = |n: u32| json!({ "uid": n.to_string(), "blockOwnerDeletion": blocks });
            let owners: Vec<_> = (0..50_000).map(owner).collect();
            let object = json!({ "metadata": { "name": "a", "uid": "a", "ownerReferences": owners } });
            store.put(&GroupResource::new("", "secrets"), ("default".into(), "a".into()), object);
        }
        assert_eq!(store.owners().n_suspects(), 1);
    }

    #[test]
    fn replaced_object_no_longer_exists_as_owner() {
        let mut store = Store::new(crate::kinds::built_in(), Clock::System, 0);
        let secrets = GroupResource::new("", "secrets");
        let key = |name: &str| ("default".to_owned(), name.to_owned());
        let dependent = json!({ "metadata": { "name": "b", "uid": "b", "ownerReferences": [{ "uid": "old" }] } });
        for uid in ["old", "new"] {
            store.put(&secrets, key("a"), json!({ "metadata": { "name": "a", "uid": uid } }));
            store.put(&secrets, key("b"), dependent.clone());
        }
        let known = |uid: &str| store.owners.objects_by_uid.contains_key(uid);
        assert_eq!(["old", "new", "b"].map(known), [false, true, true]);
    }
}
