//! `ControllerRevision` of `apps`: an immutable snapshot of a workload's state.
//!
//! The server requires `data` on create and rejects changes of it. `StatefulSet` and `DaemonSet` controllers store the
//! history of their templates in it; `kubectl rollout undo` reads it. `revision` orders the snapshots and may change,
//! for example when a rollback makes an old snapshot the newest one.
//!
//! Upstream: `pkg/registry/apps/controllerrevision/strategy.go` and `pkg/apis/apps/validation/validation.go`.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::Errors,
    registry::kind::{Cell, Kind, TableColumns, Validation},
    table::{
        fields::{list, text, value_at},
        labels::NONE,
    },
};

pub(crate) static KIND: Kind = Kind {
    group: "apps",
    resource: "controllerrevisions",
    kind: "ControllerRevision",
    validation: Validation {
        validate,
        validate_create,
        validate_update: |old, new, errors| Field::new(&new["data"], "data", errors).immutable(&old["data"]),
        warns_once_per_generation: true,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Computed(|revision, _| controller(revision).into()),
        Cell::Int("/revision"),
        Cell::Age,
    ]),
    ..Kind::DEFAULT
};

/// Returns the owner reference with `controller: true`, as in `statefulset.apps/db`; `<none>` without one.
fn controller(object: &Value) -> String {
    let owners = list(object, "/metadata/ownerReferences");
    let controller = owners.iter().find(|owner| value_at(owner, "/controller").as_bool() == Some(true));
    controller.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(owner, "/kind").to_lowercase();
            let group_suffix = text(owner, "/apiVersion").split_once('/').map(|(group, _)| format!(".{group}"));
            format!("{kind}{}/{}", group_suffix.unwrap_or_default(), text(owner, "/name"))
        },
    )
}

/// Validates `revision`.
fn validate(object: &Value, errors: &mut Errors) {
    Field::new(&object["revision"], "revision", errors).not_negative();
}

/// Validates `data`, which is required, and a JSON object. Updates may not change it.
fn validate_create(object: &Value, errors: &mut Errors) {
    let data = Field::new(&object["data"], "data", errors);
    data.required_with_if(!data.is_object(), "must be a JSON object");
}
