//! `ComponentStatus` of the core group.

use crate::{
    registry::kind::{Kind, Quota},
    table,
};

pub(crate) static KIND: Kind = Kind {
    resource: "componentstatuses",
    kind: "ComponentStatus",
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    printer: Some(table::core::component_status),
    quota: Quota::NOT_COUNTED,
    ..Kind::DEFAULT
};
