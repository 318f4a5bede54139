//! The declarations of an app as data: its controllers, kinds, CRDs and permissions, and the checks
//! of their consistency.

#[cfg(feature = "testing")]
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kctl_runtime::{
    manifest::{self, KindSpec},
    reconcile::{Error, Result},
    shard::SLOTS_MAX,
    spec::{self, ControllerSpec},
};
#[cfg(feature = "testing")]
use kctl_runtime::{
    manifest::{Permission, all_permissions, permissions},
    source::Presence,
};

#[cfg(feature = "karmada")]
use kctl_interpreter::kind::Gvk;
#[cfg(feature = "karmada")]
use kube::core::GroupVersionKind;

use super::App;
#[cfg(feature = "karmada-chain")]
use super::chain;
#[cfg(feature = "testing")]
use super::{Permissions, derived};

impl App {
    /// Returns the declarations of all controllers.
    ///
    /// A [`ControllerSpec`] has everything that `#[controller(…)]` declares: relations, verbs, options.
    /// The `generate-…` commands print from it.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[controller(owns = Pod(create), concurrency = 4)]
    /// async fn runner(_config: Arc<ConfigMap>, _cx: Context<runner>) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let specs = App::new("runner").controller::<runner>().specs();
    /// assert_eq!(specs[0].relations[0].kind.plural, "pods");
    /// let rules = kctl_runtime::manifest::permissions(&specs, "");
    /// assert!(rules.iter().any(|permission| permission.to_string() == "create pods"));
    /// ```
    pub fn specs(&self) -> Vec<ControllerSpec> {
        #[allow(unused_mut, reason = "features add to it")]
        let mut specs: Vec<ControllerSpec> =
            self.controllers.iter().map(|controller| controller.spec.clone()).collect();
        #[cfg(feature = "karmada-chain")]
        if let Some(first) = specs.first_mut().filter(|_| !self.chains.is_empty()) {
            // The role belongs to the app. A chain has no declaration, so the first controller carries its rules.
            first.rbac.extend(chain::rules());
        }
        specs
    }

    /// Returns the CRDs for the embedded API server: the CRDs of the app's kinds and of the kinds that a chain of
    /// interpreters watches. Kinds that controllers only own, watch or read are included if their types have a CRD.
    #[cfg(feature = "testing")]
    pub(crate) fn definitions(&self) -> Result<Vec<CustomResourceDefinition>> {
        #[allow(unused_mut, reason = "features add to it")]
        let mut kinds = self.kinds();
        #[cfg(feature = "karmada-chain")]
        if !self.chains.is_empty() && !self.has_interpreter_kinds {
            kinds.extend(chain::kinds());
        }
        kinds.extend(self.related_kinds(&kinds));
        derived::definitions(&kinds)
    }

    /// Returns the kinds of required relations whose CRDs another program installs on a cluster.
    ///
    /// On a test server the app has to install them. Optional kinds are left out, so that tests
    /// first run without them.
    #[cfg(feature = "testing")]
    fn related_kinds(&self, listed: &[KindSpec]) -> Vec<KindSpec> {
        let group_kind = |kind: &KindSpec| (kind.kind.group.clone(), kind.kind.kind.clone());
        let mut related: Vec<KindSpec> = Vec::new();
        for spec in self.controllers.iter().map(|controller| &controller.spec) {
            let required = spec.relations.iter().filter(|relation| relation.presence == Presence::Required);
            for kind in required.filter_map(|relation| KindSpec::from_relation(spec, relation)) {
                let is_known = listed.iter().any(|listed| group_kind(listed) == group_kind(&kind))
                    || related.iter().any(|other| other.kind == kind.kind);
                // A Rust type may describe only a part of a kind. If its CRD would be invalid, it is not installed.
                if !is_known && derived::definitions(std::slice::from_ref(&kind)).is_ok() {
                    related.push(kind);
                }
            }
        }
        related
    }

    /// Returns the declarations, restricted to the namespaces that the app is run for.
    pub(super) fn specs_in_use(&self) -> Vec<ControllerSpec> {
        self.specs().into_iter().map(|spec| self.in_use(spec)).collect()
    }

    pub(super) fn in_use(&self, mut spec: ControllerSpec) -> ControllerSpec {
        if !self.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        spec
    }

    /// Returns the permissions that the app needs on each cluster. The name of the one that it is
    /// started against is empty.
    #[cfg(feature = "testing")]
    pub(crate) fn permissions(&self) -> Permissions {
        self.on_each_cluster(permissions)
    }

    /// Returns the permissions with those that larger ones cover.
    #[cfg(feature = "testing")]
    pub(crate) fn all_permissions(&self) -> Permissions {
        self.on_each_cluster(all_permissions)
    }

    #[cfg(feature = "testing")]
    fn on_each_cluster(&self, permissions: fn(&[ControllerSpec], &str) -> Vec<Permission>) -> Permissions {
        let specs = self.specs_in_use();
        let names = std::iter::once("").chain(self.clusters.iter().map(|(name, _)| name.as_str()));
        names.map(|name| (name.to_owned(), permissions(&specs, name))).collect()
    }

