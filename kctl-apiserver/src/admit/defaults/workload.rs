//! Defaults of the kinds that run pods: reads what a client sent, leaves what the real server stores.

use serde_json::{Value, json};

use super::{add, api, fill, is_text, items, part, pod};

fn zeros(object: &mut Value, fields: &[&str]) {
    let status = part(object, "status");
    for field in fields {
        add(status, field, 0);
    }
}

pub(crate) fn deployment(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    add(spec, "revisionHistoryLimit", 10);
    add(spec, "progressDeadlineSeconds", 600);
    let strategy = part(spec, "strategy");
    fill(strategy, "type", "RollingUpdate");
    if is_text(strategy, "type", "RollingUpdate") {
        let update = part(strategy, "rollingUpdate");
        add(update, "maxUnavailable", "25%");
        add(update, "maxSurge", "25%");
    }
    pod::template(spec, "template");
    zeros(object, &[]);
}

pub(crate) fn replica_set(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    pod::template(spec, "template");
    zeros(object, &["replicas"]);
}

pub(crate) fn replication_controller(object: &mut Value) {
    let spec = part(object, "spec");
    let labels = spec.pointer("/template/metadata/labels").cloned().unwrap_or_default();
    if labels.is_object() {
        add(spec, "selector", labels.clone());
        add(part(object, "metadata"), "labels", labels);
    }
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    if spec.get("template").is_some() {
        pod::template(spec, "template");
    }
    zeros(object, &["replicas"]);
}

pub(crate) fn stateful_set(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    add(spec, "revisionHistoryLimit", 10);
    add(spec, "serviceName", "");
    fill(spec, "podManagementPolicy", "OrderedReady");
    let strategy = part(spec, "updateStrategy");
    // Whoever names the type gets no parameters of it.
    if strategy.get("type").is_none_or(|kind| *kind == "") {
        fill(strategy, "type", "RollingUpdate");
        part(strategy, "rollingUpdate");
    }
    if is_text(strategy, "type", "RollingUpdate")
        && let Some(update) = strategy.get_mut("rollingUpdate").filter(|update| update.is_object())
    {
        add(update, "partition", 0);
        // The feature is off by default: `MaxUnavailableStatefulSet`.
        update.as_object_mut().and_then(|update| update.remove("maxUnavailable"));
    }
    let retention = part(spec, "persistentVolumeClaimRetentionPolicy");
    fill(retention, "whenDeleted", "Retain");
    fill(retention, "whenScaled", "Retain");
    for claim in items(spec, "volumeClaimTemplates") {
        if let Some(fields) = claim.as_object_mut() {
            fields.insert("apiVersion".to_owned(), "v1".into());
            fields.insert("kind".to_owned(), "PersistentVolumeClaim".into());
        }
        api::persistent_volume_claim(claim);
    }
    pod::template(spec, "template");
    zeros(object, &["replicas", "availableReplicas"]);
}

pub(crate) fn daemon_set(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "revisionHistoryLimit", 10);
    let strategy = part(spec, "updateStrategy");
    fill(strategy, "type", "RollingUpdate");
    if is_text(strategy, "type", "RollingUpdate") {
        let update = part(strategy, "rollingUpdate");
        add(update, "maxUnavailable", 1);
        add(update, "maxSurge", 0);
    }
    pod::template(spec, "template");
    let annotations = part(part(object, "metadata"), "annotations");
    add(annotations, "deprecated.daemonset.template.generation", "1");
    zeros(object, &["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"]);
}

pub(crate) fn job(object: &mut Value) {
    let spec = part(object, "spec");
    if spec.get("parallelism").is_none() {
        add(spec, "completions", 1);
    }
    add(spec, "parallelism", 1);
    let is_limited_by_index = spec.get("backoffLimitPerIndex").is_some();
    add(spec, "backoffLimit", if is_limited_by_index { i32::MAX } else { 6 });
    add(spec, "completionMode", "NonIndexed");
    add(spec, "suspend", false);
    add(spec, "manualSelector", false);
    let has_policy = spec.get("podFailurePolicy").is_some();
    add(spec, "podReplacementPolicy", if has_policy { "Failed" } else { "TerminatingOrFailed" });
    failure_policy(spec);
    pod::template(spec, "template");
    zeros(object, &[]);
}

fn failure_policy(spec: &mut Value) {
    for rule in spec.get_mut("podFailurePolicy").into_iter().flat_map(|policy| items(policy, "rules")) {
        items(rule, "onPodConditions").for_each(|condition| fill(condition, "status", "True"));
    }
}

/// Of the job in it, only the template of the pod gets defaults.
pub(crate) fn cron_job(object: &mut Value) {
    let spec = part(object, "spec");
    fill(spec, "concurrencyPolicy", "Allow");
    add(spec, "suspend", false);
    add(spec, "successfulJobsHistoryLimit", 3);
    add(spec, "failedJobsHistoryLimit", 1);
    let job = part(spec, "jobTemplate");
    part(job, "metadata");
    let job = part(job, "spec");
    failure_policy(job);
    pod::template(job, "template");
    zeros(object, &[]);
}

pub(crate) fn pod_disruption_budget(object: &mut Value) {
    part(object, "spec");
    zeros(object, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
}

pub(crate) fn first_horizontal_pod_autoscaler(object: &mut Value) {
    add(part(object, "spec"), "minReplicas", 1);
    zeros(object, &["currentReplicas", "desiredReplicas"]);
}

pub(crate) fn horizontal_pod_autoscaler(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "minReplicas", 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    add(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    if let Some(behavior) = spec.get_mut("behavior") {
        let policy = |kind: &str, value: u32| json!({"type": kind, "value": value, "periodSeconds": 15});
        let up = part(behavior, "scaleUp");
        add(up, "stabilizationWindowSeconds", 0);
        add(up, "selectPolicy", "Max");
        add(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
        let down = part(behavior, "scaleDown");
        add(down, "selectPolicy", "Max");
        add(down, "policies", json!([policy("Percent", 100)]));
    }
    zeros(object, &["desiredReplicas"]);
    add(part(object, "status"), "currentMetrics", Value::Null);
}
