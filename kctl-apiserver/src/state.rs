//! The state of one server: its objects, and everything else that requests read and change. One lock guards it, so
//! requests are handled one after the other.
//!
//! Parts that outlive a request, such as the key of tokens and the handlers of webhooks, are here. Everything that has
//! to be kept in a folder is in the `Store`.

use std::{
    fs::File,
    io, mem,
    ops::{Deref, DerefMut},
    path::Path,
    sync::Arc,
};

use crate::{
    authorizer::{Rbac, RuleCache, RuleResolver, UserRules},
    bootstrap,
    clock::{Clock, Rng},
    controllers::Controllers,
    feature_gates::FeatureGates,
    impersonation::{self, LastModes},
    metrics::Counts,
    registry::kind::Environment,
    request::{Caller, User},
    request_log::RequestLog,
    status::StatusError,
    store::{Folder, Store, address},
    tokens::SharedSigner,
    transport::Transport,
    webhook_round::WebhookRound,
};

/// The complete state of a server. It dereferences to its [`Store`], which most code uses.
pub(crate) struct State {
    /// The objects, the registry of resources, and the journal.
    store: Store,
    /// The server's own controllers and their queues.
    pub(crate) controllers: Controllers,
    /// The RBAC rules of users, computed from roles and bindings.
    rule_cache: RuleCache,
    /// The impersonation mode that each user's last request used.
    last_modes: LastModes,
    /// The key of service account tokens.
    pub(crate) signer: SharedSigner,
    /// The feature gates that differ from the defaults.
    pub(crate) feature_gates: FeatureGates,
    /// Sends the calls of webhooks.
    pub(crate) transport: Transport,
    /// The last answered requests, for tests and observers.
    pub(crate) requests: RequestLog,
    /// The counters behind `/metrics`.
    pub(crate) counts: Counts,
    /// The file of the audit log. `None` without an audit log, and after a failed write to it.
    pub(crate) audit: Option<File>,
    /// The source of ids of audit events. Separate from the random sequence of the store, so that uids of objects do
    /// not depend on the number of requests.
    pub(crate) audit_ids: Rng,
}

impl Deref for State {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}

impl RuleResolver for State {
    fn rules_for(&self, user: &User, namespace: &str) -> Arc<UserRules> {
        Rbac { store: &self.store, cache: &self.rule_cache }.rules_for(user, namespace)
    }
}

/// The functions of kinds that prepare an object see the state only through this trait, so they can
/// not read other objects.
impl Environment for State {
    fn now(&self) -> String {
        self.clock.seconds()
    }

    fn uid(&mut self) -> String {
        self.rng.uid()
    }

    fn cluster_ip(&mut self) -> String {
        self.n_addresses += 1;
        address(self.n_addresses)
    }
}

