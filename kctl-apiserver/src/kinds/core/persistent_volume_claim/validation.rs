//! Validation of claims and of their statuses (`ValidatePersistentVolumeClaim…`).

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::set,
    kinds::core::persistent_volume::CLASS_ANNOTATION,
    quantity,
    validation::{declared, resources, volume_claim::claim_spec},
};

/// Validates an update (`ValidatePersistentVolumeClaimUpdate`): the spec is immutable, apart from resources and
/// `volumeAttributesClassName` of a bound claim, and setting `volumeName` or an absent storage class once.
///
/// The amounts of a bound claim's requests are not compared with the old ones here.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let without_requests = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        let is_bound = claim["status"]["phase"] == "Bound";
        let may_change: &[&str] = if is_bound { &["resources", "volumeAttributesClassName"] } else { &[] };
        for name in may_change {
            set(&mut spec, name, None);
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
    let claim = Field::new(new, "", errors);
    let detail = "is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    claim.at("spec").forbidden_if(was != is, detail);
    // As in kube-apiserver, the path has no `spec`.
    claim.at("volumeMode").with(&new["spec"]["volumeMode"]).immutable(&old["spec"]["volumeMode"]);
}

/// Returns `true` if a claim without `storageClassName` may get this class: its annotation names the same or none
/// (`validateStorageClassUpgradeFromNil`). This is how a default class reaches claims that were created before it.
fn may_get_class(old: &Value, class: &Value) -> bool {
    let named = old["metadata"]["annotations"].get(CLASS_ANNOTATION);
    class.is_string() && named.is_none_or(|named| named == class)
}

/// Validates a claim: its spec, by the rules that claim templates share (`validation::volume_claim`).
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    claim_spec(&Field::new(&object["spec"], "spec", errors));
}

/// Validates the status of a claim (`ValidatePersistentVolumeClaimStatusUpdate`).
///
/// `allocatedResourceStatuses` has one of the states of a resize for each resource.
pub(crate) fn validate_status(object: &Value, errors: &mut Errors) {
    let resizes = declared::values("core.v1.PersistentVolumeClaimStatus", "allocatedResourceStatuses");
    let status = Field::new(&object["status"], "status", errors);
    let [capacity, states, allocated] =
        ["capacity", "allocatedResourceStatuses", "allocatedResources"].map(|name| status.at(name));
    capacity.entries().for_each(|(_, amount)| validate_amount(&amount));
    for (name, state) in states.entries() {
        resource_name(name, &states);
        states.with(&state).always_one_of(&resizes);
    }
    for (name, amount) in allocated.entries() {
        if resource_name(name, &allocated) {
            validate_amount(&amount);
        }
    }
}

/// Validates the name of a resource in the status; returns `true` if it is valid. Drivers may report resources besides
/// `storage` under their domain.
fn resource_name(name: &str, resources: &Field<'_>) -> bool {
    let value = Value::from(name);
    let field = resources.with(&value);
    let is_valid = field.passes(Field::qualified_name);
    let is_unknown = resources::is_native(name) && name != "storage";
    field.unsupported_if(is_valid && is_unknown, &["storage"]);
    is_valid && !is_unknown
}

/// Validates that an amount is not negative. It counts in whole units. A string that is not a quantity counts as 0
/// here.
fn validate_amount(amount: &Field<'_>) {
    let units = quantity::parse(amount.text()).map_or(0, |amount| amount.in_steps(0));
    amount.invalid_if(units < 0, "must be a quantity of at least 0");
}
