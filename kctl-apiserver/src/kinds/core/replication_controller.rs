//! `ReplicationController` of the core group.
//!
//! It keeps a number of Pods running, and is older than `ReplicaSet`. Its selector is a map of labels.
//!
//! Upstream: `pkg/registry/core/replicationcontroller/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::{Value, json};

use crate::{
    defaulting::{add, part, pod},
    field::Field,
    field_errors::Errors,
    names::NameRule,
    registry::kind::{Defaults, DeleteStrategy, Kind, Metadata, Plugin, Requests, TableColumns, Validation},
    table::workload,
    validation::{self, selector, warnings},
};

pub(crate) static KIND: Kind = Kind {
    resource: "replicationcontrollers",
    kind: "ReplicationController",
    metadata: Metadata { names: NameRule::SubdomainOnceWhole, has_defaults: true, ..Metadata::COUNTED },
    requests: Requests {
        selectable_fields: &["metadata.namespace", "status.replicas"],
        selected_value: |controller, path| {
            (path == "status.replicas")
                .then(|| controller["status"]["replicas"].as_i64().unwrap_or_default().to_string())
        },
        ..Requests::DEFAULT
    },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    validation: Validation {
        validates_spec_only: true,
        validate,
        validate_status: |old, new, errors| {
            validation::status::validate_numbers(&validation::status::REPLICA_SET_NUMBERS, old, new, errors);
        },
        warn: warnings::warn_about_template,
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    delete: DeleteStrategy { orphans_dependents: true, ..DeleteStrategy::DEFAULT },
    table: TableColumns::cells(&workload::REPLICAS),
    quota: super::counted_by_name!("replicationcontrollers"),
    ..Kind::DEFAULT
};

/// Validates the spec (`ValidateReplicationControllerSpec`). Tags of the API are the lower bounds of numbers.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.require_children(&["selector"]);
    let (selector, template) = (&spec["selector"], spec.at("template"));
    if template.is_null() {
        return template.required();
    }
    if selector.is_object() {
        let selector = json!({ "matchLabels": selector });
        selector::validate_matches_template(&selector, &template);
    }
    template.check(validation::pod::validate_template);
    validation::pod::validate_restart_always(&template);
}

/// Fills in the defaults of a controller (`SetDefaults_ReplicationController`). An absent selector, and absent labels
/// of the object, are the labels of the template.
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
}
