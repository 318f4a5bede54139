//! Builds a [`ControllerSpec`]. The expansion of `#[controller(…)]` calls its methods.

use std::time::Duration;

use k8s_openapi::{
    api::rbac::v1::PolicyRule, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

use kube::Resource;

use super::{ControllerSpec, ExtraRule, Relation, RelationKind, owned_by::OwnedBy};
use crate::{
    object::Readable,
    reconcile::{Cluster, Controller},
    store::Change,
};

/// The status of a controller's primary, in its Rust type and in its CRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrimaryStatus {
    /// The type has no status.
    Absent,
    /// The type has a status, and its CRD serves it as a subresource.
    Subresource,
    /// The type has a status, and its CRD has no subresource for it: `status_subresource = false`.
    WithoutSubresource,
}

/// The value of `rbac(…)`: one [`PolicyRule`] or a `Vec` of them.
///
/// ```
/// use k8s_openapi::api::rbac::v1::PolicyRule;
/// use kctl_runtime::spec::Rules;
///
/// let rule = PolicyRule { verbs: vec!["create".into()], ..PolicyRule::default() };
/// assert_eq!(rule.clone().rules().len(), 1);
/// assert_eq!(vec![rule.clone(), rule].rules().len(), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a rule",
    label = "not a `PolicyRule`",
    note = "help: write `rbac(rule())` and `fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule {{ … }}`; a function can return a `Vec` of them",
    note = "code: K0025"
)]
pub trait Rules {
    /// Returns the rules one by one.
    fn rules(self) -> Vec<PolicyRule>;
}

impl Rules for PolicyRule {
    fn rules(self) -> Vec<PolicyRule> {
        vec![self]
    }
}

impl Rules for Vec<PolicyRule> {
    fn rules(self) -> Vec<PolicyRule> {
        self
    }
}

/// Collects the options of a controller, then its relations, each followed by its own options.
///
/// [`owns`](Self::owns), [`watches`](Self::watches) and [`reads`](Self::reads) begin a [`Relation`]; its
/// methods apply to it until the next relation or [`build`](Self::build). The types are checked on the
/// way: a mapper has to return keys of the primary's kind.
///
/// ```
/// # use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { declaration() }
/// # }
/// use std::time::Duration;
///
/// fn declaration() -> ControllerSpec {
///     SpecBuilder::<Settings>::new("Settings", file!(), line!())
///         .named("settings")
///         .timeout(Duration::from_secs(30))
///         .owns::<Pod>("owns = Pod")
///         .reads::<Node>("reads = Node(metadata)")
///         .metadata()
///         .build()
/// }
///
/// let spec = declaration();
/// assert_eq!(spec.relations.len(), 2);
/// assert!(spec.relations[1].field_mask.is_metadata());
/// ```
pub struct SpecBuilder<C: Controller> {
    spec: ControllerSpec,
    primary: Relation<C, C::Primary>,
    /// The definitions of the relations' kinds, in the order of the relations.
    definitions: Vec<Definition>,
}

impl<C: Controller> std::fmt::Debug for SpecBuilder<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpecBuilder").field("spec", &self.spec).field("primary", &self.primary).finish_non_exhaustive()
    }
}

/// Functions that return the CRD and the JSON schema of a kind, as far as its Rust type has them.
pub type Definition = (Option<fn() -> CustomResourceDefinition>, Option<fn() -> serde_json::Value>);

impl<C: Controller> SpecBuilder<C> {
    /// Creates a declaration with the defaults: named after the kind in lower case, one worker, all namespaces, no
    /// timeout, no resync, and a backoff from 5 ms to 1000 s.
    ///
    /// `item`, `file` and `line` say where the declaration is, for messages.
    pub fn new(item: &str, file: &str, line: u32) -> Self {
        let primary = Relation::<C, C::Primary>::primary();
        Self {
            spec: ControllerSpec {
                name: C::Primary::kind(&()).to_lowercase(),
                location: format!("{item} at {file}:{line}"),
                primary: Relation::<C, C::Primary>::primary().erase(),
                relations: Vec::new(),
                crd: None,
                schema: None,
                has_status: false,
                has_status_subresource: true,
                finalizer: None,
                concurrency: 1,
                backoff: (Duration::from_millis(5), Duration::from_secs(1000)),
                retries: None,
                namespaces: Vec::new(),
                declares_namespaces: false,
                resync: None,
                timeout: None,
                rbac: Vec::new(),
            },
            primary,
            definitions: Vec::new(),
        }
    }

    /// Sets the definitions of the relations' kinds, in the order of the relations.
    #[must_use]
    pub fn related(mut self, definitions: Vec<Definition>) -> Self {
        self.definitions = definitions;
        self
    }

