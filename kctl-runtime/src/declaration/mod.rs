//! The declaration of a controller as data, below the traits of controllers. [`spec`](crate::spec) builds and re-exports
//! it.

mod finalizer;
mod problem;

use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::rbac::v1::PolicyRule, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

pub use finalizer::{finalizer_problem, finalizer_warning};
pub use problem::declaration_problem;

use crate::{
    key::ObjectKey,
    object::{FieldMask, Kind, Stored},
    source::{DecodeCheck, Presence},
    store::{Change, IndexFn, SharedStore},
};

/// The relation of a controller to a kind.
///
/// It decides whether the kind is cached, and which changes trigger a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RelationKind {
    /// The reconciled kind (controller-runtime's `For`). Its changes enqueue its own key.
    Primary,
    /// A kind that the controller creates (`Owns`). A change enqueues the primary in the controller reference.
    Owned,
    /// A kind whose changes enqueue the keys that a [`Mapper`] returns (`Watches`).
    Watched,
    /// A kind that is cached and triggers nothing.
    Read,
    /// A kind that is read from the API server in the primary's namespace and never cached.
    Live,
    /// A kind that is read from the API server in any namespace and never cached.
    LiveCluster,
}

/// Returns the keys of the primaries that a changed object matters for.
///
/// Called with the object and the cache of the primaries, for the old and the new state of an update.
pub type Mapper = Arc<dyn Fn(&Stored, &Arc<SharedStore>) -> Vec<ObjectKey> + Send + Sync>;
/// Returns `true` if a change is worth a reconcile.
pub type Predicate = Arc<dyn Fn(&Change<Stored>) -> bool + Send + Sync>;

/// One kind in the declaration of a controller.
#[derive(Clone)]
#[non_exhaustive]
pub struct RelationSpec {
    /// The relation, which decides about cache and triggers.
    pub declared_as: RelationKind,
    /// The kind that is read and written, which is the kind of a view for `as = V`.
    pub kind: Kind,
    /// `true` if objects of the kind have a namespace.
    pub namespaced: bool,
    /// The declaration as the user wrote it, for messages: `watches = Pod(map = f)`.
    pub text: String,
    /// Declared verbs beyond `list` and `watch` of the cache: `get` of `primary(get)`, writes, `apply`, and words for a
    /// subresource such as `scale`. [`verbs_of`](crate::manifest::verbs_of) returns the RBAC verbs of each.
    pub verbs: Vec<&'static str>,
    /// The mapper of `map = f`. A change of an owned kind also enqueues the primary in the controller reference, with or
    /// without a mapper.
    pub map: Option<Mapper>,
    /// The predicate of `when = f`. `None` lets all changes pass.
    pub when: Option<Predicate>,
    /// Indexes of the cache. The path of the function is the name.
    pub indexes: Vec<(&'static str, IndexFn)>,
    /// Label selector of list and watch, empty for all objects. It is a part of the cache's identity.
    pub labels: String,
    /// Field selector of list and watch, empty for all objects.
    pub fields: String,
    /// Name of the cluster, empty for the default one.
    pub cluster: String,
    /// `true` if owner references get `blockOwnerDeletion`, so that foreground deletion of the primary waits.
    pub block_owner_deletion: bool,
    /// `true` if `on` names a type. The kind is then reached through `cx.cluster`, so that the same kind can
    /// be declared for several clusters.
    pub by_type: bool,
    /// The behaviour while the API server does not serve the kind: wait for it, or work without.
    pub presence: Presence,
    /// Checks that an object decodes as the relation's type, before it is stored.
    pub check: DecodeCheck,
    /// The fields of each object that the controller reads.
    pub field_mask: FieldMask,
    /// The `CustomResourceDefinition` of the kind, if its Rust type has one.
    ///
    /// Test servers install it. On a cluster another program does.
    pub crd: Option<fn() -> CustomResourceDefinition>,
    /// The JSON schema of the kind, if its Rust type has one.
    pub schema: Option<fn() -> serde_json::Value>,
}

impl std::fmt::Debug for RelationSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelationSpec")
            .field("declared_as", &self.declared_as)
            .field("kind", &self.kind)
            .field("namespaced", &self.namespaced)
            .field("text", &self.text)
            .field("verbs", &self.verbs)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("cluster", &self.cluster)
            .field("presence", &self.presence)
            .field("field_mask", &self.field_mask)
            .finish_non_exhaustive()
    }
}

