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
    field_errors::{Errors, text},
    names::NameRule,
    registry::kind::{Kind, Strategy, TableColumns, Validation},
    status::GroupResource,
    table::fields::{self, is_true, name},
    validation::{immutable::immutable_field, status},
};

pub(crate) static KIND: Kind = Kind {
    group: "storagemigration.k8s.io",
    resource: "storageversionmigrations",
    kind: "StorageVersionMigration",
    strategy: Strategy {
        allows_unconditional_update: false,
        kept_by_status: Kind::CLIENT_METADATA,
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate,
        validate_update: |old, new, errors| immutable_field("spec", &old["spec"], &new["spec"], errors),
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
    let (resource, path) = (&object["spec"]["resource"], "spec.resource");
    errors.required_name(&format!("{path}.resource"), &resource["resource"], NameRule::Label1035);
    if !text(&resource["group"]).is_empty() {
        errors.name(&format!("{path}.group"), &resource["group"], NameRule::Subdomain);
    }
}

/// Validates a status, and that final conditions and the resource version are unchanged
/// (`ValidateStorageVersionMigrationStatusUpdate`).
fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (text(&old["status"]["resourceVersion"]), text(&new["status"]["resourceVersion"]));
    let (at_version, at_conditions) = ("status.resourceVersion", "status.conditions");
    if !is.is_empty() && !is_resource_version(is) {
        errors.invalid(at_version, &is.into(), "resource version is not well formed");
    }
    status::conditions(&new["status"]["conditions"], at_conditions, errors);
    if !was.is_empty() && was != is {
        errors.invalid(at_version, &is.into(), "field is immutable");
    }
    let shown = &new["status"]["conditions"];
    if FINAL.iter().all(|kind| is_true(new, kind)) {
        errors.invalid(at_conditions, shown, "Succeeded and Failed exclude each other");
    }
    for kind in FINAL.iter().filter(|kind| is_true(old, kind) && !is_true(new, kind)) {
        errors.invalid(at_conditions, shown, &format!("{kind} stays once it is true"));
    }
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
