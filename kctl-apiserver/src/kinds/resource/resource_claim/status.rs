//! Validation of the status of a `ResourceClaim`: allocation, consumers and device statuses.
//!
//! Behaviour: `ValidateResourceClaimStatusUpdate` in `pkg/apis/resource/validation/validation.go` and
//! `pkg/registry/resource/resourceclaim/strategy.go`, compared with kube-apiserver 1.37.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    kinds::resource::{
        resource_claim::validation::{names, of_request, of_requests, toleration},
        validation::{bindings, of_driver, opaque},
    },
    names::NameRule,
    validation::{
        address, affinity, each, entries,
        format::{driver, pool_name},
        status,
    },
};

/// Maximum number of conditions of a device (`MaxConditions` of `AllocatedDeviceStatus`).
const CONDITIONS_MAX: usize = 8;
/// Detail of the error about new consumers of a claim that is being deleted.
const NO_SPLIT: &str = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";

/// Validates a status against the stored one (`ValidateResourceClaimStatusUpdate`).
///
/// | field | rule |
/// |---|---|
/// | `reservedFor` | only with an allocation; no new entries once the claim is being deleted |
/// | `devices` | only allocated devices |
/// | `allocation` | validated when it is set; it may be removed, and otherwise not be changed |
pub(crate) fn status(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["status"], &new["status"]);
    users(&is["reservedFor"], errors);
    devices(&is["devices"], &handed_out(&is["allocation"]), errors);
    if entries(&is["reservedFor"]).next().is_some() {
        if is["allocation"].is_null() {
            errors.forbidden("status.reservedFor", "may not be specified when `allocated` is not set");
        } else if new["metadata"]["deletionTimestamp"].is_string() && has_new_users(was, is) {
            errors.forbidden("status.reservedFor", NO_SPLIT);
        }
    }
    match (&was["allocation"], &is["allocation"]) {
        (_, Value::Null) => {}
        (Value::Null, allocation) => allocated(allocation, &names(&new["spec"]["devices"]["requests"]), errors),
        // The tag `update=NoModify` validates that the allocation is unchanged.
        _ => {}
    }
}

/// Drops the statuses of devices that the update deallocates (`dropDeallocatedStatusDevices`).
pub(crate) fn forget_returned(old: &Value, new: &mut Value) {
    let allocation = new["status"]["allocation"].clone();
    let returned = &handed_out(&old["status"]["allocation"]) - &handed_out(&allocation);
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

/// Validates the consumers of a claim. Each has resource, name and UID, so that a new Pod of the same name is a
/// different consumer.
fn users(list: &Value, errors: &mut Errors) {
    each(list, "status.reservedFor", errors, |user, path, errors| {
        for field in ["resource", "name", "uid"] {
            if text(&user[field]).is_empty() {
                errors.required(&format!("{path}.{field}"), "");
            }
        }
    });
}

/// Returns `true` if `reservedFor` has a new entry.
fn has_new_users(was: &Value, is: &Value) -> bool {
    entries(&is["reservedFor"]).any(|(_, user)| !entries(&was["reservedFor"]).any(|(_, existing)| existing == user))
}

/// The identity of a device: driver, pool, name and share.
type DeviceId<'a> = [&'a str; 4];

/// Returns the identity of a device.
fn id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|field| text(&device[field]))
}

/// Returns the IDs of the devices in an allocation.
fn handed_out(allocation: &Value) -> BTreeSet<DeviceId<'_>> {
    entries(&allocation["devices"]["results"]).map(|(_, result)| id(result)).collect()
}

/// Validates `status.devices`, in which drivers report about the devices of the claim.
///
/// `handed_out` are the IDs of the allocated ones. `data` is at most 10 KiB of JSON, and addresses
/// have a prefix length.
fn devices(list: &Value, handed_out: &BTreeSet<DeviceId<'_>>, errors: &mut Errors) {
    for (index, device) in entries(list) {
        let path = format!("status.devices[{index}]");
        driver(&device["driver"], &format!("{path}.driver"), errors);
        pool_name(&device["pool"], &format!("{path}.pool"), errors);
        device_name(&device["device"], &path, errors);
        if !handed_out.contains(&id(device)) {
            errors.invalid(&path, device, "must be an allocated device in the claim");
        }
        let (conditions, conditions_path) = (&device["conditions"], format!("{path}.conditions"));
        let found = entries(conditions).count();
        if found > CONDITIONS_MAX {
            errors.too_many(&conditions_path, found, CONDITIONS_MAX);
        }
        status::conditions(conditions, &conditions_path, errors);
        if !device["data"].is_null() {
            of_driver(&device["data"], &format!("{path}.data"), errors);
        }
        let addresses_path = format!("{path}.networkData.ips");
        each(&device["networkData"]["ips"], &addresses_path, errors, address::of_interface);
    }
}

/// Validates the name of a device: a DNS label.
fn device_name(name: &Value, path: &str, errors: &mut Errors) {
    errors.name(&format!("{path}.device"), &text(name).into(), NameRule::Label);
}

/// Validates a new allocation.
///
/// Results and configurations may only name requests of the claim, which are in `requests`.
fn allocated(allocation: &Value, requests: &BTreeSet<String>, errors: &mut Errors) {
    let devices = &allocation["devices"];
    each(&devices["results"], "status.allocation.devices.results", errors, |result, path, errors| {
        of_request(&result["request"], requests, &format!("{path}.request"), errors);
        device_name(&result["device"], path, errors);
        bindings(result, path, errors);
        each(&result["tolerations"], &format!("{path}.tolerations"), errors, toleration);
    });
    each(&devices["config"], "status.allocation.devices.config", errors, |config, path, errors| {
        of_requests(&config["requests"], requests, path, errors);
        opaque(&config["opaque"], path, errors);
    });
    if !allocation["nodeSelector"].is_null() {
        affinity::node_selector(&allocation["nodeSelector"], "status.allocation.nodeSelector", errors);
    }
}
