//! Who owns whom, by uid: what the garbage collector has to look at.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::Key;
use crate::status::GroupResource;

type Place = (GroupResource, Key);

/// The graph of owner references.
#[derive(Clone, Default)]
pub(crate) struct Owners {
    places: HashMap<String, Place>,
    dependents: HashMap<String, BTreeSet<Place>>,
    /// What may have become garbage.
    suspects: BTreeSet<Place>,
}

pub(crate) fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().filter_map(|reference| reference["uid"].as_str())
}

/// Whether nothing but its uid is known of an object here.
fn is_settled(object: &Value) -> bool {
    let meta = &object["metadata"];
    !meta["ownerReferences"].is_array() && !meta["deletionTimestamp"].is_string()
}

impl Owners {
    pub(super) fn changed(&mut self, of: &GroupResource, key: &Key, before: Option<&Value>, after: Option<&Value>) {
        // Most changes leave the owners of an object, and have nobody look at it.
        if let (Some(before), Some(after)) = (before, after)
            && before["metadata"]["uid"] == after["metadata"]["uid"]
            && [before, after].iter().all(|object| is_settled(object))
        {
            return;
        }
        let place = (of.clone(), key.clone());
        for uid in before.into_iter().flat_map(owner_uids) {
            if let Some(dependents) = self.dependents.get_mut(uid) {
                dependents.remove(&place);
                if dependents.is_empty() {
                    self.dependents.remove(uid);
                }
            }
        }
        if let (Some(gone), None) = (before, after) {
            let uid = gone["metadata"]["uid"].as_str().unwrap_or_default();
            self.places.remove(uid);
            self.suspects.extend(self.dependents.get(uid).into_iter().flatten().cloned());
            // Its owners may wait for it to go.
            let owners: Vec<_> = owner_uids(gone).filter_map(|owner| self.places.get(owner).cloned()).collect();
            self.suspects.extend(owners);
            // So may its namespace and its definition.
            self.suspects.insert((GroupResource::new("", "namespaces"), (String::new(), key.0.clone())));
            let definitions = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
            self.suspects.insert((definitions, (String::new(), of.to_string())));
        }
        let Some(after) = after else { return };
        self.places.insert(after["metadata"]["uid"].as_str().unwrap_or_default().into(), place.clone());
        for uid in owner_uids(after) {
            self.dependents.entry(uid.into()).or_default().insert(place.clone());
        }
        let owned = after["metadata"]["ownerReferences"].is_array();
        if owned || after["metadata"]["deletionTimestamp"].is_string() {
            self.suspects.insert(place);
        }
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<Place> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<Place> {
        self.places.get(uid).cloned()
    }

    /// One thing that the garbage collector has not looked at since it, or what it depends on, changed.
    pub(crate) fn next_suspect(&mut self) -> Option<Place> {
        self.suspects.pop_first()
    }

    pub(crate) fn n_suspects(&self) -> usize {
        self.suspects.len()
    }
}
