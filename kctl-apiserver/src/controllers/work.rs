//! The queues of the controllers: record which objects are affected by changes, and work on one object at a time.
//!
//! Work is recorded in sets, so that many changes of one object cause one pass, as in a work queue. The sets are
//! ordered, so that a seed gives one order of work. After each pass the changes that it made are observed again.
//!
//! Nothing here is stored: a server that starts with existing objects queues the necessary work (`enable`,
//! `enqueue_names`), and the graph of owners is rebuilt from the objects.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Controller, ControllerOptions, api_services, definitions, garbage, namespaces, quotas, roles, service_accounts,
    tokens::{self, TokenWork},
};
use crate::{
    crd,
    deletion::is_being_deleted,
    kinds::{
        apiextensions::custom_resource_definition::DEFINITIONS, apiregistration::api_service::API_SERVICES,
        core::namespace, rbac::cluster_role,
    },
    store::{AnnouncedChange, Store},
    tokens::SharedSigner,
};

/// The selected controllers of one server, and their pending work. They observe the changes that the store announces.
pub(crate) struct Controllers {
    /// The selected controllers.
    enabled: ControllerOptions,
    /// The certificate authority that clients trust, as PEM; `None` before the server listens.
    pub(super) root_ca: Option<Arc<str>>,
    /// `true` if the rules of aggregated roles may have changed.
    roles_changed: bool,
    /// Groups in which names of CRDs have become free.
    names_freed: BTreeSet<String>,
    /// Namespaces whose usage may be lower than in the status of their quotas.
    quotas_touched: BTreeSet<String>,
    /// Namespaces that may lack their `ServiceAccount` or `ConfigMap`. Empty if no controller creates them.
    namespaces_touched: BTreeSet<String>,
    /// Work of the token controller. Empty if it does not run.
    tokens_touched: BTreeSet<TokenWork>,
    /// `true` if the availability of `APIServices` may have changed.
    api_services_touched: bool,
}

impl Controllers {
    /// Returns the controllers of a new server. No controller of kube-controller-manager runs.
    pub(crate) fn new() -> Self {
        Self {
            enabled: ControllerOptions::none(),
            root_ca: None,
            roles_changed: false,
            names_freed: BTreeSet::new(),
            quotas_touched: BTreeSet::new(),
            namespaces_touched: BTreeSet::new(),
            tokens_touched: BTreeSet::new(),
            api_services_touched: false,
        }
    }

    /// Returns the controllers of a copied server: no controller of kube-controller-manager runs, and the work that all
    /// servers share is pending. Work of controllers of kube-controller-manager that is not shared is dropped, because
    /// they do not run on the copy.
    pub(crate) fn fork(&self) -> Self {
        Self {
            roles_changed: self.roles_changed,
            names_freed: self.names_freed.clone(),
            quotas_touched: self.quotas_touched.clone(),
            ..Self::new()
        }
    }

    /// Returns `true` if a controller runs on this server.
    pub(crate) fn runs(&self, controller: Controller) -> bool {
        self.enabled.runs(controller)
    }

    /// Selects the controllers of this server, and queues their work for existing objects. Earlier changes are first
    /// observed with the old selection.
    pub(crate) fn enable(&mut self, store: &mut Store, options: &ControllerOptions) {
        self.observe(store);
        self.enabled = options.clone();
        self.enqueue_accounts(store);
    }

    /// Sets the certificate authority that clients of this server trust, as PEM.
    #[cfg(feature = "serve")]
    pub(crate) fn trust(&mut self, store: &mut Store, authority: &str) {
        if self.root_ca.as_deref() != Some(authority) {
            self.root_ca = Some(authority.into());
            self.enqueue_accounts(store);
            store.wake();
        }
    }

    /// Queues all namespaces and token Secrets.
    fn enqueue_accounts(&mut self, store: &Store) {
        if self.fills_namespaces() {
            self.namespaces_touched.extend(service_accounts::namespaces(store));
        }
        if self.runs(Controller::ServiceAccountToken) {
            self.tokens_touched.extend(tokens::initial_work(store));
        }
    }

    /// Queues the CRDs of a loaded store whose names are not accepted yet.
    pub(crate) fn enqueue_names(&mut self, store: &Store) {
        let waiting = store.objects(&DEFINITIONS, None).filter(|definition| !crd::names_accepted(definition));
        let groups = waiting.filter_map(|definition| definition["spec"]["group"].as_str().map(str::to_owned));
        self.names_freed = groups.collect();
    }

    /// Returns `true` if a controller creates objects in each namespace.
    fn fills_namespaces(&self) -> bool {
        self.runs(Controller::ServiceAccount) || self.runs(Controller::RootCaCertificatePublisher)
    }

