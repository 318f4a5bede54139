//! The webhook configurations that register admission functions with an API server.

use serde_json::{Value, json};

use super::{
    options::{Action, Options, selector},
    webhook::Webhook,
};
use crate::server::ClientConfig;

/// The parameters of webhook configurations.
#[derive(Clone, Debug)]
pub struct Configurations<'a> {
    /// The name of both objects.
    pub name: &'a str,
    /// The way in which the webhooks are reached.
    pub client: &'a ClientConfig,
    /// The authority to trust, as PEM.
    pub authority: Option<&'a str>,
}

impl Configurations<'_> {
    /// Returns at most two objects: a `MutatingWebhookConfiguration` and a
    /// `ValidatingWebhookConfiguration`.
    ///
    /// Mutating webhooks are called in the order of `webhooks`; validating ones run in parallel and
    /// are sorted by path.
    pub fn objects(&self, webhooks: &[Webhook]) -> Vec<Value> {
        let configuration = |action: Action, kind: &str| {
            let mut webhooks: Vec<(String, Value)> = webhooks
                .iter()
                .filter(|webhook| webhook.options().action == action)
                .map(|webhook| (webhook.path(), self.webhook(webhook)))
                .collect();
            // The API server calls validating webhooks in parallel (`validatingDispatcher.Dispatch` in
            // `k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go`), so only mutating ones keep the
            // order of the functions.
            if action == Action::Validate {
                webhooks.sort_by(|(left, _), (right, _)| left.cmp(right));
            }
            let webhooks: Vec<Value> = webhooks.into_iter().map(|(_, webhook)| webhook).collect();
            (!webhooks.is_empty()).then(|| {
                json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": { "name": self.name },
                    "webhooks": webhooks,
                })
            })
        };
        let mutating = configuration(Action::Mutate, "MutatingWebhookConfiguration");
        mutating.into_iter().chain(configuration(Action::Validate, "ValidatingWebhookConfiguration")).collect()
    }

    fn webhook(&self, webhook: &Webhook) -> Value {
        let (kind, options) = (webhook.kind(), webhook.options());
        let operations: Vec<_> = options.operations.iter().map(|operation| operation.as_str()).collect();
        let mut webhook = json!({
            "name": name(webhook),
            "clientConfig": self.client.config(&webhook.path(), self.authority),
            "rules": [{
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": operations,
                "resources": webhook.resources(),
            }],
            "failurePolicy": options.failure_policy.as_str(),
            "matchPolicy": options.match_policy.as_str(),
            "sideEffects": options.side_effects.as_str(),
            "timeoutSeconds": options.timeout_seconds,
            "admissionReviewVersions": ["v1"],
        });
        self::selectors(&mut webhook, options);
        if !options.match_conditions.is_empty() {
            let condition = |(name, expression): &(String, String)| json!({ "name": name, "expression": expression });
            webhook["matchConditions"] = options.match_conditions.iter().map(condition).collect();
        }
        if options.action == Action::Mutate {
            webhook["reinvocationPolicy"] = options.reinvocation.as_str().into();
        }
        webhook
    }
}

/// Adds the selectors, which [`super::check`] has validated.
fn selectors(webhook: &mut Value, options: &Options) {
    let selectors = [("namespaceSelector", &options.namespace_selector), ("objectSelector", &options.object_selector)];
    for (field, text) in selectors.into_iter().filter(|(_, text)| !text.is_empty()) {
        webhook[field] = selector(text).unwrap_or_default();
    }
}

/// Returns the name that kubebuilder would choose: `vpodset-v1.example.com`. An API server wants a
/// domain with at least three parts (`validateValidatingWebhook` in
/// `pkg/apis/admissionregistration/validation/validation.go` of Kubernetes, by `IsFullyQualifiedName`).
fn name(webhook: &Webhook) -> String {
    let (kind, options) = (webhook.kind(), webhook.options());
    let letter = &options.action.name()[..1];
    let mut name = format!("{letter}{}", kind.kind.to_ascii_lowercase());
    for subresource in &options.subresources {
        name += &format!("-{}", subresource.to_ascii_lowercase());
    }
    let group = if kind.group.is_empty() { "core" } else { &kind.group };
    // Together with the part of the kind, the domain has at least three parts.
    let domain = if group.contains('.') { group.to_owned() } else { format!("{group}.k8s.io") };
    format!("{name}-{}.{domain}", kind.version)
}
