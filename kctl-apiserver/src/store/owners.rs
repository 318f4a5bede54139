//! Who owns whom, by uid: reads each change of an object, and hands on what the garbage collector has to look at.
//!
//! Upstream: `graph_builder.go` of `pkg/controller/garbagecollector`. As there, most writes of an object have nobody look
//! at it: one that gets an owner which is being deleted already stays until that owner is looked at again.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::{EVENTS, Key};
use crate::{
    deletion::{FOREGROUND, ORPHAN},
    kinds::{apiextensions::custom_resource_definition, core::namespace},
    registry::Registry,
    status::GroupResource,
};

type ObjectRef = (GroupResource, Key);

/// The graph of owner references.
#[derive(Clone, Default)]
pub(crate) struct Owners {
    places: HashMap<String, ObjectRef>,
    dependents: HashMap<String, BTreeSet<ObjectRef>>,
    /// Those whose dependents are deleted before them, by uid.
    waiting: HashSet<String>,
    /// What may have become garbage.
    suspects: Queue,
    /// What has an owner of a kind that is not served: nobody knows whether that is there.
    undecided: BTreeSet<ObjectRef>,
}

/// Objects in the order in which they were named first: dependents are looked at before the owner that waits for them.
#[derive(Clone, Default)]
struct Queue {
    order: VecDeque<ObjectRef>,
    /// Those that are in the queue.
    queued: HashSet<ObjectRef>,
}

impl Queue {
    fn insert(&mut self, place: ObjectRef) {
        if self.queued.insert(place.clone()) {
            self.order.push_back(place);
        }
    }

    fn extend(&mut self, places: impl IntoIterator<Item = ObjectRef>) {
        places.into_iter().for_each(|place| self.insert(place));
    }

    fn pop_first(&mut self) -> Option<ObjectRef> {
        let first = self.order.pop_front()?;
        self.queued.remove(&first);
        Some(first)
    }
}

fn references(object: Option<&Value>) -> impl Iterator<Item = &Value> {
    let references = object.and_then(|object| object["metadata"]["ownerReferences"].as_array());
    references.into_iter().flatten()
}

fn owner_uids(object: Option<&Value>) -> impl Iterator<Item = &str> {
    references(object).filter_map(|reference| reference["uid"].as_str())
}

pub(crate) fn has_finalizer(object: &Value, name: &str) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| finalizers.iter().any(|known| known == name))
}

/// Whether an owner that is deleted after its dependents waits for the one with this reference.
pub(crate) fn is_blocked_by(reference: &Value, uid: &str) -> bool {
    reference["blockOwnerDeletion"] == true && reference["uid"] == uid
}

/// Whether nothing but its uid is known of an object here.
fn is_settled(object: &Value) -> bool {
    let meta = &object["metadata"];
    !meta["ownerReferences"].is_array() && !meta["deletionTimestamp"].is_string()
}

/// Whether an object is being deleted with a finalizer now, and was not before (`deletionStartsWithFinalizer`).
fn begins_to_end_with(finalizer: &str, before: Option<&Value>, after: &Value) -> bool {
    let ends = |object: &Value| object["metadata"]["deletionTimestamp"].is_string() && has_finalizer(object, finalizer);
    ends(after) && !before.is_some_and(ends)
}

/// Whether an object has a controller of its own that ends it.
fn is_emptied(of: &GroupResource) -> bool {
    namespace::KIND.is_of(of) || custom_resource_definition::KIND.is_of(of)
}

