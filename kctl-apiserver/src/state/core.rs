//! The core of a server: everything that outlives a request and is not an object, such as the key of tokens, the
//! webhooks in this process, the controllers' queues, caches, the audit log and counters.

use std::fs::File;

use crate::{
    authorizer::RuleCache, clock::Rng, controllers::Controllers, feature_gates::FeatureGates, metrics::Counts,
    request_log::RequestLog, tokens::SharedSigner, transport::Transport,
};

/// All of a server but its objects. None of it is in the journal of `--data`; the token key has a separate file there.
pub(crate) struct Core {
    /// The server's own controllers and their queues.
    pub(crate) controllers: Controllers,
    /// The RBAC rules of users, computed from roles and bindings. All requests share them.
    pub(super) rule_cache: RuleCache,
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

impl Core {
    /// Creates the core of a new server. No controller of kube-controller-manager runs.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            controllers: Controllers::new(),
            rule_cache: RuleCache::default(),
            signer: SharedSigner::default(),
            feature_gates: FeatureGates::default(),
            transport: Transport::default(),
            requests: RequestLog::default(),
            counts: Counts::default(),
            audit: None,
            audit_ids: Rng::new(!seed),
        }
    }

    /// Returns the core of a copied server. It has the same token key and in-process webhooks, but no observers and no
    /// audit log.
    pub(super) fn fork(&self, seed: u64) -> Self {
        Self {
            controllers: self.controllers.fork(),
            signer: self.signer.clone(),
            feature_gates: self.feature_gates,
            transport: self.transport.clone(),
            ..Self::new(seed)
        }
    }
}
