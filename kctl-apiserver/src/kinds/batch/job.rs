//! `Job` of `batch`: runs Pods until a number of them has succeeded.
//!
//! The server generates the selector and the labels of the Pods, unless `manualSelector` is set, and adds defaults. It
//! validates the transitions of the status, and warns if a deletion would leave the Pods behind.
//!
//! - Most of the spec is immutable. `parallelism`, `suspend` and a few others may change; see `validation.rs`.
//! - Without a propagation policy, a delete orphans the Pods, and the response has a warning.
//! - `status.successful` is selectable, as in `kubectl get jobs --field-selector status.successful=1`.
//!
//! Upstream: `pkg/registry/batch/job/strategy.go` and `pkg/apis/batch/validation/validation.go`.

mod indexes;
pub(crate) mod status;
mod table;
pub(crate) mod validation;

use serde_json::{Map, Value};

use crate::{
    defaulting::{add, fill, items, part, pod},
    json_path::set,
    registry::kind::{
        Defaults, DeleteStrategy, Kind, ManagedFields, Metadata, NewStatus, Plugin, Requests, Strategy, TableColumns,
        Validation,
    },
    validation::warnings,
};

pub(crate) static KIND: Kind = Kind {
    group: "batch",
    resource: "jobs",
    kind: "Job",
    metadata: Metadata { default: label_as_pods, ..Metadata::COUNTED },
    requests: Requests {
        selectable_fields: &["metadata.namespace", "status.successful"],
        selected_value: |job, path| {
            (path == "status.successful").then(|| job["status"]["succeeded"].as_i64().unwrap_or_default().to_string())
        },
        ..Requests::DEFAULT
    },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy {
        new_status: NewStatus::Empty,
        prepare_create: |_, object| select_own_pods(object),
        set_generated_name,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate: validation::validate,
        validate_create: validation::validate_create,
        validate_update: validation::validate_update,
        validate_status: status::validate_status,
        warn: warnings::warn_about_template,
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/spec/selector", "/spec/template/metadata", "/metadata/labels"],
        filled_in_by_update: &["/metadata/labels", "/spec/template/metadata"],
        complete_sent: Some(label_as_pods),
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy {
        warning: Some("Pods of the Job are kept: set propagationPolicy to Background to delete them, or to Orphan"),
        orphans_dependents: true,
        ..DeleteStrategy::DEFAULT
    },
    table: TableColumns::cells(&table::CELLS),
    ..Kind::DEFAULT
};

/// Sets the labels with the generated name. Upstream, a Job whose name was sent has the same label map as its template,
/// so labels that are added to the template appear on both. A Job with a generated name has a copy.
fn set_generated_name(sent: &Value, object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    for label in ["batch.kubernetes.io/job-name", "job-name"] {
        if labels[label] == "" {
            labels[label] = name.clone();
        }
    }
    let mut sent = sent.clone();
    label_as_pods(&mut sent);
    let labels = sent["metadata"].get("labels").filter(|labels| !labels.is_null()).cloned();
    set(&mut object["metadata"], "labels", labels);
    label_as_pods(object);
}

/// Sets the selector and the labels that identify the Pods of a Job (`generateSelector`). With `manualSelector: true`,
/// the client has to provide a selector and labels that no other workload uses.
fn select_own_pods(job: &mut Value) {
    if job["spec"]["manualSelector"] != true {
        label_own_pods(job);
    }
    label_as_pods(job);
}

/// Copies the labels of the Pod template to a Job without labels (`SetDefaults_Job` of
/// `pkg/apis/batch/v1/defaults.go`). It is a default, so it also applies to an update that removes all labels.
fn label_as_pods(job: &mut Value) {
    let template = job["spec"]["template"]["metadata"].get("labels").cloned().unwrap_or_default();
    let own = &mut job["metadata"]["labels"];
    if own.as_object().is_none_or(Map::is_empty) && !template.is_null() {
        *own = template;
    }
}

/// Sets the four labels of the Pods and the selector by the UID of the Job. Both spellings of each label are set: the
/// ones without prefix are for older clients. Only the prefixed `controller-uid` selects Pods.
fn label_own_pods(job: &mut Value) {
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for prefix in ["batch.kubernetes.io/", ""] {
        labels[format!("{prefix}controller-uid")] = uid.clone();
        labels[format!("{prefix}job-name")] = name.clone();
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid;
}

/// Fills in the defaults of a Job (`SetDefaults_Job`). `completions` is 1 only if `parallelism` is absent, too.
pub(crate) fn default(object: &mut Value) {
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
    default_failure_policy(spec);
    pod::template(spec, "template");
}

/// Sets the status `True` of Pod conditions in a failure policy that leave it out.
pub(crate) fn default_failure_policy(spec: &mut Value) {
    for rule in spec.get_mut("podFailurePolicy").into_iter().flat_map(|policy| items(policy, "rules")) {
        items(rule, "onPodConditions").for_each(|condition| fill(condition, "status", "True"));
    }
}
