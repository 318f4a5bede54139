//! `Lease` of `coordination.k8s.io`: a renewable lock, for leader election and node heartbeats.
//!
//! - An update needs a `resourceVersion`, so that two holders cannot both win.
//! - `strategy` and `preferredHolder` are accepted and dropped, unless the feature gate `CoordinatedLeaderElection` is on.
//!
//! Upstream: `pkg/registry/coordination/lease/strategy.go` and `pkg/apis/coordination/validation/validation.go`.

use serde_json::Value;

use crate::{
    feature_gates::{self, Gate},
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

/// Drops the fields of `CoordinatedLeaderElection` if the feature gate is off.
fn drop_disabled(lease: &mut Value) {
    if feature_gates::is_enabled(Gate::CoordinatedLeaderElection) {
        return;
    }
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
    validate_election(&spec);
}

/// The strategy that Kubernetes defines (`OldestEmulationVersion` of `pkg/apis/coordination/types.go`).
const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

/// Validates the fields of coordinated leader election. A strategy is a name of Kubernetes, or a qualified name with a
/// domain. Its errors are at `spec.strategy.strategy`, as upstream reports them (`ValidateCoordinatedLeaseStrategy`).
/// A preferred holder needs a strategy.
fn validate_election(spec: &Field<'_>) {
    let [strategy, holder] = ["strategy", "preferredHolder"].map(|name| spec.at(name));
    let error = strategy.at_with("strategy", strategy.value());
    if strategy.text().contains('/') {
        error.qualified_name();
    } else if strategy.value().is_string() {
        error.unsupported_if(!STRATEGIES.contains(&strategy.text()), &STRATEGIES);
    }
    holder.forbidden_if(!holder.is_empty() && strategy.is_empty(), "may only be set if `strategy` is set");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KIND, validate_election};
    use crate::{
        feature_gates::{self, Gate},
        field::Field,
        field_errors::Errors,
    };

    #[test]
    fn election_fields_are_dropped_without_the_gate() {
        let mut lease = json!({ "spec": { "strategy": "OldestEmulationVersion", "preferredHolder": "a" } });
        (KIND.strategy.drop_unstored)(&mut lease);
        let is_kept = lease["spec"].get("strategy").is_some();
        assert_eq!(is_kept, feature_gates::is_enabled(Gate::CoordinatedLeaderElection), "{lease}");
    }

    #[test]
    fn election_needs_a_known_strategy() {
        for (spec, expected) in [
            (json!({}), ""),
            (json!({ "strategy": "OldestEmulationVersion", "preferredHolder": "a" }), ""),
            (json!({ "strategy": "example.com/mine" }), ""),
            (json!({ "strategy": "Newest" }), "spec.strategy.strategy"),
            (json!({ "strategy": "example.com/a b" }), "spec.strategy.strategy"),
            (json!({ "preferredHolder": "a" }), "spec.preferredHolder"),
        ] {
            let errors = Errors::collect(|errors| validate_election(&Field::new(&spec, "spec", errors)));
            let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields.join(" "), expected, "{spec}: {errors:?}");
        }
    }
}
