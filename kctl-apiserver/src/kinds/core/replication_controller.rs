//! `ReplicationController` of the core group.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting::{add, part, pod, zero_counts},
    field_errors::Errors,
    kinds::apps::validation::always_restarts,
    names::NameRule,
    registry::kind::{Generation, Kind},
    table::{fields::at, labels::labels, workload::replicas},
    validation::{self, selector, warnings},
};

pub(crate) static KIND: Kind = Kind {
    resource: "replicationcontrollers",
    kind: "ReplicationController",
    names: NameRule::SubdomainOnceWhole,
    generation: Generation::Counted,
    selectable_fields: &["status.replicas"],
    orphans_dependents: true,
    default,
    defaults_metadata: true,
    validate,
    validate_status: |old, new, errors| {
        validation::status::numbers(&validation::status::OF_REPLICA_SETS, old, new, errors);
    },
    validates_spec_only: true,
    warn: warnings::of_template,
    warns_once_per_generation: true,
    printer: Some(cells),
    pod_template: Some("/spec/template"),
    quota: super::counted_by_name!("replicationcontrollers"),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    replicas(object, now, &labels(at(object, "/spec/selector")))
}

fn validate(object: &Value, errors: &mut Errors) {
    let (spec, at) = (&object["spec"], "spec.template");
    if spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        errors.required("spec.selector", "");
    }
    if spec["template"].is_null() {
        return errors.required(at, "");
    }
    if spec["selector"].is_object() {
        selector::fits_template(&json!({ "matchLabels": spec["selector"] }), &spec["template"], at, errors);
    }
    validation::pod::template(&spec["template"], at, errors);
    always_restarts(&spec["template"], at, "ReplicationController", errors);
}

fn default(object: &mut Value) {
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
    zero_counts(object, &["replicas"]);
}
