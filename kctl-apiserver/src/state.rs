//! The state of one server: its objects in the store, and everything else that requests read and change in the core.
//! One lock guards both, so requests are handled one after the other.
//!
//! A function takes the half that it needs: `&Store` if it only reads or writes objects, `&Core` if it needs no object,
//! and `&State` if it needs both, such as an authorized or an admitted write.

mod core;

use std::{
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::Path,
    sync::Arc,
};

pub(crate) use self::core::Core;
use crate::{
    authorizer::{Rbac, RuleResolver, UserRules},
    bootstrap,
    clock::{Clock, Rng},
    kinds,
    request::User,
    store::{Folder, Store},
    tokens::SharedSigner,
    webhook_round::WebhookRound,
};

/// The complete state of a server.
pub(crate) struct State {
    /// The objects with their history, the registry of resources, and the journal.
    pub(crate) store: Store,
    /// The authorizer's cache, the token key, webhooks, controllers and counters.
    pub(crate) core: Core,
}

/// The authorizer reads roles and bindings from the store, and caches the rules of a user in the core.
impl RuleResolver for State {
    fn rules_for(&self, user: &User, namespace: &str) -> Arc<UserRules> {
        Rbac { store: &self.store, cache: &self.core.rule_cache }.rules_for(user, namespace)
    }
}

impl State {
    /// Creates a state without objects.
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        Self { store: Store::new(kinds::built_in(), clock, seed), core: Core::new(seed) }
    }

    /// Returns a copy for another server. It has the same objects, token key and in-process webhooks, but no watchers
    /// and observers.
    pub(crate) fn fork(&self, clock: Clock, seed: u64) -> Self {
        Self { store: self.store.fork(clock, seed), core: self.core.fork(seed) }
    }

    /// Keeps all objects and the token key in a folder from now on. Objects that are in it already replace the present
    /// ones.
    ///
    /// # Errors
    /// Fails if the folder can't be written, or if another server uses it.
    pub(crate) fn persist_in(&mut self, folder: &Path) -> io::Result<()> {
        let Self { store, core } = self;
        let mut opened = Folder::open(folder)?;
        core.signer = SharedSigner::load_or_create(folder).map_err(io::Error::other)?;
        if opened.is_new() {
            store.write_to(&mut opened)?;
        } else {
            store.load(&mut opened);
            core.rule_cache.clear();
            core.controllers.enqueue_names(store);
            bootstrap::objects(store);
            store.redecode_all();
        }
        store.set_folder(opened);
        Ok(())
    }

    /// Creates the missing objects of a namespace before the first Pod in it (see [`Controllers::complete_namespace`]).
    ///
    /// [`Controllers::complete_namespace`]: crate::controllers::Controllers::complete_namespace
    pub(crate) fn complete_namespace(&mut self, namespace: &str) {
        self.core.controllers.complete_namespace(&mut self.store, namespace);
    }

    /// Updates the server's own controllers after a request (see [`Controllers::after_request`]).
    ///
    /// [`Controllers::after_request`]: crate::controllers::Controllers::after_request
    pub(crate) fn after_request(&mut self) {
        self.core.controllers.after_request(&mut self.store);
    }

    /// Runs the controllers for one object. Returns `false` if nothing is left to do.
    pub(crate) fn step_controllers(&mut self) -> bool {
        self.core.controllers.step(&mut self.store, &self.core.signer)
    }

    /// Returns the number of objects that the controllers still have to process.
    pub(crate) fn pending(&mut self) -> usize {
        self.core.controllers.pending(&mut self.store)
    }

    /// Selects the controllers that run.
    pub(crate) fn enable(&mut self, options: &crate::controllers::ControllerOptions) {
        self.core.controllers.enable(&mut self.store, options);
    }

    /// Sets the certificate authority that clients of this server trust, as PEM.
    #[cfg(feature = "serve")]
    pub(crate) fn trust(&mut self, authority: &str) {
        self.core.controllers.trust(&mut self.store, authority);
    }

    /// Runs a request that may run several times because it waits for webhooks. All runs use the time and the random
    /// sequence of the first one. A run that waits restores the server's own sequence, clock and allocated addresses.
    /// While it waits, other requests draw from another random sequence. A run that panics, for example in an observer,
    /// restores the clock too: it would stop for all later requests.
    pub(crate) fn run_repeatably<T>(&mut self, round: &WebhookRound, run: impl FnOnce(&mut Self) -> T) -> T {
        let is_first = round.is_first_run();
        let (rng, now) = round.begin_run(&self.store.rng, self.store.clock.now());
        let outer_rng = mem::replace(&mut self.store.rng, rng);
        let outer_clock = mem::replace(&mut self.store.clock, Clock::At(now));
        let n_addresses = self.store.n_addresses;
        // The panic continues below. The lock is not poisoned, so later requests see this state in any case.
        let result = catch_unwind(AssertUnwindSafe(|| run(self)));
        let waits = round.is_waiting();
        self.store.clock = outer_clock;
        if waits {
            self.store.n_addresses = n_addresses;
        }
        match (is_first, waits) {
            // A request that calls no webhook draws from the generator of the server.
            (true, false) => {}
            // Other requests draw from another sequence than the one that this request repeats.
            (true, true) => {
                let mut other = outer_rng;
                self.store.rng = Rng::new(other.next());
            }
            (false, _) => self.store.rng = outer_rng,
        }
        match result {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{authorizer::RBAC, status::GroupResource};

    fn put(state: &mut State, resource: &str, mut object: Value) {
        object["metadata"] = json!({ "name": "x", "namespace": "a" });
        state.store.put(&GroupResource::new(RBAC, resource), ("a".into(), "x".into()), object);
    }

    #[test]
    fn panic_in_a_request_keeps_the_clock_running() {
        let mut state = State::new(Clock::System, 0);
        let run = AssertUnwindSafe(|| state.run_repeatably::<u8>(&WebhookRound::default(), |_| panic!("on purpose")));
        assert!(catch_unwind(run).is_err_and(|panic| panic.is::<&str>()));
        assert!(matches!(state.store.clock, Clock::System), "{:?}", state.store.clock.now());
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
        fork.store.remove(&GroupResource::new(RBAC, "roles"), &("a".into(), "x".into()));
        assert_eq!((n_rules(&state), n_rules(&fork)), (1, 0));
    }
}