impl Owners {
    pub(super) fn changed(
        &mut self,
        registry: &Registry,
        (of, key): (&GroupResource, &Key),
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        // Most changes leave the owners of an object, and have nobody look at it.
        if let (Some(before), Some(after)) = (before, after)
            && before["metadata"]["uid"] == after["metadata"]["uid"]
            && [before, after].iter().all(|object| is_settled(object))
        {
            return;
        }
        if after.is_none() {
            self.left(of, key);
        }
        // Nobody collects events.
        if *of == *EVENTS {
            return;
        }
        let place = (of.clone(), key.clone());
        if self.undecided.remove(&place) {
            self.suspects.insert(place.clone());
        }
        for uid in owner_uids(before) {
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(&place);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        match (before, after) {
            (_, Some(after)) => self.written(registry, place, before, after),
            (Some(gone), None) => self.gone(gone),
            (None, None) => {}
        }
    }

    fn written(&mut self, registry: &Registry, place: ObjectRef, before: Option<&Value>, after: &Value) {
        let uid = after["metadata"]["uid"].as_str().unwrap_or_default();
        self.places.insert(uid.into(), place.clone());
        for owner in owner_uids(Some(after)) {
            self.dependents.entry(owner.into()).or_default().insert(place.clone());
        }
        // An owner that is not blocked any more may go.
        for reference in references(before).filter(|reference| reference["blockOwnerDeletion"] == true) {
            let owner = reference["uid"].as_str().unwrap_or_default();
            if !references(Some(after)).any(|reference| is_blocked_by(reference, owner)) {
                self.suspects.extend(self.places.get(owner).cloned());
            }
        }
        let is_new = |reference: &&Value| !references(before).any(|known| known["uid"] == reference["uid"]);
        if references(Some(after)).filter(is_new).any(|reference| !self.has(registry, reference, &place.1)) {
            self.suspects.insert(place.clone());
        }
        if begins_to_end_with(FOREGROUND, before, after) {
            self.waiting.insert(uid.into());
            self.suspects.extend(self.dependents.get(uid).into_iter().flatten().cloned());
            self.suspects.insert(place.clone());
        }
        let is_emptied = is_emptied(&place.0) && after["metadata"]["deletionTimestamp"].is_string();
        if is_emptied || begins_to_end_with(ORPHAN, before, after) {
            self.suspects.insert(place);
        }
    }

    /// Whether an owner is known as a reference to it says.
    fn has(&self, registry: &Registry, reference: &Value, dependent: &Key) -> bool {
        let known = reference["uid"].as_str().and_then(|uid| self.places.get(uid));
        known.is_some_and(|(of, (namespace, name))| {
            let is_reachable = namespace.is_empty() || *namespace == dependent.0;
            let resource = registry.any_version(of).filter(|_| is_reachable && reference["name"] == name.as_str());
            resource.is_some_and(|resource| {
                reference["kind"] == resource.kind() && reference["apiVersion"] == resource.api_version().as_str()
            })
        })
    }

    fn gone(&mut self, gone: &Value) {
        let uid = gone["metadata"]["uid"].as_str().unwrap_or_default();
        self.places.remove(uid);
        self.waiting.remove(uid);
        self.suspects.extend(self.dependents.get(uid).into_iter().flatten().cloned());
        // Its owners may wait for it to go.
        let owners = owner_uids(Some(gone)).filter(|owner| self.waiting.contains(*owner));
        let owners: Vec<_> = owners.filter_map(|owner| self.places.get(owner).cloned()).collect();
        self.suspects.extend(owners);
    }

    /// The namespace and the definition of an object that has gone may have waited for that.
    fn left(&mut self, of: &GroupResource, key: &Key) {
        self.suspects.insert((namespace::KIND.group_resource(), (String::new(), key.0.clone())));
        let definitions = custom_resource_definition::KIND.group_resource();
        self.suspects.insert((definitions, (String::new(), of.to_string())));
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectRef> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    /// Whether an object is being deleted after its dependents.
    pub(crate) fn is_waiting(&self, uid: &str) -> bool {
        self.waiting.contains(uid)
    }

    /// Has the garbage collector look at an object.
    pub(crate) fn suspect(&mut self, place: ObjectRef) {
        self.suspects.insert(place);
    }

    /// Leaves an object alone until it changes, or until another kind is served.
    pub(crate) fn leave_undecided(&mut self, place: ObjectRef) {
        self.undecided.insert(place);
    }

    /// Other kinds are served now.
    pub(super) fn kinds_changed(&mut self) {
        self.suspects.extend(std::mem::take(&mut self.undecided));
    }

    /// One thing that the garbage collector has not looked at since it, or what it depends on, changed.
    pub(crate) fn next_suspect(&mut self) -> Option<ObjectRef> {
        self.suspects.pop_first()
    }

    pub(crate) fn n_suspects(&self) -> usize {
        self.suspects.order.len()
    }
}
