//! `ConfigMap` of the core group.

use crate::{admit::rules, registry::kind::Kind, table};

pub(crate) static KIND: Kind = Kind {
    resource: "configmaps",
    kind: "ConfigMap",
    validate: rules::config::config_map,
    validate_update: rules::change::config,
    printer: Some(table::core::config_map),
    quota: super::counted_by_name!("configmaps"),
    ..Kind::DEFAULT
};