impl State {
    /// Creates a state without objects.
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self {
            store: Store::new(clock, seed),
            controllers: Controllers::new(),
            rule_cache: RuleCache::default(),
            last_modes: LastModes::default(),
            signer: SharedSigner::default(),
            feature_gates: FeatureGates::default(),
            transport: Transport::default(),
            requests: RequestLog::default(),
            counts: Counts::default(),
            audit: None,
            audit_ids: Rng::new(!seed),
        }
    }

    /// Returns a copy for another server. It has the same objects, token key and in-process webhooks, but no watchers
    /// and observers.
    pub(crate) fn fork(&self, clock: Clock, seed: u64) -> Self {
        Self {
            store: self.store.fork(clock, seed),
            controllers: self.controllers.fork(),
            signer: self.signer.clone(),
            feature_gates: self.feature_gates,
            transport: self.transport.clone(),
            ..Self::new(clock, seed)
        }
    }

    /// Keeps all objects and the token key in a folder from now on. Objects that are in it already replace the present
    /// ones.
    ///
    /// # Errors
    /// Fails if the folder can't be written, or if another server uses it.
    pub(crate) fn persist_in(&mut self, folder: &Path) -> io::Result<()> {
        let mut opened = Folder::open(folder)?;
        self.signer = SharedSigner::load_or_create(folder).map_err(io::Error::other)?;
        if opened.is_new() {
            self.store.write_to(&mut opened)?;
        } else {
            self.store.load(&mut opened);
            self.rule_cache.clear();
            self.controllers.look_at_names(&self.store);
            bootstrap::objects(&mut self.store);
            self.store.redecode_all();
        }
        self.store.set_folder(opened);
        Ok(())
    }

    /// Returns the caller as which a request acts; see [`impersonation::impersonate`].
    pub(crate) fn impersonate(&mut self, caller: &Caller, parts: &http::request::Parts) -> Result<Caller, StatusError> {
        let rbac = Rbac { store: &self.store, cache: &self.rule_cache };
        impersonation::impersonate(&rbac, &mut self.last_modes, caller, parts)
    }

    /// Creates the missing objects of a namespace before the first Pod in it (see [`Controllers::complete_namespace`]).
    pub(crate) fn complete_namespace(&mut self, namespace: &str) {
        self.controllers.complete_namespace(&mut self.store, namespace);
    }

    /// Updates the server's own controllers after a request (see [`Controllers::after_request`]).
    pub(crate) fn after_request(&mut self) {
        self.controllers.after_request(&mut self.store);
    }

    /// Runs the controllers for one object. Returns `false` if nothing is left to do.
    pub(crate) fn step_controllers(&mut self) -> bool {
        self.controllers.step(&mut self.store, &self.signer)
    }

    /// Returns the number of objects that the controllers still have to process.
    pub(crate) fn pending(&mut self) -> usize {
        self.controllers.pending(&mut self.store)
    }

    /// Selects the controllers that run.
    pub(crate) fn enable(&mut self, options: &crate::controllers::ControllerOptions) {
        self.controllers.enable(&mut self.store, options);
    }

    /// Sets the certificate authority that clients of this server trust, as PEM.
    #[cfg(feature = "serve")]
    pub(crate) fn trust(&mut self, authority: &str) {
        self.controllers.trust(&mut self.store, authority);
    }

    /// Runs a request that may run several times because it waits for webhooks. All runs use the time and the random
    /// sequence of the first one. A run that waits restores the server's own sequence, clock and allocated addresses.
    /// While it waits, other requests draw from another random sequence.
    pub(crate) fn run_repeatably<T>(&mut self, round: &WebhookRound, run: impl FnOnce(&mut Self) -> T) -> T {
        let is_first = round.is_first_run();
        let (rng, now) = round.begin_run(&self.rng, self.clock.now());
        let outer_rng = mem::replace(&mut self.rng, rng);
        let outer_clock = mem::replace(&mut self.clock, Clock::At(now));
        let n_addresses = self.n_addresses;
        let result = run(self);
        let waits = round.is_waiting();
        self.clock = outer_clock;
        if waits {
            self.n_addresses = n_addresses;
        }
        match (is_first, waits) {
            // A request that calls no webhook draws from the generator of the server.
            (true, false) => {}
            // Other requests draw from another sequence than the one that this request repeats.
            (true, true) => {
                let mut other = outer_rng;
                self.rng = Rng::new(other.next());
            }
            (false, _) => self.rng = outer_rng,
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{authorizer::RBAC, status::GroupResource};

    fn put(state: &mut State, resource: &str, mut object: Value) {
        object["metadata"] = json!({ "name": "x", "namespace": "a" });
        state.put(&GroupResource::new(RBAC, resource), ("a".into(), "x".into()), object);
    }

    #[test]
    fn fork_evaluates_rules_from_forked_objects() {
        let mut state = State::new(Clock::System, 0);
        put(&mut state, "roles", json!({ "rules": [{ "verbs": ["get"] }] }));
        let subjects = json!([{ "kind": "User", "name": "pat" }]);
        put(&mut state, "rolebindings", json!({ "subjects": subjects, "roleRef": { "kind": "Role", "name": "x" } }));
        let n_rules = |state: &State| {
            let pat = User { name: "pat".into(), groups: Vec::new() };
            crate::authorizer::rules_of(state, &pat, "a").0.len()
        };
        assert_eq!(n_rules(&state), 1);
        let mut fork = state.fork(Clock::System, 1);
        fork.remove(&GroupResource::new(RBAC, "roles"), &("a".into(), "x".into()));
        assert_eq!((n_rules(&state), n_rules(&fork)), (1, 0));
    }
}
