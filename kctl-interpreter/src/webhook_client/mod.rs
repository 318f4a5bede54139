//! The webhook layer: a client for the HTTPS servers that
//! `ResourceInterpreterWebhookConfiguration`s register.
//!
//! [`Webhooks`] reads the configurations of a control plane and is a layer of the
//! [`Chain`](crate::chain::Chain). For each operation it finds the first webhook with a matching
//! rule, sends a `ResourceInterpreterContext` to it, verifies the response, and applies its patch.
//! The module [`webhook`](crate::webhook) is the other side: it serves such requests.
//!
//! Requests, checks and error messages are the same as in Karmada's own client
//! (`pkg/resourceinterpreter/customized/webhook`), so that users find what is written about them. The differences:
//!
//! - A redirect is followed to https only, and the certificate must be valid for the called host.
//! - A webhook without a timeout gets [`TIMEOUT_DEFAULT`], as Karmada documents. Its code sets no
//!   timeout.
//! - A response has at most [`RESPONSE_LEN_MAX`] bytes, and a patch has bounded copies and
//!   operations.
//! - The body of an HTTP error is kept in the message.
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, LayerKind}, webhook_client::Webhooks, kind::Gvk, operation::Operation};
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
//! // This control plane has no Services. A Service that it does not know is resolved by DNS.
//! let services = |_namespace: &str, _name: &str| None;
//! let webhooks = Webhooks::new([&configuration], services)?;
//! let chain = Chain::native().with(LayerKind::Webhook, webhooks);
//! let kind = Gvk { group: "example.com".into(), version: "v1".into(), kind: "Workload".into() };
//! assert!(chain.hook_enabled(Operation::InterpretHealth, &kind));
//! # Ok::<(), kctl_interpreter::webhook_client::ConfigurationError>(())
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
    call::{RESPONSE_LEN_MAX, TIMEOUT_DEFAULT},
    configuration::{ConfigurationError, KIND},
    dial::{ServiceError, Services},
    error::{CallError, WebhookClientError},
};
use crate::{
    chain::{Layer, LayerError, LayerFuture, no_rule_error},
    kind::Gvk,
    operation::{Inputs, Operation},
};

/// The webhooks of all configurations, as a layer of the chain. The default has no webhooks.
///
/// If several webhooks match, the first by its full name `configuration/webhook` is called, and no
/// other one if it fails. Each webhook has its own pool of connections. Nothing is sent before the
/// first operation.
pub struct Webhooks {
    /// The lookup of Services, which new connections use.
    services: Arc<dyn Services>,
    /// The webhooks in the order of their full names. The first one that matches is called.
    webhooks: Vec<ConfiguredWebhook>,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhooks")
            .field("webhooks", &self.webhooks.iter().map(|webhook| &webhook.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

struct ConfiguredWebhook {
    /// The full name `configuration/webhook`, which errors use.
    name: String,
    /// The operations and kinds for which the webhook is called.
    rules: Vec<configuration::RuleSelector>,
    /// The client, which layers of a changed configuration share.
    caller: Arc<Caller>,
}

impl Default for Webhooks {
    fn default() -> Self {
        Self { services: Arc::new(|_namespace: &str, _name: &str| None), webhooks: Vec::new() }
    }
}

impl Webhooks {
    /// Creates the layer from configurations, each as the JSON of its object.
    ///
    /// `services` looks up Services of the control plane, for webhooks with `clientConfig.service`.
    /// It is called for each new connection. A webhook with an unusable address or CA bundle is kept in the layer, and
    /// each call of it fails, as in Karmada.
    ///
    /// ```
    /// use kctl_interpreter::webhook_client::Webhooks;
    /// use serde_json::json;
    ///
    /// let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } });
    /// let error = Webhooks::new([&deployment], |_: &str, _: &str| None).err();
    /// let message = error.map(|error| error.to_string()).unwrap_or_default();
    /// assert_eq!(message, "object \"web\" is not a ResourceInterpreterWebhookConfiguration of config.karmada.io/v1alpha1");
    /// ```
    ///
    /// # Errors
    /// [`ConfigurationError`] for the first object that is not a configuration.
    pub fn new<'a>(
        configurations: impl IntoIterator<Item = &'a Value>,
        services: impl Services + 'static,
    ) -> Result<Self, ConfigurationError> {
        let empty = Self { services: Arc::new(services), webhooks: Vec::new() };
        let (webhooks, malformed) = empty.followed_by(configurations);
        malformed.into_iter().next().map_or(Ok(webhooks), Err)
    }

    /// Creates the layer for changed configurations, and returns it with the errors of those that
    /// are invalid.
    ///
    /// Use it when a watch reports a change, and put the result into a
    /// [`Registry`](crate::registry::Registry). The configurations replace this layer's. A webhook whose address, CA
    /// bundle, timeout and versions did not change keeps its open connections. Webhooks of an invalid configuration are
    /// left out.
    ///
    /// ```
    /// use kctl_interpreter::{chain::Layer, webhook_client::Webhooks, kind::Gvk, operation::Operation};
    /// use serde_json::json;
    ///
    /// let invalid = json!({ "apiVersion": "v1", "kind": "Pod" });
    /// let (webhooks, errors) = Webhooks::default().followed_by([&invalid]);
    /// assert_eq!(errors.len(), 1);
    /// assert!(!webhooks.handles(Operation::InterpretHealth, &Gvk::from_object(&invalid)));
    /// ```
    #[must_use]
    pub fn followed_by<'a>(
        &self,
        configurations: impl IntoIterator<Item = &'a Value>,
    ) -> (Self, Vec<ConfigurationError>) {
        let (mut webhooks, mut malformed) = (Vec::new(), Vec::new());
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
                let existing = self.webhooks.iter().find(|known| known.caller.is_of(&name, &webhook));
                let caller = existing.map_or_else(
                    || Arc::new(Caller::new(&name, &webhook, self.services.clone())),
                    |known| known.caller.clone(),
                );
                webhooks.push(ConfiguredWebhook { name, rules: webhook.rules, caller });
            }
        }
        webhooks.sort_by(|a, b| a.name.cmp(&b.name));
        (Self { services: self.services.clone(), webhooks }, malformed)
    }

    /// Returns the webhook that answers an operation on a kind. A rule with the operation `*` does
    /// not include operations that no webhook receives, such as `Prune`.
    fn first(&self, operation: Operation, kind: &Gvk) -> Option<&ConfiguredWebhook> {
        let matches = |webhook: &&ConfiguredWebhook| webhook.rules.iter().any(|rule| rule.matches(operation, kind));
        self.webhooks.iter().filter(|_| operation.has_webhook()).find(matches)
    }
}

impl Layer for Webhooks {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.first(operation, kind).is_some()
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a> {
        Box::pin(async move {
            let kind = inputs.kind();
            let webhook = self.first(operation, &kind).ok_or_else(|| no_rule_error(operation, &kind))?;
            webhook.caller.call(operation, inputs).await.map_err(LayerError::from)
        })
    }
}
