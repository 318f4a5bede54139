//! `PriorityLevelConfiguration` of `flowcontrol.apiserver.k8s.io`: limits the concurrency of a class of requests.
//!
//! A level is `Exempt` from limits, or `Limited` to a share of the server's concurrency; the rest is queued or
//! rejected.
//!
//! Upstream: `pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go` and
//! `pkg/apis/flowcontrol/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{add, fill, part},
    registry::kind::{Cell, Defaults, Kind, Metadata, Strategy, TableColumns, Validation},
    table::labels::NONE,
};

pub(crate) static KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "prioritylevelconfigurations",
    kind: "PriorityLevelConfiguration",
    metadata: Metadata::COUNTED,
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::DEFAULT },
    validation: Validation {
        validate: super::validation::validate_priority_level,
        validate_status: |_, new, errors| super::validation::status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Text("/spec/type"),
        Cell::IntOr("/spec/limited/nominalConcurrencyShares", NONE),
        Cell::IntOr("/spec/limited/limitResponse/queuing/queues", NONE),
        Cell::IntOr("/spec/limited/limitResponse/queuing/handSize", NONE),
        Cell::IntOr("/spec/limited/limitResponse/queuing/queueLengthLimit", NONE),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Fills in the defaults of a level (`pkg/apis/flowcontrol/v1/defaults.go`). `exempt`, `limited` and `queuing`
/// themselves are not created.
fn default(object: &mut Value) {
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
