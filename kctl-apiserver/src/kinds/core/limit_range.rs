//! `LimitRange` of the core group.

use serde_json::Value;

use crate::{
    admit::defaults,
    registry::kind::{Environment, Kind},
};

pub(crate) static KIND: Kind = Kind {
    resource: "limitranges",
    kind: "LimitRange",
    creates_on_update: true,
    prepare_create: set_name,
    null_when_empty: Some("/spec/limits"),
    default: defaults::api::limit_range,
    validate: super::resource_quota::validation::limits,
    ..Kind::DEFAULT
};

/// Names a `LimitRange` that has no name and no `generateName`.
fn set_name(environment: &mut dyn Environment, object: &mut Value) {
    let meta = &mut object["metadata"];
    if ["name", "generateName"].iter().all(|field| meta[field].as_str().unwrap_or_default().is_empty()) {
        meta["name"] = environment.uid().into();
    }
}
