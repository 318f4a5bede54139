//! `ControllerRevision` of `apps`.

use crate::{
    admit::rules::{self, change::keeps},
    registry::kind::Kind,
    table,
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "controllerrevisions",
    kind: "ControllerRevision",
    validate: |object, errors| rules::workload::revision(object, false, errors),
    validate_create: Some(|object, errors| rules::workload::revision(object, true, errors)),
    validate_update: |old, new, errors| keeps("data", &old["data"], &new["data"], errors),
    warns_once_per_generation: true,
    printer: Some(table::workload::controller_revision),
    ..Kind::DEFAULT
};
