//! All objects of the app's clusters at one moment, for invariants.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kctl_apiserver::Change;
use kctl_runtime::object::Kind;
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Names an object: cluster, group, resource, namespace, name. Without a name it is all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    /// The name of another cluster of the app; empty for its own.
    pub(super) cluster: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Id {
    pub(super) fn of(cluster: &str, change: &Change) -> Self {
        Self {
            cluster: cluster.into(),
            group: change.group.clone(),
            resource: change.resource.clone(),
            namespace: change.namespace.clone(),
            name: change.name.clone(),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cluster, resource, namespace, name, .. } = self;
        match (namespace.as_str(), name.as_str()) {
            ("", "") => write!(formatter, "{resource}")?,
            ("", name) => write!(formatter, "{resource} {name}")?,
            (namespace, "") => write!(formatter, "{resource} in {namespace}")?,
            _ => write!(formatter, "{resource} {namespace}/{name}")?,
        }
        if cluster.is_empty() { Ok(()) } else { write!(formatter, " on {cluster}") }
    }
}

/// The objects of the cluster at one moment, as far as they were created since the app started. [`on`](Self::on) returns those of
/// another cluster of the app.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Of all clusters.
    pub(super) objects: BTreeMap<Id, Arc<Value>>,
    /// The one that is asked about.
    cluster: String,
    /// The uids of what the app created.
    pub(super) created: BTreeSet<String>,
    /// The uids of what others created for that: the Pods of a Job, and whatever depends on those in turn.
    pub(super) dependents: BTreeSet<String>,
    pub(super) time: Duration,
    /// The server's clock at the start.
    pub(super) started: Timestamp,
}

impl Snapshot {
    /// The objects of another cluster of the app; none where the app knows no cluster of that name.
    #[must_use]
    pub fn on(&self, cluster: &str) -> Self {
        Self { cluster: cluster.into(), ..self.clone() }
    }

    /// Returns all objects of a kind, sorted by namespace and name. Objects that don't fit the type are left out.
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
        let fits = move |id: &Id| id.cluster == self.cluster && id.group == group && id.resource == plural;
        self.objects.iter().filter(move |(id, _)| fits(id)).map(|(_, object)| &**object)
    }

    /// The simulated time since the start.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The owner of an object, if that is the app's or depends on what is. It stays one when the reference to it is gone: orphans are
    /// left behind as well.
    pub(super) fn owner_of_the_app<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.find(|owner| {
            let uid = owner["uid"].as_str().unwrap_or_default();
            self.created.contains(uid) || self.dependents.contains(uid)
        })
    }

    /// Returns the time of the server's clock: to compare with `metadata.creationTimestamp` and other times in objects.
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.time)
            .ok()
            .and_then(|passed| self.started.checked_add(passed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    fn of_kind<K: Resource<DynamicType = ()>>(&self) -> impl Iterator<Item = (&Id, &Arc<Value>)> {
        let kind = Kind::of::<K>();
        let fits = move |id: &Id| id.cluster == self.cluster && id.group == kind.group && id.resource == kind.plural;
        self.objects.iter().filter(move |(id, _)| fits(id))
    }

    /// Takes in a change.
    pub(super) fn take(&mut self, id: Id, change: &Change, by_app: bool, time: Duration) {
        self.time = time;
        match &change.after {
            Some(object) => {
                if change.before.is_none() {
                    if by_app {
                        self.created.insert(uid(object).into());
                    } else if self.owner_of_the_app(object).is_some() {
                        self.dependents.insert(uid(object).into());
                    }
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
