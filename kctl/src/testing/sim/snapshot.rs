//! All objects of the cluster at one moment, for invariants.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use kctl_apiserver::Change;
use kctl_runtime::object::Kind;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Names an object: group, resource, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Id {
    pub(super) fn of(change: &Change) -> Self {
        Self {
            group: change.group.clone(),
            resource: change.resource.clone(),
            namespace: change.namespace.clone(),
            name: change.name.clone(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, namespace, name, .. } = self;
        if namespace.is_empty() {
            return write!(formatter, "{resource} {name}");
        }
        write!(formatter, "{resource} {namespace}/{name}")
    }
}

/// All objects of the cluster at one moment.
#[derive(Clone, Default)]
pub struct Snapshot {
    pub(super) objects: BTreeMap<Id, Arc<Value>>,
    /// The uids of what the app created.
    pub(super) created: BTreeSet<String>,
    pub(super) time: Duration,
}

impl Snapshot {
    /// All objects of a kind, by namespace and name. What does not fit the type is left out.
    pub fn all<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        self.of_kind::<K>().filter_map(|(_, object)| decode(object)).collect()
    }

    /// All objects of a kind in a namespace, by name.
    pub fn in_namespace<K: Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str) -> Vec<K> {
        let inside = self.of_kind::<K>().filter(|(id, _)| id.namespace == namespace);
        inside.filter_map(|(_, object)| decode(object)).collect()
    }

    /// An object; the namespace of what lives in none is empty.
    pub fn get<K: Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str, name: &str) -> Option<K> {
        let mut found = self.of_kind::<K>().filter(|(id, _)| id.namespace == namespace && id.name == name);
        decode(found.next()?.1)
    }

    /// All objects of a resource, as they are stored.
    pub fn json<'a>(&'a self, group: &'a str, plural: &'a str) -> impl Iterator<Item = &'a Value> {
        let fits = move |id: &Id| id.group == group && id.resource == plural;
        self.objects.iter().filter(move |(id, _)| fits(id)).map(|(_, object)| &**object)
    }

    /// The simulated time since the start.
    pub fn time(&self) -> Duration {
        self.time
    }

    fn of_kind<K: Resource<DynamicType = ()>>(&self) -> impl Iterator<Item = (&Id, &Arc<Value>)> {
        let kind = Kind::of::<K>();
        self.objects.iter().filter(move |(id, _)| id.group == kind.group && id.resource == kind.plural)
    }

    /// Takes in a change.
    pub(super) fn take(&mut self, change: &Change, by_app: bool, time: Duration) {
        self.time = time;
        let id = Id::of(change);
        match &change.after {
            Some(object) => {
                if by_app && change.before.is_none() {
                    self.created.insert(uid(object).into());
                }
                self.objects.insert(id, object.clone());
            }
            None => drop(self.objects.remove(&id)),
        }
    }
}

pub(super) fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn decode<K: DeserializeOwned>(object: &Arc<Value>) -> Option<K> {
    K::deserialize(&**object).ok()
}
