//! `ConfigMap` of the core group.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    admit::rules,
    registry::kind::Kind,
    table::{
        age::age,
        fields::{entries, name},
    },
};

pub(crate) static KIND: Kind = Kind {
    resource: "configmaps",
    kind: "ConfigMap",
    validate: rules::config::config_map,
    validate_update: rules::change::config,
    printer: Some(cells),
    quota: super::counted_by_name!("configmaps"),
    ..Kind::DEFAULT
};

fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let n_keys = entries(object, "/data") + entries(object, "/binaryData");
    vec![json!(name(object)), json!(n_keys), json!(age(object, now))]
}
