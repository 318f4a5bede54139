//! `FlowSchema` of `flowcontrol.apiserver.k8s.io`: assigns requests to a priority level.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    defaulting,
    registry::kind::{Generation, Kind},
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
    generation: Generation::Counted,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default,
    validate: super::validation::schema,
    validate_status: |_, new, errors| super::validation::status(new, errors),
    printer: Some(cells),
    row_order: Some(|object| (table::fields::int(object, "/spec/matchingPrecedence"), table::fields::name(object))),
    ..Kind::DEFAULT
};

fn default(object: &mut Value) {
    defaulting::fill(defaulting::part(object, "spec"), "matchingPrecedence", PRECEDENCE);
}

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
