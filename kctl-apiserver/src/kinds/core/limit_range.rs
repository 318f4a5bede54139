//! `LimitRange` of the core group.

use serde_json::Value;

use crate::{
    defaulting::{add, is_text, items, part},
    registry::kind::{Environment, Kind},
};

pub(crate) static KIND: Kind = Kind {
    resource: "limitranges",
    kind: "LimitRange",
    creates_on_update: true,
    prepare_create: set_name,
    null_when_empty: Some("/spec/limits"),
    default,
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

/// The bounds of containers: a default is the maximum, a request is the default or the minimum.
fn default(object: &mut Value) {
    for limit in items(part(object, "spec"), "limits").filter(|limit| is_text(limit, "type", "Container")) {
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let amounts = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            amounts.into_iter().for_each(|(name, amount)| add(part(limit, to), &name, amount));
        }
    }
}
