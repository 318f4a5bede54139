//! Validation of the status of a `ResourceClaim`: allocation, consumers and device statuses.
//!
//! Behaviour: `ValidateResourceClaimStatusUpdate` in `pkg/apis/resource/validation/validation.go` and
//! `pkg/registry/resource/resourceclaim/strategy.go`, compared with kube-apiserver 1.37.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    deletion::is_being_deleted,
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds::resource::{
        resource_claim::validation::{
            request_names, validate_configurations, validate_request_name, validate_toleration,
        },
        validation::{validate_binding_conditions, validate_driver},
    },
    names::NameRule,
    validation::{
        address::{Cidr, is_mapped},
        affinity,
        format::{validate_driver_name, validate_pool_name},
        status,
    },
};

/// Maximum number of conditions of a device (`AllocatedDeviceStatusMaxConditions`).
const CONDITIONS_MAX: usize = 8;

/// Validates a status against the stored one (`ValidateResourceClaimStatusUpdate`).
pub(crate) fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, status) = (&old["status"], Field::new(&new["status"], "status", errors));
    let (users, allocation) = (status.at("reservedFor"), status.at("allocation"));
    for user in users.items() {
        // A new Pod of the same name is a different consumer.
        user.require_children(&["resource", "name", "uid"]);
    }
    validate_devices(&status.at("devices"), &allocated_devices(&allocation));
    users.forbidden_if(!users.is_empty() && allocation.is_null(), "may not be specified without an allocation");
    let is_deleting = is_being_deleted(new);
    let has_new =
        || entries(&users).any(|(_, user)| !entries(&was["reservedFor"]).any(|(_, existing)| existing == user));
    users.forbidden_if(is_deleting && has_new(), "must not have new entries in a claim being deleted");
    // The tag `update=NoModify` validates that an allocation is unchanged.
    if was["allocation"].is_null() && !allocation.is_null() {
        validate_allocated(&allocation, &request_names(&new["spec"]["devices"]["requests"]));
    }
}

/// Drops the statuses of devices that the update deallocates (`dropDeallocatedStatusDevices`).
pub(crate) fn drop_deallocated_devices(old: &Value, new: &mut Value) {
    let allocation = new["status"]["allocation"].clone();
    let returned = &allocated_devices(&old["status"]["allocation"]) - &allocated_devices(&allocation);
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut).filter(|_| !returned.is_empty()) else {
        return;
    };
    if let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) {
        devices.retain(|device| !returned.contains(&id(device)));
        if devices.is_empty() {
            status.remove("devices");
        }
    }
}

/// The identity of a device: driver, pool, name and share.
type DeviceId<'a> = [&'a str; 4];

/// Returns the identity of a device.
fn id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|field| text(&device[field]))
}

/// Returns the IDs of the devices in an allocation.
fn allocated_devices(allocation: &Value) -> BTreeSet<DeviceId<'_>> {
    entries(&allocation["devices"]["results"]).map(|(_, result)| id(result)).collect()
}

/// Validates `status.devices`, in which drivers report about the devices of the claim. `allocated` are the IDs of the
/// allocated ones. `data` is at most 10 KiB of JSON, and addresses have a prefix length.
fn validate_devices(list: &Field<'_>, allocated: &BTreeSet<DeviceId<'_>>) {
    for device in list.items() {
        device.at("driver").check(validate_driver_name);
        device.at("pool").check(validate_pool_name);
        device.at("device").name(NameRule::Label);
        device.invalid_if(!allocated.contains(&id(&device)), "must be an allocated device in the claim");
        let conditions = device.at("conditions");
        conditions.check(status::validate_condition_list);
        conditions.max_items(CONDITIONS_MAX);
        device.at("data").when_present(validate_driver);
        device.at("networkData").at("ips").items().for_each(|address| address.check(validate_interface_address));
    }
}

/// Validates an address with the prefix length of its network, as a network interface has it
/// (`IsValidInterfaceAddress`), such as `10.9.8.7/24`, in its canonical form.
fn validate_interface_address(value: &Field<'_>) {
    let canonical = Cidr::parse(value.text()).map(|Cidr { address, prefix_len }| {
        let bits = if is_mapped(address) { prefix_len.saturating_sub(96) } else { prefix_len };
        format!("{}/{bits}", address.to_canonical())
    });
    let is_other = canonical.as_deref() != Some(value.text());
    let form = canonical.as_deref().unwrap_or("10.9.8.7/24 or 2001:db8::1/64");
    let detail = format_args!("must be an address with its prefix length in canonical form, such as {form}");
    value.invalid_if(is_other, detail);
}

/// Validates a new allocation. Results and configurations may only name requests of the claim, which are in `requests`.
fn validate_allocated(allocation: &Field<'_>, requests: &BTreeSet<String>) {
    let devices = allocation.at("devices");
    for result in devices.at("results").items() {
        validate_request_name(&result.at("request"), requests);
        result.at("device").name(NameRule::Label);
        validate_binding_conditions(&result);
        result.at("tolerations").items().for_each(|item| validate_toleration(&item));
    }
    validate_configurations(&devices, requests);
    allocation.at("nodeSelector").when_present(affinity::node_selector);
}
