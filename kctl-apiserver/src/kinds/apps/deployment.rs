//! `Deployment` of `apps`: a replicated Pod template with rolling updates.
//!
//! The server adds defaults, counts changes of the spec and of the annotations in `metadata.generation`, and keeps the
//! selector immutable.
//!
//! Upstream: `pkg/registry/apps/deployment/strategy.go` and `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{add, fill, is_text, part, pod},
    field::Field,
    field_errors::{Errors, text},
    kinds::apps::validation::{is_none, template_of_set},
    registry::kind::{
        Cell, Defaults, Kind, ManagedFields, Metadata, NewStatus, Plugin, Requests, Strategy, Subresource,
        TableColumns, Validation,
    },
    table::{fields::value_at, labels::query, workload::ready_of_desired},
    validation::{self, declared, status::Numbers},
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "deployments",
    kind: "Deployment",
    metadata: Metadata { counted: &["annotations"], ..Metadata::COUNTED },
    requests: Requests { complete_bookmark: |object| object["spec"]["replicas"] = 0.into(), ..Requests::DEFAULT },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { new_status: NewStatus::Empty, kept_by_status: &["labels"], ..Strategy::DEFAULT },
    validation: Validation {
        validate,
        validate_status: |old, new, errors| validation::status::validate_numbers(&STATUS, old, new, errors),
        ..super::VALIDATION
    },
    managed_fields: ManagedFields {
        reset_fields: &[(Subresource::Status, &[&["spec"], &["metadata", "labels"]])],
        ..ManagedFields::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|deployment, _| ready_of_desired(deployment).into()),
        Cell::Int("/status/updatedReplicas"),
        Cell::Int("/status/availableReplicas"),
        Cell::Age,
        Cell::Containers("/spec/template"),
        Cell::Images("/spec/template"),
        Cell::Computed(|deployment, _| query(value_at(deployment, "/spec/selector")).into()),
    ]),
    ..Kind::DEFAULT
};

/// The numbers of the status (`ValidateDeploymentStatus`).
const STATUS: Numbers = Numbers {
    counts: &["observedGeneration", "replicas", "unavailableReplicas", "terminatingReplicas", "collisionCount"],
    subsets: &["updatedReplicas", "readyReplicas", "availableReplicas"],
};

/// Validates the spec (`ValidateDeploymentSpec` in `pkg/apis/apps/validation/validation.go`).
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let numbers = ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    spec.check_children(&numbers, Field::not_negative);
    template_of_set(&spec);
    validate_strategy(&spec.at("strategy"));
    let (deadline, ready) = (spec.at("progressDeadlineSeconds"), spec["minReadySeconds"].as_i64().unwrap_or(0));
    let is_short = deadline.as_i64().is_some_and(|deadline| deadline <= ready);
    deadline.invalid_if(is_short, "must be greater than minReadySeconds");
}

/// Validates `spec.strategy` (`ValidateDeploymentStrategy`).
fn validate_strategy(strategy: &Field<'_>) {
    let rolling = strategy.at("rollingUpdate");
    match text(&strategy["type"]) {
        "Recreate" => {
            rolling.forbidden_if(rolling.is_object(), "may not be specified when strategy `type` is 'Recreate'");
        }
        "RollingUpdate" if rolling.is_null() => rolling.required(),
        "RollingUpdate" => {
            let (surge, unavailable) = (rolling.at("maxSurge"), rolling.at("maxUnavailable"));
            unavailable.non_negative_int_or_percent();
            surge.non_negative_int_or_percent();
            unavailable.invalid_if(is_none(&surge) && is_none(&unavailable), "may not be 0 when `maxSurge` is 0");
            unavailable.at_most_100_percent();
        }
        _ => strategy.unsupported(&declared::values("apps.v1.DeploymentStrategy", "type")),
    }
}

/// Fills in the defaults of a Deployment (`SetDefaults_Deployment` in `pkg/apis/apps/v1/defaults.go`).
fn default(object: &mut Value) {
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
}
