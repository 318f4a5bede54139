//! `FlowSchema` of `flowcontrol.apiserver.k8s.io`: assigns requests to a priority level.
//!
//! Requests are not queued in this server, so the objects have no effect; they exist for clients that write them. A
//! lower `matchingPrecedence` is matched first. A table has its rows in this order.
//!
//! Upstream: `pkg/registry/flowcontrol/flowschema/strategy.go` and `pkg/apis/flowcontrol/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting,
    registry::kind::{Cell, Defaults, Kind, Metadata, Strategy, TableColumns, Validation},
    table::{
        self,
        fields::{condition, text},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "flowschemas",
    kind: "FlowSchema",
    metadata: Metadata::COUNTED,
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::DEFAULT },
    validation: Validation {
        validate: super::validation::validate_flow_schema,
        validate_status: |_, new, errors| super::validation::status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns {
        order: Some(|object| (table::fields::int(object, "/spec/matchingPrecedence"), table::fields::name(object))),
        ..TableColumns::cells(&[
            Cell::Name,
            Cell::Text("/spec/priorityLevelConfiguration/name"),
            Cell::Int("/spec/matchingPrecedence"),
            Cell::TextOr("/spec/distinguisherMethod/type", NONE),
            Cell::Age,
            // The condition is `True` if the priority level is missing.
            Cell::Computed(|schema, _| condition(schema, "Dangling").map_or("?", |it| text(it, "/status")).into()),
        ])
    },
    ..Kind::DEFAULT
};

/// Fills in `matchingPrecedence: 1000`. A 0 counts as absent, because the Go field is not a
/// pointer.
fn default(object: &mut Value) {
    defaulting::fill(defaulting::part(object, "spec"), "matchingPrecedence", PRECEDENCE);
}

/// The default of `matchingPrecedence` (`FlowSchemaDefaultMatchingPrecedence`).
const PRECEDENCE: i64 = 1000;
