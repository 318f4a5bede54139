//! `Lease` of `coordination.k8s.io`: a renewable lock, for leader election and node heartbeats.
//!
//! - An update needs a `resourceVersion`, so that two holders cannot both win.
//! - `strategy` and `preferredHolder` are accepted and dropped, because their feature gate is off.
//!
//! Upstream: `pkg/registry/coordination/lease/strategy.go` and `pkg/apis/coordination/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    json_path::set,
    registry::kind::{Cell, Kind, ManagedFields, Metadata, Strategy, TableColumns, Validation},
};

pub(crate) static KIND: Kind = Kind {
    group: "coordination.k8s.io",
    resource: "leases",
    kind: "Lease",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::DEFAULT },
    strategy: Strategy { creates_on_update: true, drop_unstored: drop_disabled, ..Strategy::CONDITIONAL },
    validation: Validation { validate, ..Validation::DEFAULT },
    managed_fields: ManagedFields { filled_in: &["/spec/strategy", "/spec/preferredHolder"], ..ManagedFields::DEFAULT },
    table: TableColumns::cells(&[Cell::Name, Cell::Text("/spec/holderIdentity"), Cell::Age]),
    ..Kind::DEFAULT
};

/// Drops the fields of `CoordinatedLeaderElection`, a feature gate that is off.
fn drop_disabled(lease: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        set(&mut lease["spec"], field, None);
    }
}

/// Validates a Lease (`ValidateLeaseSpec`): a duration of at least one second, and no negative
/// number of transitions.
///
/// Times are not compared: an update may set an earlier `renewTime` than the stored one.
fn validate(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("leaseDurationSeconds").at_least(1);
    spec.at("leaseTransitions").not_negative();
}
