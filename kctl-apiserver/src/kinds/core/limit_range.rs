//! `LimitRange` of the core group.
//!
//! It bounds and defaults the resources of Pods, containers and claims of a namespace. The admission plugin
//! `LimitRanger` applies it to new objects; this file is about the object itself. Defaults are per resource, and may
//! come from different fields: see `default`.
//!
//! Upstream: `pkg/registry/core/limitrange/strategy.go` and `pkg/apis/core/validation/validation.go`.

use serde_json::Value;

use crate::{
    defaulting::{add, is_text, items, part},
    registry::kind::{Defaults, Environment, Kind, Strategy, Validation},
};

pub(crate) static KIND: Kind = Kind {
    resource: "limitranges",
    kind: "LimitRange",
    defaults: Defaults { set: default, ..Defaults::DEFAULT },
    strategy: Strategy {
        creates_on_update: true,
        prepare_create: set_name,
        null_when_empty: Some("/spec/limits"),
        ..Strategy::DEFAULT
    },
    validation: Validation { validate: super::resource_quota::validation::validate_limit_range, ..Validation::DEFAULT },
    ..Kind::DEFAULT
};

/// Names a `LimitRange` that has no name and no `generateName`. Upstream: `limitrangeStrategy.PrepareForCreate`, which
/// uses a UUID as name.
fn set_name(environment: &mut dyn Environment, object: &mut Value) {
    let meta = &mut object["metadata"];
    if ["name", "generateName"].iter().all(|field| meta[field].as_str().unwrap_or_default().is_empty()) {
        meta["name"] = environment.uid().into();
    }
}

/// Fills in the defaults of a container's bounds (`SetDefaults_LimitRangeItem`). Amounts are completed one by one:
/// `cpu` may come from `max`, and `memory` from the client.
fn default(object: &mut Value) {
    for limit in items(part(object, "spec"), "limits").filter(|limit| is_text(limit, "type", "Container")) {
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let amounts = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            amounts.into_iter().for_each(|(name, amount)| add(part(limit, to), &name, amount));
        }
    }
}
