//! The routes and the configuration of interpreters, for Karmada.

use kctl_interpreter::webhook::{Configuration, Metrics, WebhookOptions, routes};
use kctl_runtime::reconcile::Result;
use kctl_webhook::server::{ClientConfig, Routes};
use serde_json::Value;

use super::App;

/// Timeout that Karmada is given: the default in its documentation, which its code lacks.
const TIMEOUT_SECONDS: u32 = 10;

impl App {
    /// Returns `true` if the app has functions for Karmada.
    pub(super) fn has_interpreters(&self) -> bool {
        !self.interpreters.is_empty()
    }

    /// Returns the routes that Karmada calls.
    ///
    /// # Errors
    /// Two functions answer the same operation of a kind.
    pub(super) fn interpreter_routes(&self, metrics: &Metrics) -> Result<Routes> {
        Ok(routes(self.interpreters.clone(), metrics, &WebhookOptions::default())?)
    }

    /// Returns the `ResourceInterpreterWebhookConfiguration`.
    ///
    /// # Errors
    /// Karmada rejects the address.
    pub(super) fn interpreter_configuration(
        &self,
        name: &str,
        client: &ClientConfig,
        authority: Option<&str>,
    ) -> Result<Value> {
        let configuration = Configuration { name, client: client.clone(), authority, timeout_seconds: TIMEOUT_SECONDS };
        Ok(configuration.object(&self.interpreters)?)
    }
}
