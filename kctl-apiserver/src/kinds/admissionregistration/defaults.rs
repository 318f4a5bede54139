//! Defaults of webhook configurations, admission policies and their bindings
//! (`pkg/apis/admissionregistration/v1/defaults.go`).
//!
//! A default is set where an object is decoded, so a webhook, a policy and a stored object all see
//! it. Validation runs after it. It therefore never sees an absent `failurePolicy` or
//! `matchPolicy`.

use serde_json::{Value, json};

use crate::defaulting::{add, items, part};

/// Fills in the defaults of each webhook (`SetDefaults_ValidatingWebhook`). The empty selectors select everything, and
/// the scope `*` includes resources of both scopes.
pub(crate) fn validating_webhooks(object: &mut Value) {
    for webhook in items(object, "webhooks") {
        add(webhook, "failurePolicy", "Fail");
        add(webhook, "matchPolicy", "Equivalent");
        add(webhook, "timeoutSeconds", 10);
        add(webhook, "namespaceSelector", json!({}));
        add(webhook, "objectSelector", json!({}));
        items(webhook, "rules").for_each(|rule| add(rule, "scope", "*"));
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            add(service, "port", 443);
        }
    }
}

/// Fills in the defaults of `validating_webhooks`, and `reinvocationPolicy: Never` (`SetDefaults_MutatingWebhook`): a
/// webhook is not called a second time if a later webhook changes the object again.
pub(crate) fn mutating_webhooks(object: &mut Value) {
    validating_webhooks(object);
    items(object, "webhooks").for_each(|webhook| add(webhook, "reinvocationPolicy", "Never"));
}

/// Fills in the defaults of an admission policy of either kind, validating or mutating. An absent
/// `spec.matchConstraints` is not created, because validation requires it.
pub(crate) fn admission_policy(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "failurePolicy", "Fail");
    constraints(spec, "matchConstraints");
}

/// Fills in the defaults of `spec.matchResources` of a binding of either kind. An absent one is not created: the
/// binding then applies to everything that its policy matches.
pub(crate) fn admission_policy_binding(object: &mut Value) {
    constraints(part(object, "spec"), "matchResources");
}

/// Fills in the defaults of a `MatchResources`, if the field holds one. They are the same as for a webhook.
fn constraints(spec: &mut Value, field: &str) {
    let Some(constraints) = spec.get_mut(field).filter(|constraints| constraints.is_object()) else { return };
    add(constraints, "matchPolicy", "Equivalent");
    add(constraints, "namespaceSelector", json!({}));
    add(constraints, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(constraints, rules).for_each(|rule| add(rule, "scope", "*"));
    }
}
