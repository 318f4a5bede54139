//! `ReplicaSet` of `apps`: keeps a number of Pods of one template running.
//!
//! Upstream: `pkg/registry/apps/replicaset/strategy.go` and `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{add, part, pod},
    field::Field,
    field_errors::Errors,
    kinds::apps::validation::template_of_set,
    registry::kind::{Defaults, Kind, Metadata, NewStatus, Plugin, Requests, Strategy, TableColumns, Validation},
    table::workload,
    validation,
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "replicasets",
    kind: "ReplicaSet",
    metadata: Metadata::COUNTED,
    requests: Requests { complete_bookmark: |object| object["spec"]["replicas"] = 0.into(), ..Requests::DEFAULT },
    admission: &[Plugin::PodSecurityForTemplates("/spec/template")],
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { new_status: NewStatus::Empty, ..Strategy::DEFAULT },
    validation: Validation {
        validate,
        validate_status: |old, new, errors| {
            validation::status::validate_numbers(&validation::status::REPLICA_SET_NUMBERS, old, new, errors);
        },
        ..super::VALIDATION
    },
    table: TableColumns::cells(&workload::REPLICAS),
    ..Kind::DEFAULT
};

/// Validates the spec (`ValidateReplicaSetSpec`).
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.check_children(&["replicas", "minReadySeconds"], Field::not_negative);
    template_of_set(&spec);
}

/// Fills in `replicas: 1` and the defaults of the template (`SetDefaults_ReplicaSet`).
fn default(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "replicas", 1);
    pod::template(spec, "template");
}
