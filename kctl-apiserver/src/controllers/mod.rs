//! The controllers of kube-controller-manager that do not simulate workloads: garbage collection by owner references, namespaces and their
//! objects, quotas, tokens of accounts, aggregated roles; and the end of `CustomResourceDefinitions`, which is the API server's own.

pub(crate) mod accounts;
pub(crate) mod api_services;
pub(crate) mod definitions;
mod garbage;
mod namespaces;
mod options;
pub(crate) mod quotas;
mod roles;
pub(crate) mod tokens;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

pub(crate) use garbage::Garbage;
pub use options::{Controller, ControllerOptions, UnknownController};
pub(crate) use roles::aggregated;

use crate::store::State;

/// How much is left to look at.
pub(crate) fn pending(state: &Mutex<State>) -> usize {
    let mut state = state.lock();
    state.owners().n_suspects()
        + usize::from(state.roles_changed)
        + state.names_freed.len()
        + state.quotas_touched.len()
        + state.namespaces_touched.len()
        + state.tokens_touched.len()
        + usize::from(state.api_services_touched)
}

impl State {
    /// Selects the controllers of this server, and has those that are new look at what is there already.
    pub(crate) fn enable(&mut self, options: &ControllerOptions) {
        self.enabled = options.clone();
        self.look_at_accounts();
    }

    /// Has the controllers of accounts look at all namespaces and tokens: they start, or the certificate authority is another one.
    fn look_at_accounts(&mut self) {
        if self.fills_namespaces() {
            self.namespaces_touched.extend(accounts::all(self));
        }
        if self.enabled.runs(Controller::ServiceAccountToken) {
            self.tokens_touched.extend(tokens::all(self));
        }
    }

    /// Sets the certificate authority that clients of this server trust, as PEM.
    #[cfg(feature = "serve")]
    pub(crate) fn trust(&mut self, authority: &str) {
        if self.root_ca.as_deref() != Some(authority) {
            self.root_ca = Some(authority.into());
            self.look_at_accounts();
            self.wake();
        }
    }

    pub(crate) fn fills_namespaces(&self) -> bool {
        self.enabled.runs(Controller::ServiceAccount) || self.enabled.runs(Controller::RootCaCertificatePublisher)
    }
}

impl Garbage {
    /// Works until it is dropped: so long after a change.
    pub(crate) async fn run(self, delay: Duration) {
        let mut changes = self.state().lock().changes();
        loop {
            changes.borrow_and_update();
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            // What comes up meanwhile has its turn after the next delay.
            let mut left = if delay.is_zero() { usize::MAX } else { pending(self.state()).max(1) };
            while left > 0 && self.step() {
                left -= 1;
                // Others get their turn between two objects.
                tokio::task::yield_now().await;
            }
            if left > 0 && changes.changed().await.is_err() {
                return;
            }
        }
    }
}

pub(crate) type Shared = Arc<Mutex<State>>;
