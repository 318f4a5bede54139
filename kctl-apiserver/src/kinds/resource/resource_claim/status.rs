//! Rules of the statuses of claims for devices: what was handed out, to whom, and what drivers say of it.
//!
//! Behaviour: `ValidateResourceClaimStatusUpdate` in `pkg/apis/resource/validation/validation.go` and
//! `pkg/registry/resource/resourceclaim/strategy.go`, asked of kube-apiserver 1.36.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::admit::rules::{
    Errors, address, affinity,
    claim::{names, of_request, of_requests},
    device::{ITEMS_MAX, bindings, driver, few, few_different, of_driver, opaque, pool_name},
    entries, status, text,
};
use crate::names::NameRule;

/// Users of a claim (`ResourceClaimReservedForMaxSize`).
const USERS_MAX: usize = 256;
/// Conditions of a device (`MaxConditions` of `AllocatedDeviceStatus`).
const CONDITIONS_MAX: usize = 8;
/// Addresses of a device (`NetworkDeviceDataMaxIPs`).
const ADDRESSES_MAX: usize = 16;
/// The longest name of an interface (`NetworkDeviceDataInterfaceNameMaxLength`), in bytes.
const INTERFACE_LEN_MAX: usize = 256;
/// The longest address of hardware (`NetworkDeviceDataHardwareAddressMaxLength`), in bytes.
const HARDWARE_LEN_MAX: usize = 128;
const NO_SPLIT: &str = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";

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
        (was, is) if was != is => errors.invalid("status.allocation", is, "field is immutable"),
        _ => {}
    }
}

/// Takes away what is said of devices that the claim had and has no more (`dropDeallocatedStatusDevices`).
pub(crate) fn forget_returned(old: &Value, new: &mut Value) {
    let is = handed_out(&new["status"]["allocation"]);
    let returned: BTreeSet<String> = &handed_out(&old["status"]["allocation"]) - &is;
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

fn users(list: &Value, errors: &mut Errors) {
    few_different(
        list,
        USERS_MAX,
        "status.reservedFor",
        errors,
        |user| &user["uid"],
        |user, at, errors| {
            for field in ["resource", "name", "uid"] {
                if text(&user[field]).is_empty() {
                    errors.required(&format!("{at}.{field}"), "");
                }
            }
        },
    );
}

fn has_new_users(was: &Value, is: &Value) -> bool {
    entries(&is["reservedFor"]).any(|(_, user)| !entries(&was["reservedFor"]).any(|(_, known)| known == user))
}

/// Returns what tells a device from others.
fn id(device: &Value) -> String {
    let part = |field: &str| Value::from(text(&device[field]));
    format!(
        "{{\"Driver\":{},\"Pool\":{},\"Device\":{},\"ShareID\":{}}}",
        part("driver"),
        part("pool"),
        part("device"),
        part("shareID")
    )
}

fn handed_out(allocation: &Value) -> BTreeSet<String> {
    entries(&allocation["devices"]["results"]).map(|(_, result)| id(result)).collect()
}

fn devices(list: &Value, handed_out: &BTreeSet<String>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, device) in entries(list) {
        let (at, id) = (format!("status.devices[{index}]"), id(device));
        place(device, &at, errors);
        share(&device["shareID"], &format!("{at}.shareID"), errors);
        if !handed_out.contains(&id) {
            errors.invalid(&at, device, "must be an allocated device in the claim");
        }
        let (conditions, conditions_at) = (&device["conditions"], format!("{at}.conditions"));
        let found = entries(conditions).count();
        if found > CONDITIONS_MAX {
            errors.too_many(&conditions_at, found, CONDITIONS_MAX);
        }
        status::conditions(conditions, &conditions_at, errors);
        if !device["data"].is_null() {
            of_driver(&device["data"], &format!("{at}.data"), errors);
        }
        network(&device["networkData"], &format!("{at}.networkData"), errors);
        if !known.insert(id.clone()) {
            errors.duplicate(&at, &id);
        }
    }
}

/// Where a device is found.
fn place(device: &Value, at: &str, errors: &mut Errors) {
    driver(&device["driver"], &format!("{at}.driver"), errors);
    pool_name(&device["pool"], &format!("{at}.pool"), errors);
    errors.name(&format!("{at}.device"), &text(&device["device"]).into(), NameRule::Label);
}

/// The uid of a share of a device. Forms that Go's parser takes beside the usual one are told from what it does not take.
fn share(id: &Value, at: &str, errors: &mut Errors) {
    let Some(uid) = id.as_str() else { return };
    let hyphened = |uid: &str| {
        uid.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let inner = |from: usize| uid.get(from..from + 36).unwrap_or_default();
    let wrong = match uid.len() {
        36 if hyphened(uid) => None,
        45 if !inner(9).is_empty() && uid[..9].to_lowercase() != "urn:uuid:" => {
            Some(format!("invalid urn prefix: {:?}", &uid[..9]))
        }
        45 if hyphened(inner(9)) && !inner(9).is_empty() => None,
        38 if !(uid.starts_with('{') && uid.ends_with('}')) => Some("invalid bracketed UUID format".to_owned()),
        38 if hyphened(inner(1)) && !inner(1).is_empty() => None,
        32 if uid.bytes().all(|byte| byte.is_ascii_hexdigit()) => None,
        32 | 36 | 38 | 45 => Some("invalid UUID format".to_owned()),
        length => Some(format!("invalid UUID length: {length}")),
    };
    if let Some(wrong) = wrong {
        errors.invalid(at, id, &format!("error validating uid: {wrong}"));
    } else if uid.len() != 36 || uid.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                      hexadecimal characters";
        errors.invalid(at, id, detail);
    }
}

fn network(data: &Value, at: &str, errors: &mut Errors) {
    for (field, most) in [("interfaceName", INTERFACE_LEN_MAX), ("hardwareAddress", HARDWARE_LEN_MAX)] {
        if text(&data[field]).len() > most {
            errors.too_long(&format!("{at}.{field}"), most);
        }
    }
    few_different(&data["ips"], ADDRESSES_MAX, &format!("{at}.ips"), errors, |one| one, address::of_interface);
}

/// What is handed out, for a claim that had nothing.
fn allocated(allocation: &Value, requests: &BTreeSet<String>, errors: &mut Errors) {
    let devices = &allocation["devices"];
    few(&devices["results"], ITEMS_MAX, "status.allocation.devices.results", errors, |result, at, errors| {
        of_request(&result["request"], requests, &format!("{at}.request"), errors);
        place(result, at, errors);
        bindings(result, at, errors);
        share(&result["shareID"], &format!("{at}.shareID"), errors);
    });
    // Settings come from the class and from the claim.
    few(&devices["config"], 2 * ITEMS_MAX, "status.allocation.devices.config", errors, |config, at, errors| {
        let source_at = format!("{at}.source");
        if text(&config["source"]).is_empty() {
            errors.required(&source_at, "");
        } else {
            errors.one_of(&source_at, &config["source"], &["FromClaim", "FromClass"]);
        }
        of_requests(&config["requests"], requests, at, errors);
        opaque(&config["opaque"], at, errors);
    });
    if !allocation["nodeSelector"].is_null() {
        affinity::node_selector(&allocation["nodeSelector"], "status.allocation.nodeSelector", errors);
    }
}
