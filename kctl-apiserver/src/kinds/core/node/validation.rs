//! Validation of Nodes and of their statuses (`ValidateNode`).
//!
//! Upstream: `pkg/apis/core/validation/validation.go`. Errors name the same fields as upstream, even where the object
//! has no such field.

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    validation::{
        address::{self, Cidr},
        declared, resources,
    },
};

/// Maximum number of Pod ranges of a node: one of each IP family.
const RANGES_MAX: usize = 2;
/// Maximum length of the name of a declared feature, in bytes (`DNS1123SubdomainMaxLength`).
const FEATURE_LEN_MAX: usize = 253;

/// Validates swap and Pod ranges of a new node. An update validates them again.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let node = Field::new(object, "", errors);
    validate_swap(&node);
    validate_ranges(&node.at("spec").at("podCIDRs"));
}

/// Validates an update (`ValidateNodeUpdate`); the rules of every node run before. Writes of the status skip it.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    validate_create(new, errors);
    let node = Field::new(new, "", errors);
    validate_addresses(&node);
    validate_immutable_fields(&old["spec"], &node.at("spec"));
}

/// Validates a Node when its kubelet writes the status.
pub(crate) fn validate_status(object: &Value, errors: &mut Errors) {
    let node = Field::new(object, "", errors);
    validate_rules(&node);
    validate_addresses(&node);
}

/// Validates taints, amounts of resources and declared features of a node.
///
/// Errors about taints are at `metadata.taints`, though the field is `spec.taints`.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    validate_rules(&Field::new(object, "", errors));
}

fn validate_rules(node: &Field<'_>) {
    validate_taints(&node.at("metadata").at_with("taints", &node["spec"]["taints"]));
    let status = node.at("status");
    for amounts in [status.at("capacity"), status.at("allocatable")] {
        for (name, _) in amounts.entries() {
            resources::validate_value(name, &amounts.at(name));
        }
    }
    validate_features(&status.at("declaredFeatures"));
}

/// Validates that a swap capacity is above 0 bytes (`FieldValueInvalid`).
fn validate_swap(node: &Field<'_>) {
    let capacity = &node["status"]["nodeInfo"]["swap"]["capacity"];
    // kube-apiserver reports this path, though the field does not exist.
    node.at("metadata").at_with("nodeSwapStatus.capacity", capacity).at_least(1);
}

/// Validates that an address is listed once per type (`FieldValueDuplicate`); the same address may have two types.
fn validate_addresses(node: &Field<'_>) {
    let addresses = node.at("status").at("addresses");
    addresses.unique_by(|address| (text(&address["type"]), text(&address["address"])));
}

/// Validates `status.declaredFeatures`: sorted paths of words, such as `MyFeature/subFeature`
/// (`nodeDeclaredFeatureRegexp`). An error about the order is at the second of the two names.
fn validate_features(list: &Field<'_>) {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let mut previous = None;
    for feature in list.items() {
        let name = feature.text();
        let is_path = name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_word);
        let is_wrong = !is_path || name.len() > FEATURE_LEN_MAX || Some(name) < previous;
        feature.invalid_if(
            is_wrong,
            format_args!(
                "must be words separated by slashes, such as MyFeature/part, of at most {FEATURE_LEN_MAX} bytes, in \
                 alphabetical order"
            ),
        );
        feature.duplicate_if(previous == Some(name));
        previous = Some(name);
    }
}

/// Validates `spec.podCIDRs`: valid ranges, at most one of each IP family (`FieldValueInvalid`).
fn validate_ranges(ranges: &Field<'_>) {
    ranges.items().for_each(|range| range.check(address::legacy_range));
    let families: Vec<bool> =
        ranges.items().filter_map(|range| Cidr::parse(range.text())).map(|range| range.address.is_ipv4()).collect();
    let are_of_one = families.len() > 1 && families.iter().all(|family| *family == families[0]);
    let detail = "may specify no more than one CIDR for each IP family";
    ranges.invalid_if(are_of_one || families.len() > RANGES_MAX, detail);
}

/// Validates that `podCIDRs` do not change once set, and `externalID` never. `providerID` may not be removed; a tag of
/// the API makes it immutable. A cloud controller sets ranges and `providerID` after the kubelet has registered the
/// node.
fn validate_immutable_fields(was: &Value, spec: &Field<'_>) {
    let [ranges, provider, external] = ["podCIDRs", "providerID", "externalID"].map(|name| spec.at(name));
    let is_changed = was["podCIDRs"].is_array() && *ranges != was["podCIDRs"];
    ranges.forbidden_if(is_changed, "may not change once set");
    let is_cleared = !text(&was["providerID"]).is_empty() && provider.is_empty();
    provider.invalid_if(is_cleared, "field cannot be cleared once set");
    external.forbidden_if(*external != was["externalID"], "may not be updated");
}

/// Validates taints. A key may have one taint for each effect.
fn validate_taints(taints: &Field<'_>) {
    let effects = declared::values("core.v1.Taint", "effect");
    for taint in taints.items() {
        taint.at("key").qualified_name();
        taint.at("value").label_value();
        taint.at("effect").required_one_of(&effects);
    }
    taints.unique_by(|taint| (text(&taint["effect"]), text(&taint["key"])));
}
