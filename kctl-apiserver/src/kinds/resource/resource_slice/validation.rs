//! Validation of `ResourceSlice`s: pool, nodes, devices with their attributes, capacities and taints.
//!
//! Behaviour: `pkg/apis/resource/validation/validation.go`, compared with kube-apiserver 1.37.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    kinds::resource::{
        resource_slice::request_policy,
        validation::{bindings, taint},
    },
    names::NameRule,
    validation::{
        affinity, each, entries,
        format::{driver, pool_name, qualified},
        unique,
    },
};

/// Maximum number of devices of a slice (`ResourceSliceMaxDevices`). A driver with more publishes
/// several slices.
const DEVICES_MAX: usize = 128;
/// Maximum number of devices of a slice in which a device has taints, lists as attributes, or
/// consumes counters (`ResourceSliceMaxDevicesWithTaintsOrConsumesCounters`).
const DEVICES_WITH_MORE_MAX: usize = 64;
/// Longest string or version of an attribute, in bytes (`DeviceAttributeMaxValueLength`).
const TEXT_LEN_MAX: usize = 64;
/// Detail of the error about a slice that specifies the nodes of its devices not at all, or more than once.
const NODES: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

/// The level that selects the nodes from which a device can be reached.
#[derive(Clone, Copy)]
enum NodeSelection {
    /// The slice selects the nodes of all its devices.
    PerSlice,
    /// Each device selects its own nodes (`perDeviceNodeSelection`).
    PerDevice,
}

impl NodeSelection {
    /// Returns the level that the spec of a slice chooses.
    fn of(spec: &Value) -> Self {
        if spec["perDeviceNodeSelection"] == true { Self::PerDevice } else { Self::PerSlice }
    }
}

/// Validates a slice (`ValidateResourceSlice`).
///
/// | field | rule |
/// |---|---|
/// | `driver`, `pool` | see `driver` in `resource/validation` and `pool` |
/// | `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` | exactly one |
/// | `devices`, `sharedCounters` | not both in one slice |
/// | `devices` | at most 128, or 64 with taints or counters; names are unique |
///
/// A list of devices that is too long is not validated further.
pub(crate) fn slice(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    driver(&spec["driver"], "spec.driver", errors);
    pool(&spec["pool"], errors);
    nodes(spec, errors);
    let (devices, counters) = (&spec["devices"], &spec["sharedCounters"]);
    if devices.is_array() && counters.is_array() {
        errors.invalid("spec", &"".into(), "only one of `sharedCounters` or `devices` is allowed");
    }
    let lists =
        |attribute: &Value| ["bools", "ints", "strings", "versions"].iter().any(|list| !attribute[*list].is_null());
    let has_more = |device: &Value| {
        ["taints", "consumesCounters"].iter().any(|field| entries(&device[*field]).count() > 0)
            || pairs(&device["attributes"]).any(|(_, attribute)| lists(attribute))
    };
    let most = if entries(devices).any(|(_, item)| has_more(item)) { DEVICES_WITH_MORE_MAX } else { DEVICES_MAX };
    let selection = NodeSelection::of(spec);
    let found = entries(devices).count();
    if found > most {
        errors.leave_out("spec.devices[");
        return errors.too_many("spec.devices", found, most);
    }
    each(devices, "spec.devices", errors, |item, path, errors| device(item, selection, path, errors));
    unique(devices, "spec.devices", errors, |item| &item["name"]);
}

/// Validates the pool: its name, the number of its slices, and its generation, which grows with
/// each change of the pool.
fn pool(pool: &Value, errors: &mut Errors) {
    pool_name(&pool["name"], "spec.pool.name", errors);
    let number = |field: &str| pool[field].as_i64().unwrap_or_default();
    if number("resourceSliceCount") <= 0 {
        let count = number("resourceSliceCount").into();
        errors.invalid("spec.pool.resourceSliceCount", &count, "must be greater than zero");
    }
    if number("generation") < 0 {
        errors.invalid("spec.pool.generation", &pool["generation"], "must be greater than or equal to zero");
    }
}

/// Validates from which nodes the devices can be reached. A node selector has exactly one term.
fn nodes(spec: &Value, errors: &mut Errors) {
    let is_per_device = flag(&spec["perDeviceNodeSelection"], "spec.perDeviceNodeSelection", errors);
    match node_fields(spec, "spec", errors) + usize::from(is_per_device) {
        0 => errors.required("spec", NODES),
        1 => {}
        _ => errors.invalid_as_such("spec", NODES),
    }
    let terms = &spec["nodeSelector"]["nodeSelectorTerms"];
    if !spec["nodeSelector"].is_null() && entries(terms).count() != 1 {
        let detail = "must have exactly one node selector term";
        errors.invalid("spec.nodeSelector.nodeSelectorTerms", terms, detail);
    }
}

