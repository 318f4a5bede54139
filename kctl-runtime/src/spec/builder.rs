//! Builds a `ControllerSpec` from what the macro emits.

use std::time::Duration;

use k8s_openapi::{
    api::rbac::v1::PolicyRule, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};

use kube::Resource;

use super::{ControllerSpec, ExtraRule, Relation, Role};
use crate::{
    object::{OwnedBy, Readable},
    reconcile::{Cluster, Controller},
    store::Change,
};

/// What `rbac(…)` takes: a rule, or several.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no rule",
    label = "not a `PolicyRule`",
    note = "help: write `rbac(rule())` and `fn rule() -> kctl::k8s::api::rbac::v1::PolicyRule {{ … }}`; a function can return a `Vec` of them",
    note = "code: K0025"
)]
pub trait Rules {
    /// One by one.
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

/// Collects the options of a `#[controller]`, then its relations, each with what stands in its parentheses.
pub struct SpecBuilder<C: Controller> {
    spec: ControllerSpec,
    primary: Relation<C, C::Primary>,
    /// Of the relations, in their order.
    definitions: Vec<Definition>,
}

/// How the kind of a relation is defined, and its JSON schema, where its type says so.
pub type Definition = (Option<fn() -> CustomResourceDefinition>, Option<fn() -> serde_json::Value>);

impl<C: Controller> SpecBuilder<C> {
    /// The defaults: the name is the kind in lower case.
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
                finalizer: None,
                concurrency: 1,
                backoff: (Duration::from_millis(5), Duration::from_secs(1000)),
                retries: None,
                namespaces: Vec::new(),
                resync: None,
                timeout: None,
                rbac: Vec::new(),
            },
            primary,
            definitions: Vec::new(),
        }
    }

    /// The definitions of the kinds of the relations, in their order.
    #[must_use]
    pub fn related(mut self, definitions: Vec<Definition>) -> Self {
        self.definitions = definitions;
        self
    }

    /// The definition of the primary, where it is a custom resource, and whether it has a status.
    #[must_use]
    pub fn crd(mut self, crd: Option<fn() -> CustomResourceDefinition>, has_status: bool) -> Self {
        self.spec.has_status = has_status;
        self.spec.crd = crd;
        self
    }

    /// The JSON schema of the primary, where it is a custom resource.
    #[must_use]
    pub fn schema(mut self, schema: Option<fn() -> serde_json::Value>) -> Self {
        self.spec.schema = schema;
        self
    }

    /// `name = "…"`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.spec.name = name.into();
        self
    }

    /// `primary(patch, …)`.
    #[must_use]
    pub fn primary(mut self, verbs: &[&'static str]) -> Self {
        self.primary = self.primary.verbs(verbs);
        self
    }

    /// Sets `primary(read_only)`: the controller does not write the status.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.has_status = false;
        self
    }

    /// `primary(when = f)`.
    #[must_use]
    pub fn primary_when(mut self, f: impl Fn(&Change<C::Primary>) -> bool + Send + Sync + 'static) -> Self {
        self.primary = self.primary.when(f);
        self
    }

    /// `primary(index = f)`.
    #[must_use]
    pub fn primary_index(mut self, f: impl Fn(&C::Primary) -> Vec<String> + Send + Sync + 'static, text: &str) -> Self {
        self.primary = self.primary.index(f, text);
        self
    }

    /// `primary(selector = "…")`.
    #[must_use]
    pub fn primary_selector(mut self, selector: impl Into<String>) -> Self {
        self.primary = self.primary.selector(selector);
        self
    }

    /// `primary(fields = "…")`.
    #[must_use]
    pub fn primary_fields(mut self, selector: impl Into<String>) -> Self {
        self.primary = self.primary.fields(selector);
        self
    }

    /// `primary(on = cluster)`.
    #[must_use]
    pub fn primary_on(mut self, cluster: impl Into<String>) -> Self {
        self.primary = self.primary.on(cluster);
        self
    }

    /// `owns`, `watches` or `reads`, made alone.
    #[must_use]
    pub fn relation<K>(mut self, relation: Relation<C, K>) -> Self {
        self.spec.relations.push(relation.erase());
        self
    }

    /// `finalizer = "…"`.
    #[must_use]
    pub fn finalizer(mut self, finalizer: impl Into<String>) -> Self {
        self.spec.finalizer = Some(finalizer.into());
        self
    }

    /// `concurrency = n`.
    #[must_use]
    pub fn concurrency(mut self, n: usize) -> Self {
        self.spec.concurrency = n.max(1);
        self
    }

    /// `backoff("5ms", max = "1000s")`.
    #[must_use]
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.spec.backoff = (base, max);
        self
    }

    /// `retries = n`.
    #[must_use]
    pub fn retries(mut self, n: u32) -> Self {
        self.spec.retries = Some(n);
        self
    }

    /// `namespaces = […]`.
    #[must_use]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.spec.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// `resync = "10h"`.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.spec.resync = Some(period);
        self
    }

    /// `timeout = "30s"`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec.timeout = Some(timeout);
        self
    }

    /// Adds a value of `rbac(…)`, with its source text for messages.
    #[must_use]
    pub fn rbac(self, text: &str, rules: impl Rules) -> Self {
        self.rules("", text, rules)
    }

    /// `rbac(…, on = Name)`.
    #[must_use]
    pub fn rbac_on<M: Cluster, R: Rules>(self, text: &str, rules: R) -> Self {
        self.rules(M::NAME, text, rules)
    }

    fn rules(mut self, cluster: &str, text: &str, rules: impl Rules) -> Self {
        let rule = |rule| ExtraRule { rule, text: text.into(), cluster: cluster.into(), everywhere: false };
        self.spec.rbac.extend(rules.rules().into_iter().map(rule));
        self
    }

    /// The declaration as data.
    pub fn build(mut self) -> ControllerSpec {
        self.spec.primary = self.primary.erase();
        for (relation, (crd, schema)) in self.spec.relations.iter_mut().zip(self.definitions) {
            (relation.crd, relation.schema) = (crd, schema);
        }
        // Owner references never cross clusters.
        for owned in self.spec.relations.iter_mut().filter(|relation| relation.role == Role::Owned) {
            owned.cluster.clone_from(&self.spec.primary.cluster);
        }
        self.spec
    }
}

