//! What a controller is, as data: written by `#[controller]`, read by the wiring and by the manifests.

mod builder;
mod finalizer;
mod relation;

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::rbac::v1::PolicyRule, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

pub use builder::{Definition, Rules, SpecBuilder};
pub use finalizer::{finalizer_problem, finalizer_warning};
pub use relation::{Erased, Relation};

use crate::{
    key::ObjectKey,
    object::{Keep, Kind, Stored},
    source::{Check, Presence},
    store::{Change, IndexFn, SharedStore},
};

/// How a controller relates to a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The kind that is reconciled.
    Primary,
    /// Created by the controller; triggers through the controller reference; cached.
    Owned,
    /// Triggers through a mapper; cached.
    Watched,
    /// Cached, no trigger.
    Read,
    /// Read from the API server in the primary's namespace, never cached.
    Live,
    /// Read from the API server anywhere, never cached.
    LiveCluster,
}

/// Keys of primaries that a change concerns.
pub type Mapper = Arc<dyn Fn(&Stored, &Arc<SharedStore>) -> Vec<ObjectKey> + Send + Sync>;
/// Whether a change is worth a reconcile.
pub type Predicate = Arc<dyn Fn(&Change<Stored>) -> bool + Send + Sync>;

/// One kind in a controller's declaration.
#[derive(Clone)]
pub struct RelationSpec {
    /// How it is related.
    pub role: Role,
    /// The kind.
    pub kind: Kind,
    /// Whether objects of the kind live in namespaces.
    pub namespaced: bool,
    /// The declaration as the user wrote it.
    pub text: String,
    /// Verbs beyond get, list and watch.
    pub verbs: Vec<&'static str>,
    /// Trigger through a mapper.
    pub map: Option<Mapper>,
    /// Filter of changes.
    pub when: Option<Predicate>,
    /// Indexes by name.
    pub indexes: Vec<(&'static str, IndexFn)>,
    /// Label selector.
    pub labels: String,
    /// Field selector.
    pub fields: String,
    /// The cluster; empty is the default one.
    pub cluster: String,
    /// Whether owner references block the deletion of their owner.
    pub block_owner_deletion: bool,
    /// `on` names a type: the kind is reached by `cx.cluster`, so that others of its kind can be declared elsewhere.
    pub by_type: bool,
    /// Whether the controller waits for a kind that the API server does not serve.
    pub presence: Presence,
    /// Checks that an object fits the relation's type.
    pub check: Check,
    /// The part of each object that it reads.
    pub keep: Keep,
    /// The definition of the kind, where its type has one: for servers of tests. On a cluster it is another program's.
    pub crd: Option<fn() -> CustomResourceDefinition>,
    /// The JSON schema of the kind with its references, where it has one.
    pub schema: Option<fn() -> serde_json::Value>,
}

impl RelationSpec {
    /// Whether `cx.cluster(cluster)` reaches this kind; nothing is the context itself.
    pub(crate) fn is_reached_by(&self, kind: &Kind, cluster: Option<&str>) -> bool {
        let there = match cluster {
            Some(name) => self.by_type && self.cluster == name,
            None => !self.by_type,
        };
        there && self.kind == *kind
    }
}

/// A controller as data.
#[derive(Clone)]
pub struct ControllerSpec {
    /// Unique in a program.
    pub name: String,
    /// File and line of the declaration.
    pub location: String,
    /// The primary kind.
    pub primary: RelationSpec,
    /// The other kinds, in the order of the declaration.
    pub relations: Vec<RelationSpec>,
    /// The primary's definition, where it is a custom resource. It is made when it is asked for: its schema costs
    /// milliseconds.
    pub crd: Option<fn() -> CustomResourceDefinition>,
    /// The JSON schema of the primary with its references, where it has one: it tells the user's types from built-in ones.
    pub schema: Option<fn() -> serde_json::Value>,
    /// Whether the primary is a custom resource with a status and not `read_only`: then the controller may write it without
    /// saying so.
    pub has_status: bool,
    /// The finalizer.
    pub finalizer: Option<String>,
    /// Reconciles at once.
    pub concurrency: usize,
    /// First and longest wait after a failure.
    pub backoff: (Duration, Duration),
    /// Failures in a row after which a key is dropped and reported; `None` is never.
    pub retries: Option<u32>,
    /// Namespaces; empty is all.
    pub namespaces: Vec<String>,
    /// Period in which every object is reconciled although nothing changed.
    pub resync: Option<Duration>,
    /// Longest reconcile.
    pub timeout: Option<Duration>,
    /// Rules beyond the declared relations.
    pub rbac: Vec<ExtraRule>,
}

/// A rule that is written by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct ExtraRule {
    /// The rule.
    pub rule: PolicyRule,
    /// The declaration as the user wrote it.
    pub text: String,
    /// The cluster; empty is the default one.
    pub cluster: String,
    /// Whether it is about all namespaces, whichever the controller is for.
    pub everywhere: bool,
}
