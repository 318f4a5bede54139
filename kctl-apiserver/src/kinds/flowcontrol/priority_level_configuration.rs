//! `PriorityLevelConfiguration` of `flowcontrol.apiserver.k8s.io`.

use crate::{
    admit::defaults,
    registry::kind::{Generation, Kind},
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    resource: "prioritylevelconfigurations",
    kind: "PriorityLevelConfiguration",
    generation: Generation::Counted,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: defaults::api::priority_level,
    validate: super::validation::level,
    validate_status: |_, new, errors| super::validation::status(new, errors),
    printer: Some(table::policy::priority_level),
    ..Kind::DEFAULT
};
