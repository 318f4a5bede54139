//! Rules of what drivers of storage say: attachments, nodes, capacities and classes of attributes.

use serde_json::Value;

use super::{Errors, entries, pairs, resources, selector, storage, text, volume_source};
use crate::names::NameRule;

/// In bytes: what the name of a node is for its driver (`csiNodeIDMaxLength`).
const NODE_ID_LEN_MAX: usize = 256;

/// In bytes: what a driver says of an error (`maxVolumeErrorMessageSize`).
const ERROR_LEN_MAX: usize = 1024;
/// In bytes: what the real server says of the same (`maxAttachedVolumeMetadataSize`).
const METADATA_LEN_MAX: usize = 256 * 1024;

pub(crate) fn attachment(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    source(&spec["source"], errors);
    errors.name("spec.nodeName", &text(&spec["nodeName"]).into(), NameRule::Subdomain);
    let volume = &spec["source"]["persistentVolumeName"];
    if !volume.is_null() {
        errors.name("spec.source.persistentVolumeName", volume, NameRule::Subdomain);
    }
}

/// What is attached: a volume by its name, or one that is written out.
fn source(source: &Value, errors: &mut Errors) {
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) = (&source["inlineVolumeSpec"], &source["persistentVolumeName"]);
    match (inline.is_null(), name.is_null()) {
        (true, true) => errors.required("spec.source", ONE),
        (false, false) => errors.forbidden("spec.source", ONE),
        (true, false) => {
            if text(name).is_empty() {
                errors.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName");
            }
        }
        (false, true) => storage::inline_volume(inline, "spec.source.inlineVolumeSpec", errors),
    }
}

pub(crate) fn node(object: &Value, errors: &mut Errors) {
    let drivers = &object["spec"]["drivers"];
    for (index, driver) in entries(drivers) {
        let at = format!("spec.drivers[{index}]");
        volume_source::driver(&driver["name"], &format!("{at}.name"), errors);
        let id = text(&driver["nodeID"]);
        if id.is_empty() {
            errors.required(&format!("{at}.nodeID"), "");
        } else if id.len() > NODE_ID_LEN_MAX {
            let detail = format!("must be {NODE_ID_LEN_MAX} characters or less");
            errors.invalid(&format!("{at}.nodeID"), &driver["nodeID"], &detail);
        }
        errors.not_negative(&format!("{at}.allocatable.count"), &driver["allocatable"]["count"]);
        if entries(drivers).take(index).any(|(_, other)| other["name"] == driver["name"]) {
            errors.duplicate(&format!("{at}.name"), &driver["name"].to_string());
        }
        topology(&driver["topologyKeys"], &at, errors);
    }
}

/// Drivers come and go, but none becomes another one; how many volumes they attach may change (`ValidateCSINodeUpdate`).
pub(crate) fn drivers_stay(old: &Value, new: &Value, errors: &mut Errors) {
    const STAY: [&str; 2] = ["nodeID", "topologyKeys"];
    for (_, was) in entries(old) {
        let same = entries(new).find(|(_, is)| is["name"] == was["name"]);
        if let Some((_, is)) = same.filter(|(_, is)| STAY.iter().any(|field| was[*field] != is[*field])) {
            errors.invalid("spec.drivers", is, "field is immutable");
        }
    }
}

/// The real server names the driver where a key is wrong.
fn topology(keys: &Value, at: &str, errors: &mut Errors) {
    for (index, key) in entries(keys) {
        if text(key).is_empty() {
            errors.required(at, "");
        }
        if entries(keys).take(index).any(|(_, other)| other == key) {
            errors.duplicate(at, &key.to_string());
        }
        errors.qualified_name(at, text(key));
    }
}

pub(crate) fn capacity(object: &Value, errors: &mut Errors) {
    selector::selector(&object["nodeTopology"], "nodeTopology", errors);
    errors.name("storageClassName", &text(&object["storageClassName"]).into(), NameRule::Subdomain);
    if resources::size(&object["capacity"]).is_some_and(|size| size < 0) {
        errors.invalid("capacity", &object["capacity"], "must be greater than or equal to 0");
    }
}

pub(crate) fn attributes(object: &Value, errors: &mut Errors) {
    let driver = text(&object["driverName"]);
    if driver.is_empty() {
        errors.required("driverName", "");
    } else {
        errors.qualified_name("driverName", &driver.to_lowercase());
    }
    if pairs(&object["parameters"]).next().is_none() {
        errors.required("parameters", "must contain at least one key/value pair");
    }
    parameters(&object["parameters"], errors);
}

/// What a class tells the one who makes its volumes.
pub(crate) fn parameters(parameters: &Value, errors: &mut Errors) {
    for (name, _) in pairs(parameters).filter(|(name, _)| name.is_empty()) {
        errors.invalid("parameters", &name.into(), "field can not be empty.");
    }
}

/// What became of an attachment.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    for part in ["attachError", "detachError"] {
        let (error, at) = (&object["status"][part], format!("status.{part}"));
        if text(&error["message"]).len() > ERROR_LEN_MAX {
            errors.too_long(&format!("{at}.message"), METADATA_LEN_MAX);
        }
        if error["errorCode"].as_i64().is_some_and(|code| code < 0) {
            errors.in_range(&format!("{at}.errorCode"), &error["errorCode"], 0, i32::MAX.into());
        }
    }
}