    /// Sets the CRD of the primary, `None` for a built-in kind. `generate-crds` prints it.
    #[must_use]
    pub fn crd(mut self, crd: Option<fn() -> CustomResourceDefinition>) -> Self {
        self.spec.crd = crd;
        self
    }

    /// Sets how the primary's type and its CRD declare a status; the default is [`PrimaryStatus::Absent`].
    #[must_use]
    pub fn status(mut self, status: PrimaryStatus) -> Self {
        self.spec.has_status = status != PrimaryStatus::Absent;
        self.spec.has_status_subresource = status != PrimaryStatus::WithoutSubresource;
        self
    }

    /// Sets the JSON schema of the primary's Rust type, `None` for a type without one.
    #[must_use]
    pub fn schema(mut self, schema: Option<fn() -> serde_json::Value>) -> Self {
        self.spec.schema = schema;
        self
    }

    /// Sets `name = "…"`: the name in logs, metrics and events, which is unique in a program. The default is the kind in
    /// lower case.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets the verbs of `primary(patch, …)`, in addition to those that the loop itself needs. The default is an empty
    /// list.
    #[must_use]
    pub fn primary(mut self, verbs: &[&'static str]) -> Self {
        self.primary = self.primary.verbs(verbs);
        self
    }

    /// Sets `primary(read_only)`: the controller does not write the status. Call it after [`status`](Self::status),
    /// which replaces its effect.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.has_status = false;
        self
    }

    /// Sets the predicate of `primary(when = f)`: changes for which it returns `false` enqueue nothing.
    #[must_use]
    pub fn primary_when(mut self, f: impl Fn(&Change<C::Primary>) -> bool + Send + Sync + 'static) -> Self {
        self.primary = self.primary.when(f);
        self
    }

    /// Adds the index of `primary(index = f)`, which [`Store::by_index`](crate::store::Store::by_index) reads. The path of the
    /// function names it.
    #[must_use]
    pub fn primary_index(mut self, f: impl Fn(&C::Primary) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.primary = self.primary.index(f);
        self
    }

    /// Sets the label selector of `primary(selector = "…")`.
    #[must_use]
    pub fn primary_selector(mut self, selector: impl Into<String>) -> Self {
        self.primary = self.primary.selector(selector);
        self
    }

    /// Sets the field selector of `primary(fields = "…")`.
    #[must_use]
    pub fn primary_fields(mut self, selector: impl Into<String>) -> Self {
        self.primary = self.primary.fields(selector);
        self
    }

    /// Sets the cluster of `primary(on = cluster)`. Owned kinds are in the same cluster.
    #[must_use]
    pub fn primary_on(mut self, cluster: impl Into<String>) -> Self {
        self.primary = self.primary.on(cluster);
        self
    }

    /// Adds a relation that was built alone, for example by [`Relation::owned`].
    #[must_use]
    pub fn relation<K>(mut self, relation: Relation<C, K>) -> Self {
        self.spec.relations.push(relation.erase());
        self
    }

    /// Sets `finalizer = "…"`. `kctl` checks the name before it runs the controller.
    #[must_use]
    pub fn finalizer(mut self, finalizer: impl Into<String>) -> Self {
        self.spec.finalizer = Some(finalizer.into());
        self
    }

    /// Sets `concurrency = n`: the maximum number of keys that are reconciled at once, 1 by default. Zero counts as one.
    #[must_use]
    pub fn concurrency(mut self, n: usize) -> Self {
        self.spec.concurrency = n.max(1);
        self
    }