impl RelationSpec {
    /// Returns `true` if `cx.cluster(cluster)` reaches this kind; `None` is the context itself.
    pub(crate) fn is_reached_by(&self, kind: &Kind, cluster: Option<&str>) -> bool {
        let there = match cluster {
            Some(name) => self.by_type && self.cluster == name,
            None => !self.by_type,
        };
        there && self.kind == *kind
    }
}

/// The declaration of a controller.
///
/// [`Controller::spec`](crate::reconcile::Controller::spec) returns it. Durations and counts hold the
/// defaults of the attribute where the user wrote none.
#[derive(Clone)]
#[non_exhaustive]
pub struct ControllerSpec {
    /// Name in logs, metrics and events, unique in a program. The kind in lower case by default.
    pub name: String,
    /// Item, file and line of the declaration, for messages.
    pub location: String,
    /// The reconciled kind.
    pub primary: RelationSpec,
    /// The other kinds, in the order of the declaration.
    pub relations: Vec<RelationSpec>,
    /// The `CustomResourceDefinition` of the primary, if it is a custom resource.
    ///
    /// A function, because generating the schema takes milliseconds.
    pub crd: Option<fn() -> CustomResourceDefinition>,
    /// The JSON schema of the primary, if its type has one. `Some` distinguishes the user's types from
    /// built-in ones.
    pub schema: Option<fn() -> serde_json::Value>,
    /// `true` if the primary is a custom resource with a status, and the declaration does not say `read_only`. The
    /// controller may patch the status then without declaring it.
    pub has_status: bool,
    /// `false` if the CRD has no `status` subresource although the type has a status: `status_subresource = false`.
    pub has_status_subresource: bool,
    /// The finalizer that is added before the first reconcile, and removed after `finalize` succeeded.
    pub finalizer: Option<String>,
    /// Maximum number of reconciles at once. Default 1, as in controller-runtime.
    pub concurrency: usize,
    /// First and longest wait after a failure. Default 5 ms and 1000 s, client-go's values; it doubles
    /// with each failure.
    pub backoff: (Duration, Duration),
    /// Maximum number of retries after a first failure; then the key is dropped and reported. `None`, the default, retries
    /// forever.
    pub retries: Option<u32>,
    /// Namespaces to which caches and permissions are limited. Empty, the default, is all.
    pub namespaces: Vec<String>,
    /// `true` if the declaration has `namespaces = …`. An empty list is then a mistake: it would be all namespaces.
    pub declares_namespaces: bool,
    /// Period in which each object is reconciled without a change. `None`, the default, never does.
    pub resync: Option<Duration>,
    /// Longest reconcile; after it the future is dropped and the key counts as failed. Default `None`.
    pub timeout: Option<Duration>,
    /// Rules of `rbac(…)`, for requests that no relation covers.
    pub rbac: Vec<ExtraRule>,
}

impl std::fmt::Debug for ControllerSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerSpec")
            .field("name", &self.name)
            .field("location", &self.location)
            .field("primary", &self.primary)
            .field("relations", &self.relations)
            .field("has_status", &self.has_status)
            .field("finalizer", &self.finalizer)
            .field("concurrency", &self.concurrency)
            .field("backoff", &self.backoff)
            .field("retries", &self.retries)
            .field("namespaces", &self.namespaces)
            .field("resync", &self.resync)
            .field("timeout", &self.timeout)
            .field("rbac", &self.rbac)
            .finish_non_exhaustive()
    }
}

/// An RBAC rule that is written by hand in `rbac(…)`.
///
/// ```
/// use k8s_openapi::api::rbac::v1::PolicyRule;
/// use kctl_runtime::spec::ExtraRule;
///
/// let rule = ExtraRule::new("rbac(proxy())", PolicyRule { verbs: vec!["get".into()], ..PolicyRule::default() });
/// assert_eq!((rule.cluster.as_str(), rule.everywhere), ("", false));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExtraRule {
    /// The rule, as it goes into the role.
    pub rule: PolicyRule,
    /// The declaration as the user wrote it, for messages.
    pub text: String,
    /// Name of the cluster, empty for the default one.
    pub cluster: String,
    /// `true` if the rule goes into the `ClusterRole` even when the controller is limited to some namespaces.
    pub everywhere: bool,
}

impl ExtraRule {
    /// Creates a rule for the default cluster, in the namespaces of the controller. `text` is the declaration.
    pub fn new(text: impl Into<String>, rule: PolicyRule) -> Self {
        Self { rule, text: text.into(), cluster: String::new(), everywhere: false }
    }
}
