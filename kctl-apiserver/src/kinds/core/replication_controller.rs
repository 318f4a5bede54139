//! `ReplicationController` of the core group.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    admit::{defaults, rules, warnings},
    names::NameRule,
    registry::kind::{Generation, Kind},
    table::{fields::at, labels::labels, workload::replicas},
};

pub(crate) static KIND: Kind = Kind {
    resource: "replicationcontrollers",
    kind: "ReplicationController",
    names: NameRule::SubdomainOnceWhole,
    generation: Generation::Counted,
    selectable_fields: &["status.replicas"],
    storage_key: Some("controllers"),
    orphans_dependents: true,
    default: defaults::workload::replication_controller,
    defaults_metadata: true,
    validate: rules::workload::replication_controller,
    validate_status: |old, new, errors| rules::status::numbers(&rules::status::OF_REPLICA_SETS, old, new, errors),
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
