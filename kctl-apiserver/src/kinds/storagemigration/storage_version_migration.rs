//! `StorageVersionMigration` of `storagemigration.k8s.io`: requests that all objects of a resource are rewritten in its
//! storage version.
//!
//! - The spec is immutable, and names a group and a resource. Neither has to exist.
//! - The controller writes the status. `Succeeded` and `Failed` exclude each other. A condition that is `True` and the
//!   resource version to which the controller migrates do not change any more.
//!
//! Upstream: `pkg/registry/storagemigration/storagemigration/strategy.go` and
//! `pkg/apis/storagemigration/validation/validation.go`.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    field::Field,
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Kind, Strategy, TableColumns, Validation},
    status::GroupResource,
    table::fields::{self, is_true, name},
    validation::status,
};

pub(crate) static KIND: Kind = Kind {
    group: "storagemigration.k8s.io",
    resource: "storageversionmigrations",
    kind: "StorageVersionMigration",
    strategy: Strategy { kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate,
        validate_update: |old, new, errors| Field::new(&new["spec"], "spec", errors).immutable(&old["spec"]),
        validate_status,
        ..Validation::DEFAULT
    },
    table: TableColumns::printer(cells),
    ..Kind::DEFAULT
};

/// Conditions that end a migration.
const FINAL: [&str; 2] = ["Succeeded", "Failed"];

/// Validates the resource to migrate (`ValidateStorageVersionMigration`). The core group is the empty string.
fn validate(object: &Value, errors: &mut Errors) {
    let resource = Field::new(&object["spec"]["resource"], "spec.resource", errors);
    resource.at("resource").required_name(NameRule::Label1035);
    resource.at("group").name_if_set(NameRule::Subdomain);
}

/// Validates a status, and that final conditions and the resource version are unchanged
/// (`ValidateStorageVersionMigrationStatusUpdate`).
fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let (status, was) = (Field::new(&new["status"], "status", errors), text(&old["status"]["resourceVersion"]));
    let (version, conditions) = (status.at("resourceVersion"), status.at("conditions"));
    let is_changed = !was.is_empty() && was != version.text();
    let is_valid = version.is_empty() || is_resource_version(version.text());
    version.invalid_if(is_changed || !is_valid, "must be a resource version, and must not change");
    conditions.check(status::validate_condition_list);
    let is_reset = FINAL.iter().any(|kind| is_true(old, kind) && !is_true(new, kind));
    let has_both = FINAL.iter().all(|kind| is_true(new, kind));
    let detail = "Succeeded and Failed are mutually exclusive, and cannot be reset once True";
    conditions.invalid_if(is_reset || has_both, detail);
}

/// Returns `true` for digits without a leading zero (`isWellFormed` of `k8s.io/apimachinery/pkg/util/resourceversion`).
fn is_resource_version(version: &str) -> bool {
    !version.starts_with('0') && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns name, `resource.group` and the last of the conditions that is true (`printStorageVersionMigration`).
fn cells(object: &Value, _: Timestamp) -> Vec<Value> {
    let field_text = |field| fields::text(object, field);
    let resource = GroupResource::new(field_text("/spec/resource/group"), field_text("/spec/resource/resource"));
    let conditions = fields::list(object, "/status/conditions").iter().rev();
    let mut held =
        conditions.filter(|condition| condition["status"] == "True").map(|condition| text(&condition["type"]));
    let status = held.find(|kind| *kind == "Running" || FINAL.contains(kind)).unwrap_or("Unknown");
    vec![json!(name(object)), json!(resource.to_string()), json!(status)]
}
