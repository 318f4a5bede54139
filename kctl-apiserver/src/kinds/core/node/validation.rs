//! Validation of Nodes and of their statuses (`ValidateNode`).
//!
//! Upstream: `pkg/apis/core/validation/validation.go`. Names of fields in errors are those of
//! upstream, even where the object has no such field.

use serde_json::Value;

use crate::{
    field_errors::{Errors, pairs, text},
    names::check_label_value,
    validation::{address, declared, entries, resources},
};

/// Maximum number of Pod ranges of a node: one of each IP family.
const RANGES_MAX: usize = 2;
/// Maximum length of the name of a declared feature, in bytes (`DNS1123SubdomainMaxLength`).
const FEATURE_LEN_MAX: usize = 253;

/// Validates swap and Pod ranges of a new node. The caller validates those of an update.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    swap(&object["status"]["nodeInfo"]["swap"]["capacity"], errors);
    ranges(&object["spec"]["podCIDRs"], errors);
}

/// Validates taints, amounts of resources and declared features of a node.
///
/// Errors about taints are at `metadata.taints`, though the field is `spec.taints`.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    taints(&object["spec"]["taints"], "metadata.taints", errors);
    for part in ["capacity", "allocatable"] {
        for (name, amount) in pairs(&object["status"][part]) {
            resources::value(name, amount, &format!("status.{part}.{name}"), errors);
        }
    }
    features(&object["status"]["declaredFeatures"], errors);
}

/// Validates that a swap capacity is above 0 bytes (`FieldValueInvalid`).
pub(crate) fn swap(capacity: &Value, errors: &mut Errors) {
    if capacity.as_i64().is_some_and(|bytes| bytes <= 0) {
        // kube-apiserver reports this path, though the field does not exist.
        errors.invalid("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero");
    }
}

/// Validates a Node when its kubelet writes the status.
pub(crate) fn validate_status(object: &Value, errors: &mut Errors) {
    validate(object, errors);
    addresses(object, errors);
}

/// Validates that an address is listed once per type (`FieldValueDuplicate`); the same address may have two types.
pub(crate) fn addresses(object: &Value, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (index, address) in entries(&object["status"]["addresses"]) {
        let (kind, address) = (text(&address["type"]), text(&address["address"]));
        if seen.contains(&(kind, address)) {
            errors.duplicate(&format!("status.addresses[{index}]"));
        }
        seen.push((kind, address));
    }
}

/// Validates `status.declaredFeatures`: sorted paths of words (`nodeDeclaredFeatureRegexp`).
///
/// Each name is a path such as `MyFeature/subFeature`. The list is sorted and has no duplicates; an
/// error about the order is at the second of the two names.
fn features(list: &Value, errors: &mut Errors) {
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let names: Vec<&str> = entries(list).map(|(_, name)| text(name)).collect();
    for (index, name) in names.iter().enumerate() {
        let path_of = |index: usize| format!("status.declaredFeatures[{index}]");
        let is_path = name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_word);
        if name.len() > FEATURE_LEN_MAX || !is_path {
            let detail = format!(
                "must be words separated by slashes, such as MyFeature/part, of at most {FEATURE_LEN_MAX} bytes"
            );
            errors.invalid(&path_of(index), &(*name).into(), &detail);
        }
        match names.get(index + 1) {
            Some(next) if next == name => errors.duplicate(&path_of(index + 1)),
            Some(next) if next < name => {
                errors.invalid(&path_of(index + 1), &(*next).into(), "list must be sorted alphabetically");
            }
            _ => {}
        }
    }
}

/// Validates `spec.podCIDRs`: valid ranges, at most one of each IP family (`FieldValueInvalid`).
pub(crate) fn ranges(ranges: &Value, errors: &mut Errors) {
    let path = "spec.podCIDRs";
    for (index, range) in entries(ranges) {
        address::legacy_range(range, &format!("{path}[{index}]"), errors);
    }
    let families: Vec<bool> =
        entries(ranges).filter_map(|(_, range)| address::range(text(range))).map(|(ip, _)| ip.is_ipv4()).collect();
    let are_of_one = families.len() > 1 && families.iter().all(|family| *family == families[0]);
    if are_of_one || families.len() > RANGES_MAX {
        errors.invalid(path, ranges, "may specify no more than one CIDR for each IP family");
    }
}

/// Validates that `podCIDRs` do not change once set, and `externalID` never (`FieldValueForbidden`).
///
/// `providerID` may not be removed (`FieldValueInvalid`); a tag of the API makes it immutable. Both may be set later,
/// because a cloud controller sets them after the kubelet has registered the node.
pub(crate) fn immutable_fields(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    if was["podCIDRs"].is_array() && was["podCIDRs"] != is["podCIDRs"] {
        errors.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
    }
    if !text(&was["providerID"]).is_empty() && text(&is["providerID"]).is_empty() {
        errors.invalid("spec.providerID", &Value::Null, "field cannot be cleared once set");
    }
    if was["externalID"] != is["externalID"] {
        errors.forbidden("spec.externalID", "may not be updated");
    }
}

/// Validates taints: key, value, effect, and uniqueness by key and effect (`FieldValueDuplicate`).
///
/// `path` is the field path in errors. The values of `effect` are those of the schema: `NoSchedule`, `PreferNoSchedule`
/// and `NoExecute`. A key may have one taint for each effect.
fn taints(list: &Value, path: &str, errors: &mut Errors) {
    let mut seen = Vec::new();
    for (index, taint) in entries(list) {
        let path = format!("{path}[{index}]");
        errors.qualified_name(&format!("{path}.key"), text(&taint["key"]));
        if let Some(message) = check_label_value(text(&taint["value"])) {
            errors.invalid(&format!("{path}.value"), &taint["value"], message);
        }
        let effects = declared::values("core.v1.Taint", "effect");
        errors.required_one_of(&format!("{path}.effect"), &taint["effect"], &effects);
        let key = (text(&taint["effect"]), text(&taint["key"]));
        if seen.contains(&key) {
            errors.duplicate(&path);
        }
        seen.push(key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use crate::{field_errors::Errors, kinds::core::node::KIND};

    #[test]
    fn update_validates_each_rule_once() {
        let node = json!({
            "spec": { "taints": [{ "key": "a b", "effect": "NoSchedule" }] },
            "status": { "capacity": { "cpu": "-1" }, "declaredFeatures": ["lower"] },
        });
        let errors = Errors::collect(|errors| {
            (KIND.validation.validate)(&node, errors);
            (KIND.validation.validate_update)(&node, &node, errors);
        });
        let fields: BTreeSet<_> = errors.iter().map(|error| &error.field).collect();
        assert_eq!((errors.len(), fields.len()), (3, 3), "{errors:?}");
    }
}