/// The relations follow one another: what stands behind one is said of it, until the next one begins.
impl<C: Controller> SpecBuilder<C> {
    /// `owns = K`.
    pub fn owns<K: OwnedBy<C>>(self, text: &str) -> Relation<C, K, Self> {
        Relation::owned(text).after(self)
    }

    /// `watches = K(map = f)`.
    pub fn watches<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::watched(text).after(self)
    }

    /// `reads = K`.
    pub fn reads<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read(text).after(self)
    }

    /// `reads = K(live)`.
    pub fn live<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read_live(text).after(self)
    }

    /// `reads = K(live(cluster))`.
    pub fn live_cluster<K: Readable>(self, text: &str) -> Relation<C, K, Self> {
        Relation::read_live_cluster(text).after(self)
    }
}

impl<C: Controller, K> Relation<C, K, SpecBuilder<C>> {
    /// The next one: `owns = L`.
    pub fn owns<L: OwnedBy<C>>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.declared().owns(text)
    }

    /// The next one: `watches = L(map = f)`.
    pub fn watches<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.declared().watches(text)
    }

    /// The next one: `reads = L`.
    pub fn reads<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.declared().reads(text)
    }

    /// The next one: `reads = L(live)`.
    pub fn live<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.declared().live(text)
    }

    /// The next one: `reads = L(live(cluster))`.
    pub fn live_cluster<L: Readable>(self, text: &str) -> Relation<C, L, SpecBuilder<C>> {
        self.declared().live_cluster(text)
    }

    /// The declaration as data.
    pub fn build(self) -> ControllerSpec {
        self.declared().build()
    }

    fn declared(self) -> SpecBuilder<C> {
        let (mut before, relation) = self.taken();
        before.spec.relations.push(relation);
        before
    }
}
