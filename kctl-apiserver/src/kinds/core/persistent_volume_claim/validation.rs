//! Validation of claims and of their statuses (`ValidatePersistentVolumeClaim…`).

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    quantity,
    validation::{declared, resources, volume_claim::claim_spec},
};

/// Validates an update (`ValidatePersistentVolumeClaimUpdate`): the spec is immutable (`FieldValueForbidden`).
///
/// Exceptions: resources and `volumeAttributesClassName` of a bound claim, and setting `volumeName` or an absent storage
/// class once.
///
/// The amounts of a bound claim's requests are not compared with the old ones here.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let without_requests = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        let is_bound = claim["status"]["phase"] == "Bound";
        let may_change: &[&str] = if is_bound { &["resources", "volumeAttributesClassName"] } else { &[] };
        for name in may_change {
            if let Some(spec) = spec.as_object_mut() {
                spec.remove(*name);
            }
        }
        spec
    };
    let (mut was, is) = (without_requests(old), without_requests(new));
    // Binding sets the name of the volume, which may be set once.
    if text(&was["volumeName"]).is_empty() && is["volumeName"].is_string() {
        was["volumeName"] = is["volumeName"].clone();
    }
    if was["storageClassName"].is_null() && may_get_class(old, &is["storageClassName"]) {
        was["storageClassName"] = is["storageClassName"].clone();
    }
    if was != is {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        errors.forbidden("spec", detail);
    }
}

/// Returns `true` if a claim without `storageClassName` may get this class: its annotation names the same or none
/// (`validateStorageClassUpgradeFromNil`).
///
/// This is how a default class reaches claims that were created before it.
fn may_get_class(old: &Value, class: &Value) -> bool {
    let named = old["metadata"]["annotations"].get(super::CLASS_OF_CLAIM);
    class.is_string() && named.is_none_or(|named| named == class)
}

/// Validates a claim: its spec, by the rules that claim templates share
/// (`validation::volume_claim`).
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    claim_spec(&object["spec"], "spec", errors);
}

/// Validates the status of a claim (`ValidatePersistentVolumeClaimStatusUpdate`).
///
/// `allocatedResourceStatuses` has one of the states of a resize for each resource.
pub(crate) fn validate_status(object: &Value, errors: &mut Errors) {
    let resizes = declared::values("core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses");
    let status = &object["status"];
    for (name, amount) in pairs(&status["capacity"]) {
        validate_amount(amount, &format!("status.capacity[{name}]"), errors);
    }
    let path = "status.allocatedResourceStatuses";
    for (name, resize) in pairs(&status["allocatedResourceStatuses"]) {
        resource_name(name, path, errors);
        errors.always_one_of(path, resize, &resizes);
    }
    let path = "status.allocatedResources";
    for (name, amount) in pairs(&status["allocatedResources"]) {
        if resource_name(name, path, errors) {
            validate_amount(amount, &format!("{path}[{name}]"), errors);
        }
    }
}

/// Validates the name of a resource in the status; returns `true` if it is valid.
///
/// Without a domain, only `storage` is valid; drivers may report other resources under their
/// domain.
fn resource_name(name: &str, path: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.qualified_name(path, name);
    if errors.len() == before && resources::is_native(name) && name != "storage" {
        errors.unsupported(path, &name.into(), &["storage"]);
    }
    errors.len() == before
}

/// Validates that an amount is not negative (`FieldValueInvalid`).
///
/// It counts in whole units. A string that is not a quantity counts as 0 here.
pub(crate) fn validate_amount(amount: &Value, path: &str, errors: &mut Errors) {
    let units = quantity::parse(text(amount)).map_or(0, |amount| amount.in_steps(0));
    if units < 0 {
        errors.invalid(path, amount, "must be a quantity of at least 0");
    }
}
