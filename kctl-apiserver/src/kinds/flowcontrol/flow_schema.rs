//! `FlowSchema` of `flowcontrol.apiserver.k8s.io`: assigns requests to a priority level.
//!
//! Requests are not queued in this server, so the objects have no effect; they exist for clients
//! that write them.
//!
//! - A lower `matchingPrecedence` is matched first. A table has its rows in this order.
//! - A write of `status` leaves spec and metadata as they are.
//!
//! Upstream: `pkg/registry/flowcontrol/flowschema/strategy.go` and `pkg/apis/flowcontrol/validation/validation.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting,
    registry::kind::{Defaults, Generation, Kind, Metadata, Strategy, TableColumns, Validation},
    table::{
        self,
        age::age,
        fields::{condition, int, name, text, text_or},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "flowschemas",
    kind: "FlowSchema",
    metadata: Metadata { generation: Generation::Counted, ..Metadata::DEFAULT },
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::DEFAULT },
    validation: Validation {
        validate: super::validation::schema,
        validate_status: |_, new, errors| super::validation::status(new, errors),
        ..Validation::DEFAULT
    },
    table: TableColumns {
        printer: Some(cells),
        order: Some(|object| (table::fields::int(object, "/spec/matchingPrecedence"), table::fields::name(object))),
        ..TableColumns::DEFAULT
    },
    ..Kind::DEFAULT
};

/// Fills in `matchingPrecedence: 1000`. A 0 counts as absent, because the Go field is not a
/// pointer.
fn default(object: &mut Value) {
    defaulting::fill(defaulting::part(object, "spec"), "matchingPrecedence", PRECEDENCE);
}

/// Returns the columns of `printFlowSchema`.
///
/// | column | content |
/// |---|---|
/// | `DistinguisherMethod` | how requests are divided into flows: `ByUser`, `ByNamespace` or `<none>` |
/// | `MissingPL` | status of the condition `Dangling`: the priority level does not exist; `?` if it is not known |
fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        json!(name(object)),
        json!(text(object, "/spec/priorityLevelConfiguration/name")),
        json!(int(object, "/spec/matchingPrecedence")),
        json!(text_or(object, "/spec/distinguisherMethod/type", NONE)),
        json!(age(object, now)),
        json!(condition(object, "Dangling").map_or("?", |dangling| text(dangling, "/status"))),
    ]
}

/// The default of `matchingPrecedence` (`FlowSchemaDefaultMatchingPrecedence`).
const PRECEDENCE: i64 = 1000;