    /// Queues the work of all changes since the last call. Work of controllers that don't run is queued only if another
    /// server may need it after a fork. It is called before and after each pass, so no change is missed and none is
    /// counted twice: taking the changes empties their list.
    fn observe(&mut self, store: &mut Store) {
        let announced = store.take_announced();
        if announced.is_empty() {
            return;
        }
        let now = store.clock.now();
        let has_quotas = quotas::has_any(store);
        let has_remote = store.registry.has_remote();
        for AnnouncedChange { resource, event } in announced {
            self.roles_changed |= cluster_role::KIND.is_of(&resource);
            if resource == *DEFINITIONS {
                self.names_freed.extend(definitions::frees_names_in(&event));
            }
            if has_quotas {
                self.quotas_touched.extend(quotas::affected_namespace(&resource, &event, now));
            }
            if self.fills_namespaces() {
                self.namespaces_touched.extend(service_accounts::affected_namespace(&resource, &event));
            }
            if self.runs(Controller::ServiceAccountToken) {
                self.tokens_touched.extend(tokens::work_for_event(&resource, &event));
            }
            self.api_services_touched |=
                resource == *API_SERVICES || (has_remote && api_services::depend_on(&resource));
        }
    }

    /// Returns the number of objects that are queued. Tests and the simulator wait until it is 0.
    pub(crate) fn pending(&mut self, store: &mut Store) -> usize {
        self.observe(store);
        store.owners().n_suspects()
            + usize::from(self.roles_changed)
            + self.names_freed.len()
            + self.quotas_touched.len()
            + self.namespaces_touched.len()
            + self.tokens_touched.len()
            + usize::from(self.api_services_touched)
    }

    /// Creates the missing objects of a namespace before its first Pod. On a cluster, the admission plugin waits for
    /// the account of a new namespace.
    pub(crate) fn complete_namespace(&mut self, store: &mut Store, namespace: &str) {
        self.observe(store);
        if self.namespaces_touched.remove(namespace) {
            service_accounts::complete(self, store, namespace);
        }
    }

    /// Does what kube-apiserver itself does after a change: updates the conditions of `APIServices`.
    pub(crate) fn after_request(&mut self, store: &mut Store) {
        self.observe(store);
        if std::mem::take(&mut self.api_services_touched) {
            api_services::update(store);
            // These writes need no second pass.
            self.observe(store);
            self.api_services_touched = false;
        }
    }

    /// Works on one object. Returns `false` if the queues are empty. The caller holds the lock of the server for one
    /// step, so requests are served between two of them.
    pub(crate) fn step(&mut self, store: &mut Store, signer: &SharedSigner) -> bool {
        self.observe(store);
        let is_left = self.step_once(store, signer);
        self.observe(store);
        is_left
    }

    /// Works on one object of the first queue that is not empty. Returns `false` if all are empty. The order is fixed:
    /// roles, `APIServices`, names of CRDs, quotas, objects of namespaces, tokens, and last the garbage collector,
    /// whose queue is the longest.
    fn step_once(&mut self, store: &mut Store, signer: &SharedSigner) -> bool {
        if std::mem::take(&mut self.roles_changed) {
            if self.runs(Controller::ClusterRoleAggregation) {
                roles::aggregate(store);
            }
        } else if self.api_services_touched {
            self.after_request(store);
        } else if let Some(group) = self.names_freed.pop_first() {
            definitions::recheck_names(store, &group.into());
        } else if let Some(namespace) = self.quotas_touched.pop_first() {
            if self.runs(Controller::ResourceQuota) {
                quotas::recount(store, &namespace);
            }
        } else if let Some(namespace) = self.namespaces_touched.pop_first() {
            service_accounts::complete(self, store, &namespace);
        } else if let Some(work) = self.tokens_touched.pop_first() {
            tokens::sync(store, &tokens::Issuer { signer, root_ca: self.root_ca.as_deref() }, work);
        } else {
            return self.sync_suspect(store);
        }
        true
    }

    /// Runs the garbage collector for one object whose owners or dependents have changed, or that is being deleted. The
    /// deletion of a namespace or a CRD is completed here, too, because both wait for objects that the graph sees
    /// disappear.
    fn sync_suspect(&self, store: &mut Store) -> bool {
        let Some((group_resource, key)) = store.owners().next_suspect() else { return false };
        let Some(object) = store.get(&group_resource, &key) else { return true };
        let Some(resource) = store.registry.any_version(&group_resource) else { return true };
        if self.runs(Controller::GarbageCollector) {
            garbage::sync(store, &resource, &key, &object);
        }
        if is_being_deleted(&object) {
            if namespace::KIND.is_of(&group_resource) && self.runs(Controller::Namespace) {
                namespaces::end(store, &group_resource, &key);
            } else if group_resource == *DEFINITIONS {
                definitions::end(store, &key);
            }
        }
        true
    }
}
