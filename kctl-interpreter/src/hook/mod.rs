//! The webhooks of others as a layer: `ResourceInterpreterWebhookConfiguration`s, and a client that calls what they name.
//!
//! It asks and checks as Karmada's own client does (`pkg/resourceinterpreter/customized/webhook`), with its texts. Differences:
//! a redirect is followed to https only, and the certificate is always that of the host which is asked; a webhook without a timeout is
//! waited for [`TIMEOUT_DEFAULT`], which Karmada's documentation says and its code does not; an answer has at most [`ANSWER_LEN_MAX`]
//! bytes; and the text of an answer that is an HTTP error is kept.
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, Place}, hook::Hooks, kind::Gvk, operation::Operation};
//! use serde_json::json;
//!
//! let configuration = json!({
//!     "apiVersion": "config.karmada.io/v1alpha1",
//!     "kind": "ResourceInterpreterWebhookConfiguration",
//!     "metadata": { "name": "workloads" },
//!     "webhooks": [{
//!         "name": "workloads.example.com",
//!         "clientConfig": { "url": "https://127.0.0.1:9443/interpreter-workload" },
//!         "rules": [{ "operations": ["InterpretHealth"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "kinds": ["Workload"] }],
//!         "interpreterContextVersions": ["v1alpha1"],
//!     }],
//! });
//! // There is no control plane here that could know a Service: its name is looked up in the DNS then.
//! let services = |_namespace: &str, _name: &str| None;
//! let hooks = Hooks::new([&configuration], services)?;
//! let chain = Chain::native().with(Place::Webhook, hooks);
//! let kind = Gvk { group: "example.com".into(), version: "v1".into(), kind: "Workload".into() };
//! assert!(chain.hook_enabled(Operation::InterpretHealth, &kind));
//! # Ok::<(), kctl_interpreter::hook::ConfigurationMalformed>(())
//! ```

mod call;
mod configuration;
mod dial;
mod error;
mod patch;
mod request;
mod verify;

use std::sync::Arc;

use serde_json::Value;

use self::call::Caller;
pub use self::{
    call::{ANSWER_LEN_MAX, TIMEOUT_DEFAULT},
    configuration::{ConfigurationMalformed, KIND},
    dial::{ServiceUnusable, Services},
    error::{CallFailed, HookError},
};
use crate::{
    chain::{Layer, LayerError, LayerFuture},
    kind::Gvk,
    operation::{Inputs, Operation},
};

/// The webhooks of all configurations; none by default.
pub struct Hooks {
    services: Arc<dyn Services>,
    /// In the order of their full names: of those that match, the first is called.
    hooks: Vec<Hook>,
}

/// One webhook.
struct Hook {
    /// `configuration/webhook`, by which errors name it.
    name: String,
    rules: Vec<configuration::Rule>,
    caller: Arc<Caller>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { services: Arc::new(|_namespace: &str, _name: &str| None), hooks: Vec::new() }
    }
}

impl Hooks {
    /// Takes configurations, as JSON of their objects. `services` knows the Services of the control plane; it is asked for
    /// each connection. A webhook whose address or authority can't be used has its error in each call, as in Karmada.
    ///
    /// # Errors
    /// An object is not a configuration: the error names it and the field.
    pub fn new<'a>(
        configurations: impl IntoIterator<Item = &'a Value>,
        services: impl Services + 'static,
    ) -> Result<Self, ConfigurationMalformed> {
        let none = Self { services: Arc::new(services), hooks: Vec::new() };
        let (hooks, malformed) = none.followed_by(configurations);
        malformed.into_iter().next().map_or(Ok(hooks), Err)
    }

    /// Creates the layer for changed configurations, and returns the invalid ones. Webhooks with an unchanged client configuration keep their
    /// connections.
    #[must_use]
    pub fn followed_by<'a>(
        &self,
        configurations: impl IntoIterator<Item = &'a Value>,
    ) -> (Self, Vec<ConfigurationMalformed>) {
        let (mut hooks, mut malformed) = (Vec::new(), Vec::new());
        for object in configurations {
            let configuration = match configuration::Configuration::read(object) {
                Ok(configuration) => configuration,
                Err(error) => {
                    malformed.push(error);
                    continue;
                }
            };
            for webhook in configuration.webhooks {
                let name = format!("{}/{}", configuration.metadata.name, webhook.name);
                let kept = self.hooks.iter().find(|hook| hook.caller.is_of(&name, &webhook));
                let caller = kept.map_or_else(
                    || Arc::new(Caller::new(&name, &webhook, self.services.clone())),
                    |hook| hook.caller.clone(),
                );
                hooks.push(Hook { name, rules: webhook.rules, caller });
            }
        }
        hooks.sort_by(|a, b| a.name.cmp(&b.name));
        (Self { services: self.services.clone(), hooks }, malformed)
    }

    fn first(&self, operation: Operation, kind: &Gvk) -> Option<&Hook> {
        // Prune has no place on the wire: not even a rule for every operation is one for it.
        let on_the_wire = operation != Operation::Prune;
        let matches = |hook: &&Hook| hook.rules.iter().any(|rule| rule.matches(operation, kind));
        self.hooks.iter().filter(|_| on_the_wire).find(matches)
    }
}

impl Layer for Hooks {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.first(operation, kind).is_some()
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a> {
        Box::pin(async move {
            let hook = self.first(operation, &inputs.kind());
            let hook = hook.unwrap_or_else(|| unreachable!("the chain asks only for what the layer handles"));
            hook.caller.call(operation, inputs).await.map_err(LayerError::from)
        })
    }
}