    #[cfg(feature = "sim")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the other clusters.
    #[cfg(feature = "sim")]
    pub(crate) fn cluster_names(&self) -> Vec<String> {
        self.clusters.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Restricts the app to a namespace, like `run --namespace`.
    #[cfg(feature = "testing")]
    pub(crate) fn run_only_in(&mut self, namespace: &str) {
        self.namespaces = vec![namespace.into()];
    }

    /// Returns an error for a cluster that [`App::cluster`] did not add.
    pub(super) fn check_cluster(&self, name: &str) -> Result<()> {
        if self.clusters.iter().any(|(cluster, _)| cluster == name) {
            return Ok(());
        }
        Err(Error::from(format!("there is no cluster `{name}`; add it by `App::cluster`")))
    }

    /// Returns all kinds with a CRD: primaries of controllers, kinds of [`App::kind`], and kinds that only
    /// interpreters, admission functions and conversions use.
    ///
    /// ```
    /// use kctl::prelude::*;
    ///
    /// #[resource(group = "example.com", version = "v1", kind = "Web", namespaced)]
    /// pub struct WebSpec {
    ///     pub host: String,
    /// }
    ///
    /// let app = App::new("webs").kind::<Web>();
    /// assert_eq!(app.kinds()[0].kind.kind, "Web");
    /// let crds = kctl::manifest::definitions(&app.kinds(), kctl::manifest::Descriptions::Own)?;
    /// assert_eq!(crds[0].metadata.name.as_deref(), Some("webs.example.com"));
    /// # Ok::<(), kctl::Error>(())
    /// ```
    pub fn kinds(&self) -> Vec<KindSpec> {
        let reconciled = self.controllers.iter().filter_map(|controller| KindSpec::from_spec(&controller.spec));
        #[allow(unused_mut, reason = "features add to it")]
        let mut kinds: Vec<KindSpec> = reconciled.chain(self.kinds.iter().cloned()).collect();
        #[cfg(feature = "karmada-chain")]
        kinds.extend(chain::kinds().into_iter().filter(|_| self.has_interpreter_kinds));
        #[cfg(feature = "karmada")]
        kinds.extend(self.interpreters.iter().filter_map(|rule| {
            let Gvk { group, version, kind } = rule.kind();
            let kind = GroupVersionKind::gvk(group, version, kind);
            let location = rule.function_info().location();
            Some(KindSpec::new(location, kind, rule.definition()?).with_schema(rule.schema()))
        }));
        #[cfg(feature = "webhook")]
        kinds.extend(self.webhook_functions.kinds());
        kinds
    }

    /// Checks that the declarations are consistent: a valid name of the app, unique names and kinds, known clusters, valid
    /// finalizers, durations and namespaces, and rules that grant something.
    pub(super) fn check(&self) -> Result<()> {
        // The service account, the roles and the Lease have this name.
        super::names::name(&self.name).map_err(|what| Error::from(format!("App::new(\"{}\"): {what}", self.name)))?;
        if let Some((slots, _by)) = self.shards.filter(|(slots, _by)| *slots > SLOTS_MAX) {
            return Err(Error::from(format!("App::sharded({slots}, …): at most {SLOTS_MAX} slots are possible")));
        }
        #[cfg(feature = "karmada")]
        kctl_interpreter::function::Functions::new(self.interpreters.clone())?;
        #[cfg(feature = "webhook")]
        self.check_hooks()?;
        #[cfg(feature = "karmada-chain")]
        self.chains.iter().try_for_each(|registry| chain::check(registry))?;
        let specs = self.specs();
        for (index, spec) in specs.iter().enumerate() {
            if let Some(first) = specs[..index].iter().find(|other| other.name == spec.name) {
                return Err(Error::from(duplicate_name_error(first, spec)));
            }
            // The namespaces of `--namespace` replace the namespaces of a declaration, even an empty list.
            let in_use = if spec.namespaces.is_empty() { self.in_use(spec.clone()) } else { spec.clone() };
            let problem = spec::finalizer_problem(spec).or_else(|| spec::declaration_problem(&in_use));
            if let Some((what, help)) = problem.or_else(|| manifest::subresource_problem(spec)) {
                return Err(Error::from(format!("{}: {what}\nhelp: {help}", spec.location)));
            }
            let relations = std::iter::once(&spec.primary).chain(&spec.relations).map(|relation| &relation.cluster);
            let used = relations.chain(spec.rbac.iter().map(|extra| &extra.cluster));
            for extra in &spec.rbac {
                if let Some((what, help)) = manifest::rule_problem(&extra.rule) {
                    return Err(Error::from(format!(
                        "{}: the rule of `{}` has no effect: {what}\nhelp: {help}",
                        spec.location, extra.text
                    )));
                }
            }
            for cluster in used.filter(|cluster| !cluster.is_empty()) {
                if !self.clusters.iter().any(|(name, _)| name == cluster) {
                    return Err(Error::from(format!(
                        "{}: there is no cluster `{cluster}`; add it by `App::cluster`",
                        spec.location
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Returns the error for two controllers with one name, or one that was added twice.
fn duplicate_name_error(first: &ControllerSpec, second: &ControllerSpec) -> String {
    let ControllerSpec { name, location, .. } = second;
    if first.location == *location && first.primary.kind == second.primary.kind {
        return format!("the controller `{name}` ({location}) is added twice; remove one of the two calls");
    }
    format!(
        "two controllers are named `{name}`: {} and {location}; write `name = \"…\"` in one of them",
        first.location
    )
}
