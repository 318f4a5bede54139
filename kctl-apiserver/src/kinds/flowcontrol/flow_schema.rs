//! `FlowSchema` of `flowcontrol.apiserver.k8s.io`.

use serde_json::Value;

use crate::{
    admit::defaults,
    registry::kind::{Generation, Kind},
    table,
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
    printer: Some(table::policy::flow_schema),
    row_order: Some(|object| (table::fields::int(object, "/spec/matchingPrecedence"), table::fields::name(object))),
    ..Kind::DEFAULT
};

fn default(object: &mut Value) {
    defaults::fill(defaults::part(object, "spec"), "matchingPrecedence", defaults::api::PRECEDENCE);
}
