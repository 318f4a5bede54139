//! Defaults of namespaces, storage, access and the kinds of the API itself: reads what a client sent, leaves what is
//! stored.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{add, fill, is_text, items, part, pod};

pub(crate) fn namespace(object: &mut Value) {
    let meta = part(object, "metadata");
    let is_deleted = meta.get("deletionTimestamp").is_some();
    if let Some(name) = meta.get("name").filter(|name| **name != "").cloned()
        && let Some(labels) = part(meta, "labels").as_object_mut()
    {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name);
    }
    let spec = part(object, "spec");
    if !is_deleted {
        add(spec, "finalizers", json!(["kubernetes"]));
    }
    fill(part(object, "status"), "phase", "Active");
}

pub(crate) fn new_event(object: &mut Value) {
    for time in ["deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        add(object, time, Value::Null);
    }
    part(object, "deprecatedSource");
}

/// The first of the ranges for the pods of a node is the range; where they differ, that one counts.
pub(crate) fn node_ranges(spec: &mut Value) {
    let range = spec.get("podCIDR").filter(|range| range.as_str().is_some_and(|range| !range.is_empty())).cloned();
    match (range, spec.pointer("/podCIDRs/0").cloned()) {
        (Some(range), first) if first.as_ref() != Some(&range) => spec["podCIDRs"] = json!([range]),
        (None, Some(first)) => spec["podCIDR"] = first,
        _ => {}
    }
}

pub(crate) fn node(object: &mut Value) {
    const INFO: [&str; 10] = [
        "architecture",
        "bootID",
        "containerRuntimeVersion",
        "kernelVersion",
        "kubeProxyVersion",
        "kubeletVersion",
        "machineID",
        "operatingSystem",
        "osImage",
        "systemUUID",
    ];
    let spec = part(object, "spec");
    node_ranges(spec);
    let status = part(object, "status");
    if let Some(capacity) = status.get("capacity").cloned() {
        add(status, "allocatable", capacity);
    }
    let port = part(part(status, "daemonEndpoints"), "kubeletEndpoint");
    add(port, "Port", 0);
    let info = part(status, "nodeInfo");
    for name in INFO {
        add(info, name, "");
    }
}

/// Secrets are named, and nothing else is kept of them.
pub(crate) fn service_account(object: &mut Value) {
    for secret in items(object, "secrets").filter_map(Value::as_object_mut) {
        secret.retain(|field, _| field == "name");
    }
}

/// What a schema of flow control has that says nothing.
pub(crate) const PRECEDENCE: i64 = 1000;

pub(crate) fn priority_level(object: &mut Value) {
    let spec = part(object, "spec");
    if let Some(exempt) = spec.get_mut("exempt").filter(|exempt| exempt.is_object()) {
        add(exempt, "nominalConcurrencyShares", 0);
        add(exempt, "lendablePercent", 0);
    }
    let Some(limited) = spec.get_mut("limited").filter(|limited| limited.is_object()) else { return };
    add(limited, "nominalConcurrencyShares", 30);
    add(limited, "lendablePercent", 0);
    let queuing = limited.get_mut("limitResponse").and_then(|response| response.get_mut("queuing"));
    if let Some(queuing) = queuing.filter(|queuing| queuing.is_object()) {
        for (field, default) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
            fill(queuing, field, default);
        }
    }
}

pub(crate) fn api_service(object: &mut Value) {
    let service = part(object, "spec").get_mut("service").filter(|service| service.is_object());
    if let Some(service) = service {
        add(service, "port", 443);
    }
}

pub(crate) fn secret(object: &mut Value) {
    fill(object, "type", "Opaque");
    let texts = object.as_object_mut().and_then(|fields| fields.remove("stringData"));
    for (key, text) in texts.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        if let Some(data) = part(object, "data").as_object_mut() {
            data.insert(key.clone(), BASE64_STANDARD.encode(text).into());
        }
    }
}

pub(crate) fn persistent_volume_claim(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "volumeMode", "Filesystem");
    for source in ["dataSource", "dataSourceRef"] {
        spec.get_mut(source).into_iter().for_each(|source| add(source, "apiGroup", Value::Null));
    }
    fill(part(object, "status"), "phase", "Pending");
}

pub(crate) fn persistent_volume(object: &mut Value) {
    let spec = part(object, "spec");
    fill(spec, "persistentVolumeReclaimPolicy", "Retain");
    add(spec, "volumeMode", "Filesystem");
    pod::volume_source(spec);
    fill(part(object, "status"), "phase", "Pending");
}

pub(crate) fn storage_class(object: &mut Value) {
    add(object, "reclaimPolicy", "Delete");
    add(object, "volumeBindingMode", "Immediate");
}

pub(crate) fn csi_node(object: &mut Value) {
    items(part(object, "spec"), "drivers").for_each(|driver| add(driver, "topologyKeys", Value::Null));
}

pub(crate) fn csi_driver(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "attachRequired", true);
    add(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    add(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for flag in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        add(spec, flag, false);
    }
    // `VolumeLimitScaling` is off in 1.36.
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("preventPodSchedulingIfMissing");
    }
}

/// The bounds of containers: a default is the maximum, a request is the default or the minimum.
pub(crate) fn limit_range(object: &mut Value) {
    for limit in items(part(object, "spec"), "limits").filter(|limit| is_text(limit, "type", "Container")) {
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let amounts = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            amounts.into_iter().for_each(|(name, amount)| add(part(limit, to), &name, amount));
        }
    }
}

pub(crate) fn event(object: &mut Value) {
    part(object, "source");
    for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
        add(object, field, Value::Null);
    }
    for field in ["reportingComponent", "reportingInstance"] {
        add(object, field, "");
    }
}

pub(crate) fn role_binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    fill(part(object, "roleRef"), "apiGroup", GROUP);
    for subject in items(object, "subjects") {
        if is_text(subject, "kind", "User") || is_text(subject, "kind", "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    }
}

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

pub(crate) fn mutating_webhooks(object: &mut Value) {
    validating_webhooks(object);
    items(object, "webhooks").for_each(|webhook| add(webhook, "reinvocationPolicy", "Never"));
}
