//! Validation of `ResourceSlice`s: pool, nodes, devices with their attributes, capacities and taints.
//!
//! Behaviour: `pkg/apis/resource/validation/validation.go`, compared with kube-apiserver 1.37.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, pairs},
    json_path::entries,
    kinds::resource::{
        resource_slice::request_policy,
        validation::{validate_binding_conditions, validate_taint},
    },
    names::NameRule,
    validation::{
        affinity,
        format::{validate_driver_name, validate_pool_name, validate_qualified_name},
    },
};

/// Maximum number of devices of a slice (`ResourceSliceMaxDevices`). A driver with more publishes
/// several slices.
const DEVICES_MAX: usize = 128;
/// Maximum number of devices of a slice in which a device has taints, lists as attributes, or
/// consumes counters (`ResourceSliceMaxDevicesWithAdvancedFeatures`).
const DEVICES_WITH_MORE_MAX: usize = 64;
/// Longest string or version of an attribute, in bytes (`DeviceAttributeMaxValueLength`).
const TEXT_LEN_MAX: usize = 64;
/// Detail of the error about a slice that specifies the nodes of its devices not at all, or more than once.
const NODES: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
/// The error if `perDeviceNodeSelection` is set and a device does not select its nodes.
const NODES_OF_DEVICE: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                               `perDeviceNodeSelection` is set to true in the ResourceSlice spec";

/// Validates a slice (`ValidateResourceSlice`). A list of devices that is too long is not validated further.
pub(crate) fn validate_slice(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (devices, counters) = (spec.at("devices"), spec.at("sharedCounters"));
    spec.at("driver").check(validate_driver_name);
    validate_pool(&spec.at("pool"));
    validate_nodes(&spec);
    let has_both = devices.is_array() && counters.is_array();
    spec.invalid_without_value_if(has_both, "only one of `sharedCounters` or `devices` is allowed");
    let lists =
        |attribute: &Value| ["bools", "ints", "strings", "versions"].iter().any(|list| !attribute[*list].is_null());
    let has_more = |device: &Value| {
        ["taints", "consumesCounters"].iter().any(|field| entries(&device[*field]).next().is_some())
            || pairs(&device["attributes"]).any(|(_, attribute)| lists(attribute))
    };
    let most = if entries(&devices).any(|(_, item)| has_more(item)) { DEVICES_WITH_MORE_MAX } else { DEVICES_MAX };
    if devices.items().count() > most {
        devices.discard_errors_below();
        return devices.max_items(most);
    }
    devices.items().for_each(|item| validate_device(&spec, &item));
    devices.unique(|item| &item["name"]);
}

/// Validates the pool. Its generation grows with each change of the pool.
fn validate_pool(pool: &Field<'_>) {
    pool.at("name").check(validate_pool_name);
    let count = pool.at("resourceSliceCount");
    count.invalid_if(count.as_i64().unwrap_or_default() <= 0, "must be greater than zero");
    pool.at("generation").not_negative();
}

/// Validates from which nodes the devices can be reached. A node selector has exactly one term.
fn validate_nodes(spec: &Field<'_>) {
    let is_per_device = flag(&spec.at("perDeviceNodeSelection"));
    require_exactly_one(spec, node_fields(spec) + usize::from(is_per_device), NODES);
    let selector = spec.at("nodeSelector");
    let terms = selector.at("nodeSelectorTerms");
    let has_one = entries(&terms).count() == 1;
    terms.invalid_if(!selector.is_null() && !has_one, "must have exactly one node selector term");
}

/// Reports a slice or device that selects its nodes not at all (`FieldValueRequired`) or more than once.
fn require_exactly_one(selecting: &Field<'_>, n_given: usize, detail: &str) {
    selecting.required_with_if(n_given == 0, detail);
    selecting.invalid_without_value_if(n_given > 1, detail);
}

/// Validates the fields about nodes that both a slice and a device have. Returns the number of those that are set.
fn node_fields(object: &Field<'_>) -> usize {
    let (name, selector) = (object.at("nodeName"), object.at("nodeSelector"));
    // The empty string is invalid, and does not count.
    name.when_present(|name| name.name(NameRule::Subdomain));
    selector.when_present(affinity::node_selector);
    let given = [!name.is_empty(), !selector.is_null(), flag(&object.at("allNodes"))];
    given.into_iter().filter(|is_set| *is_set).count()
}

/// Validates a flag that is `true` or absent, and returns it. `false` is invalid.
fn flag(flag: &Field<'_>) -> bool {
    flag.invalid_if(flag.as_bool() == Some(false), "must be absent or true");
    flag.as_bool() == Some(true)
}

/// Validates a device. A request policy is only for devices that several claims can share (`allowMultipleAllocations`).
/// `spec` is the spec of the slice.
fn validate_device(spec: &Value, device: &Field<'_>) {
    device.at("name").name(NameRule::Label);
    let (attributes, capacity) = (device.at("attributes"), device.at("capacity"));
    for (name, value) in attributes.entries() {
        attributes.with(&name.into()).check(validate_qualified_name);
        validate_attribute(&value);
    }
    for (name, amount) in capacity.entries() {
        capacity.with(&name.into()).check(validate_qualified_name);
        let policy = amount.at("requestPolicy");
        if device["allowMultipleAllocations"] == true {
            request_policy::validate(&policy, &amount["value"]);
        } else {
            policy.forbidden_if(!policy.is_null(), "allowMultipleAllocations must be true");
        }
    }
    device.at("taints").items().for_each(|item| validate_taint(&item));
    if spec["perDeviceNodeSelection"] == true {
        require_exactly_one(device, node_fields(device), NODES_OF_DEVICE);
    } else if ["nodeName", "nodeSelector", "allNodes"].iter().any(|field| !device[*field].is_null()) {
        device.invalid_without_value("may only select nodes if the slice has `perDeviceNodeSelection`");
    }
    validate_binding_conditions(device);
}

/// Validates the value of an attribute. A version is one of semver 2.0.0, which CEL expressions compare.
fn validate_attribute(value: &Field<'_>) {
    let (string, version) = (value.at("string"), value.at("version"));
    let is_semver = version.as_str().is_none_or(|version| SEMVER.is_match(version));
    version.invalid_if(!is_semver, "must be a version of semver.org 2.0.0, such as 1.2.3-rc.1");
    string.max_bytes(TEXT_LEN_MAX);
    version.max_bytes(TEXT_LEN_MAX);
}

/// A version of <https://semver.org>, 2.0.0, such as `1.2.3-rc.1+build.5`, by the expression that the page suggests.
static SEMVER: LazyLock<Regex> = LazyLock::new(|| {
    let number = "(?:0|[1-9][0-9]*)";
    let identifier = format!("(?:{number}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)");
    let word = "[0-9A-Za-z-]+";
    let core = format!(r"{number}\.{number}\.{number}");
    let rest = format!(r"(?:-{identifier}(?:\.{identifier})*)?(?:\+{word}(?:\.{word})*)?");
    Regex::new(&format!("^{core}{rest}$")).expect("the pattern is valid")
});
