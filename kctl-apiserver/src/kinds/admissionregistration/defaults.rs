//! Defaults of webhook configurations, admission policies and their bindings
//! (`pkg/apis/admissionregistration/v1/defaults.go`).

use serde_json::{Value, json};

use crate::defaulting::{add, items, part};

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

pub(crate) fn mutating_webhooks(object: &mut Value) {
    validating_webhooks(object);
    items(object, "webhooks").for_each(|webhook| add(webhook, "reinvocationPolicy", "Never"));
}

/// A policy of either kind, validating or mutating.
pub(crate) fn admission_policy(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "failurePolicy", "Fail");
    constraints(spec, "matchConstraints");
}

pub(crate) fn admission_policy_binding(object: &mut Value) {
    constraints(part(object, "spec"), "matchResources");
}

fn constraints(spec: &mut Value, field: &str) {
    let Some(constraints) = spec.get_mut(field).filter(|constraints| constraints.is_object()) else { return };
    add(constraints, "matchPolicy", "Equivalent");
    add(constraints, "namespaceSelector", json!({}));
    add(constraints, "objectSelector", json!({}));
    for rules in ["resourceRules", "excludeResourceRules"] {
        items(constraints, rules).for_each(|rule| add(rule, "scope", "*"));
    }
}