/// Validates the fields about nodes that both a slice and a device have. Returns the number of those that are set.
fn node_fields(object: &Value, path: &str, errors: &mut Errors) -> usize {
    let name_path = format!("{path}.nodeName");
    let has_name = match object["nodeName"].as_str() {
        None => false,
        Some("") => {
            errors.invalid(&name_path, &"".into(), "must be absent or the name of a node");
            false
        }
        Some(_) => {
            errors.name(&name_path, &object["nodeName"], NameRule::Subdomain);
            true
        }
    };
    let selector = &object["nodeSelector"];
    if !selector.is_null() {
        affinity::node_selector(selector, &format!("{path}.nodeSelector"), errors);
    }
    let has_all = flag(&object["allNodes"], &format!("{path}.allNodes"), errors);
    [has_name, !selector.is_null(), has_all].into_iter().filter(|is_set| *is_set).count()
}

/// Validates a flag that is `true` or absent, and returns it. `false` is invalid.
fn flag(value: &Value, path: &str, errors: &mut Errors) -> bool {
    if value == false {
        errors.invalid(path, value, "must be absent or true");
    }
    value == true
}

/// Validates a device: name, attributes, capacities, taints, nodes and binding conditions.
///
/// A request policy is only for devices that several claims can share (`allowMultipleAllocations`).
fn device(device: &Value, selection: NodeSelection, path: &str, errors: &mut Errors) {
    errors.name(&format!("{path}.name"), &text(&device["name"]).into(), NameRule::Label);
    for (name, value) in pairs(&device["attributes"]) {
        let path = format!("{path}.attributes");
        qualified(&name.into(), &path, errors);
        attribute(value, &format!("{path}[{name}]"), errors);
    }
    for (name, capacity) in pairs(&device["capacity"]) {
        let path = format!("{path}.capacity");
        qualified(&name.into(), &path, errors);
        let (policy, path) = (&capacity["requestPolicy"], format!("{path}[{name}].requestPolicy"));
        match device["allowMultipleAllocations"] == true {
            _ if policy.is_null() => {}
            false => errors.forbidden(&path, "allowMultipleAllocations must be true"),
            true => request_policy::policy(policy, &capacity["value"], &path, errors),
        }
    }
    for (index, item) in entries(&device["taints"]) {
        taint(item, &format!("{path}.taints[{index}]"), errors);
    }
    match selection {
        NodeSelection::PerSlice => no_device_nodes(device, path, errors),
        NodeSelection::PerDevice => device_nodes(device, path, errors),
    }
    bindings(device, path, errors);
}

/// The error if `perDeviceNodeSelection` is set and a device does not select its nodes.
const NODES_OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                               `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Validates that a device selects no nodes.
fn no_device_nodes(device: &Value, path: &str, errors: &mut Errors) {
    if ["nodeName", "nodeSelector", "allNodes"].iter().any(|field| !device[*field].is_null()) {
        let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in \
                      the ResourceSlice spec";
        errors.invalid(path, &Value::Null, detail);
    }
}

/// Validates that a device selects its nodes in exactly one way.
fn device_nodes(device: &Value, path: &str, errors: &mut Errors) {
    match node_fields(device, path, errors) {
        0 => errors.required(path, NODES_OF_DEVICE),
        1 => {}
        _ => errors.invalid_as_such(path, NODES_OF_DEVICE),
    }
}

/// Validates the value of an attribute.
///
/// A version is one of semver 2.0.0, which CEL expressions compare. Numbers and booleans have no
/// further rules.
fn attribute(value: &Value, path: &str, errors: &mut Errors) {
    if text(&value["string"]).len() > TEXT_LEN_MAX {
        errors.too_long(&format!("{path}.string"), TEXT_LEN_MAX);
    }
    if let Some(version) = value["version"].as_str() {
        let path = format!("{path}.version");
        if !is_semver(version) {
            errors.invalid(&path, &value["version"], "must be a string compatible with semver.org spec 2.0.0");
        }
        if version.len() > TEXT_LEN_MAX {
            errors.too_long(&path, TEXT_LEN_MAX);
        }
    }
}

/// Returns `true` for a version of <https://semver.org>, 2.0.0.
///
/// Numbers have no leading zeros; pre-release and build may follow, as in `1.2.3-rc.1+build.5`.
fn is_semver(version: &str) -> bool {
    let (version, build) = version.split_once('+').map_or((version, None), |(version, build)| (version, Some(build)));
    let (numbers, before) = version.split_once('-').map_or((version, None), |(numbers, rest)| (numbers, Some(rest)));
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && before.is_none_or(|rest| rest.split('.').all(|part| is_word(part) && (!all_digits(part) || is_number(part))))
        && build.is_none_or(|rest| rest.split('.').all(is_word))
}
