//! All objects of the app's clusters at one moment, for invariants.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kctl_apiserver::Change;
use kctl_runtime::{object::Kind, spec::RelationSpec};
use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The client that made an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creator {
    /// A process of the app.
    App,
    /// The cluster, or the scenario.
    Other,
}

/// Identifies an object: cluster, group, resource, namespace, name. An empty name identifies the whole collection.
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
    pub(super) fn for_change(cluster: &str, change: &Change) -> Self {
        Self {
            cluster: cluster.into(),
            group: change.group.clone(),
            resource: change.resource.clone(),
            namespace: change.namespace.clone(),
            name: change.name.clone(),
        }
    }

    /// Returns `true` for an object of this kind on this cluster.
    pub(super) fn is_of(&self, relation: &RelationSpec) -> bool {
        let kind = &relation.kind;
        relation.cluster == self.cluster && self.group == kind.group && self.resource == kind.plural
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

/// The objects of a cluster at one moment: the argument of invariants.
///
/// It holds the objects that were created or changed since the app started, as they are stored. Objects that the server
/// had before, such as the namespace `default`, are missing until they change. It starts with the app's own cluster;
/// [`on`](Self::on) selects another cluster.
///
/// Reading it costs no request and has no side effects: a rule sees the truth of the server, not a
/// cache that may be late.
///
/// ```
/// use kctl::{prelude::*, testing::Snapshot};
///
/// /// Each Pod belongs to a `ConfigMap` of the same name.
/// fn pods_have_a_config(snapshot: &Snapshot) -> Result<(), String> {
///     for pod in snapshot.all::<Pod>() {
///         let namespace = pod.namespace().unwrap_or_default();
///         if snapshot.get::<ConfigMap>(&namespace, &pod.name_any()).is_none() {
///             return Err(format!("pod {} has no ConfigMap", pod.name_any()));
///         }
///     }
///     Ok(())
/// }
///
/// let scenario = kctl::testing::Scenario::default().invariant("pods have a config", pods_have_a_config);
/// # let _ = scenario;
/// ```
#[derive(Clone, Default)]
pub struct Snapshot {
    pub(super) objects: BTreeMap<Id, Arc<Value>>,
    /// The cluster that the methods read; empty for the app's own.
    cluster: String,
    /// The uids of objects that the app created.
    pub(super) created: BTreeSet<String>,
    /// The uids of objects that others created for those, such as the Pods of a Job, and of their dependents,
    /// recursively.
    pub(super) dependents: BTreeSet<String>,
    /// The uids of objects without an owner that were created by the scenario and its steps, and not by the app or the
    /// server.
    pub(super) by_users: BTreeSet<String>,
    pub(super) time: Duration,
    /// The server's clock at the start of the run.
    pub(super) started: Timestamp,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("time", &self.time)
            .field("n_objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Returns the objects of another cluster of the app; it is empty for an unknown name.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::Snapshot};
    ///
    /// /// Each `ConfigMap` here has a copy on the cluster `edge`.
    /// fn copied(snapshot: &Snapshot) -> Result<(), String> {
    ///     let edge = snapshot.on("edge");
    ///     for config in snapshot.in_namespace::<ConfigMap>("default") {
    ///         if edge.get::<ConfigMap>("default", &config.name_any()).is_none() {
    ///             return Err(format!("{} is not at the edge", config.name_any()));
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # let _ = kctl::testing::Scenario::default().settled("copied", copied);
    /// ```
    #[must_use]
    pub fn on(&self, cluster: &str) -> Self {
        Self { cluster: cluster.into(), ..self.clone() }
    }

    /// Returns all objects of a kind, sorted by namespace and name. Objects that don't fit the type
    /// are left out.
    pub fn all<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Vec<K> {
        self.of_kind::<K>().filter_map(|(_, object)| decode(object)).collect()
    }

    /// Returns all objects of a kind in a namespace, sorted by name. Objects that don't fit the
    /// type are left out.
    pub fn in_namespace<K: Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str) -> Vec<K> {
        let inside = self.of_kind::<K>().filter(|(id, _)| id.namespace == namespace);
        inside.filter_map(|(_, object)| decode(object)).collect()
    }

    /// Returns an object, or `None`. The namespace of a cluster-scoped kind is empty.
    pub fn get<K: Resource<DynamicType = ()> + DeserializeOwned>(&self, namespace: &str, name: &str) -> Option<K> {
        let mut found = self.of_kind::<K>().filter(|(id, _)| id.namespace == namespace && id.name == name);
        decode(found.next()?.1)
    }

    /// Returns all objects of a resource as JSON, for kinds without a Rust type. `group` is empty
    /// for core kinds.
    ///
    /// ```
    /// use kctl::testing::Snapshot;
    ///
    /// fn replicas(snapshot: &Snapshot) -> Result<(), String> {
    ///     let too_large = snapshot.json("apps", "deployments").find(|object| object["spec"]["replicas"].as_i64() > Some(10));
    ///     too_large.map_or(Ok(()), |object| Err(format!("{} has too many replicas", object["metadata"]["name"])))
    /// }
    /// # let _ = kctl::testing::Scenario::default().invariant("replicas", replicas);
    /// ```
    pub fn json<'a>(&'a self, group: &'a str, plural: &'a str) -> impl Iterator<Item = &'a Value> {
        let fits = move |id: &Id| id.cluster == self.cluster && id.group == group && id.resource == plural;
        self.objects.iter().filter(move |(id, _)| fits(id)).map(|(_, object)| &**object)
    }

    /// Returns the simulated time since the start of the run.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns the owner reference of an object that names an object of the app, or a dependent of
    /// one.
    ///
    /// Later changes of the reference do not matter: orphans count as left behind as well.
    pub(super) fn owner_of_the_app<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.find(|owner| {
            let uid = owner["uid"].as_str().unwrap_or_default();
            self.created.contains(uid) || self.dependents.contains(uid)
        })
    }

    /// Returns the time of the server's clock, to compare with `metadata.creationTimestamp` and
    /// other times in objects.
    ///
    /// The clocks of the app's processes may differ from it, by a fault.
    ///
    /// ```
    /// use kctl::{prelude::*, testing::Snapshot};
    ///
    /// /// No `ConfigMap` is older than two hours.
    /// fn all_are_young(snapshot: &Snapshot) -> Result<(), String> {
    ///     let hours = |config: &ConfigMap| config.creation_timestamp().map(|time| snapshot.now().duration_since(time.0).as_hours());
    ///     match snapshot.all::<ConfigMap>().iter().find(|config| hours(config) > Some(2)) {
    ///         Some(old) => Err(format!("{} is old, after {:?}", old.name_any(), snapshot.time())),
    ///         None => Ok(()),
    ///     }
    /// }
    /// # let _ = kctl::testing::Scenario::default().invariant("young", all_are_young);
    /// ```
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

    /// Applies a change, and remembers where a new object came from.
    pub(super) fn apply_change(&mut self, id: Id, change: &Change, maker: Creator, time: Duration) {
        self.time = time;
        match &change.after {
            Some(object) => {
                if change.before.is_none() {
                    if maker == Creator::App {
                        self.created.insert(uid(object).into());
                    } else if self.owner_of_the_app(object).is_some() {
                        self.dependents.insert(uid(object).into());
                    } else if !change.by.is_empty() && object["metadata"]["ownerReferences"].is_null() {
                        // Simulated controllers are users for the server, and all that they create has an owner.
                        self.by_users.insert(uid(object).into());
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