    /// Sets `backoff("5ms", max = "1000s")`, the default: the wait after the first failure of a key, which doubles with each
    /// further one, and the longest wait.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
    /// # struct Settings;
    /// # impl Controller for Settings {
    /// #     type Primary = ConfigMap;
    /// #     type Verbs = ();
    /// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
    /// # }
    /// use std::time::Duration;
    ///
    /// let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
    /// let spec = SpecBuilder::<Settings>::new("Settings", file!(), line!()).backoff(first, longest).build();
    /// assert_eq!(spec.backoff, (first, longest));
    /// ```
    #[must_use]
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.spec.backoff = (base, max);
        self
    }

    /// Sets `retries = n`: after the first failure and `n` failed retries, the key is given up. Its next event, also of an
    /// owned object, or a resync runs it. By default it is retried indefinitely.
    #[must_use]
    pub fn retries(mut self, n: u32) -> Self {
        self.spec.retries = Some(n);
        self
    }

    /// Sets `namespaces = […]`. A name that an expression returns twice counts once.
    /// [`declaration_problem`](super::declaration_problem) checks the names.
    #[must_use]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.spec.namespaces.clear();
        for namespace in namespaces.into_iter().map(Into::into) {
            if !self.spec.namespaces.contains(&namespace) {
                self.spec.namespaces.push(namespace);
            }
        }
        self.spec.declares_namespaces = true;
        self
    }

    /// Sets `resync = "10h"`: the period after which each object is reconciled without a change. It is off by default. A period
    /// of zero would reconcile all objects in a hot loop, and [`declaration_problem`](super::declaration_problem) reports it.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.spec.resync = Some(period);
        self
    }

    /// Sets `timeout = "30s"`: a reconcile that takes longer is dropped, and counts as a failure. No timeout is set by
    /// default. One of zero would drop every reconcile, and [`declaration_problem`](super::declaration_problem) reports it.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Adds the rules of `rbac(…)` for the primary's cluster, with their source text for messages.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
    /// # struct Settings;
    /// # impl Controller for Settings {
    /// #     type Primary = ConfigMap;
    /// #     type Verbs = ();
    /// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
    /// # }
    /// use k8s_openapi::api::rbac::v1::PolicyRule;
    ///
    /// let rule = PolicyRule {
    ///     api_groups: Some(vec!["".into()]),
    ///     resources: Some(vec!["nodes/proxy".into()]),
    ///     verbs: vec!["get".into()],
    ///     ..PolicyRule::default()
    /// };
    /// let spec = SpecBuilder::<Settings>::new("Settings", file!(), line!()).rbac("rbac(proxy())", rule).build();
    /// assert_eq!(spec.rbac[0].text, "rbac(proxy())");
    /// ```
    #[must_use]
    pub fn rbac(self, text: &str, rules: impl Rules) -> Self {
        self.rules("", text, rules)
    }

    /// Adds the rules of `rbac(…, on = Name)`.
    #[must_use]
    pub fn rbac_on<M: Cluster, R: Rules>(self, text: &str, rules: R) -> Self {
        self.rules(M::NAME, text, rules)
    }

    fn rules(mut self, cluster: &str, text: &str, rules: impl Rules) -> Self {
        let rule = |rule| ExtraRule { rule, text: text.into(), cluster: cluster.into(), everywhere: false };
        self.spec.rbac.extend(rules.rules().into_iter().map(rule));
        self
    }

    /// Returns the declaration. Owned kinds get the primary's cluster, because owner references never cross
    /// clusters.
    pub fn build(mut self) -> ControllerSpec {
        self.spec.primary = self.primary.erase();
        for (relation, (crd, schema)) in self.spec.relations.iter_mut().zip(self.definitions) {
            (relation.crd, relation.schema) = (crd, schema);
        }
        for owned in self.spec.relations.iter_mut().filter(|relation| relation.declared_as == RelationKind::Owned) {
            owned.cluster.clone_from(&self.spec.primary.cluster);
        }
        // `cx.client()` is a client of the primary's cluster, so its rules belong to the role there.
        for extra in self.spec.rbac.iter_mut().filter(|extra| extra.cluster.is_empty()) {
            extra.cluster.clone_from(&self.spec.primary.cluster);
        }
        self.spec
    }
}

/// Relations in the order of the declaration. Options apply to the last relation that began.
impl<C: Controller> SpecBuilder<C> {
    /// Begins `owns = K`, with the verbs `create`, `update`, `patch`, `apply` and `delete`.
    pub fn owns<K: OwnedBy<C>>(self, text: &str) -> Relation<C, K, Self> {
        Relation::owned(text).after(self)
    }

    /// Begins `watches = K(map = f)`. Add [`Relation::map`].
    pub fn watches<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::watched(text).after(self)
    }

    /// Begins `reads = K`.
    pub fn reads<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read(text).after(self)
    }

    /// Begins `reads = K(live)`: reads in the primary's namespace, without a cache.
    pub fn live<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read_live(text).after(self)
    }

    /// Begins `reads = K(live(cluster))`: reads in all namespaces, without a cache.
    pub fn live_cluster<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read_live_cluster(text).after(self)
    }
}

impl<C: Controller, K> Relation<C, K, SpecBuilder<C>> {
    /// Ends this relation and begins `owns = L`.
    pub fn owns<L: OwnedBy<C>>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.add_relation().owns(text)
    }

    /// Ends this relation and begins `watches = L(map = f)`.
    pub fn watches<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.add_relation().watches(text)
    }

    /// Ends this relation and begins `reads = L`.
    pub fn reads<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.add_relation().reads(text)
    }

    /// Ends this relation and begins `reads = L(live)`.
    pub fn live<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.add_relation().live(text)
    }

    /// Ends this relation and begins `reads = L(live(cluster))`.
    pub fn live_cluster<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.add_relation().live_cluster(text)
    }

    /// Ends this relation and returns the declaration.
    pub fn build(self) -> ControllerSpec {
        self.add_relation().build()
    }

    /// Adds this relation to the builder that it began from.
    fn add_relation(self) -> SpecBuilder<C> {
        let (mut before, relation) = self.into_parts();
        before.spec.relations.push(relation);
        before
    }
}
