//! Rules of nodes, of the classes of their runtimes, and of namespaces.

use serde_json::{Value, json};

use super::{Errors, address, affinity, declared, entries, pairs, resources, text};
use crate::names::{check_label_value, check_qualified_name};

/// Ranges of addresses for the pods of a node: one of each family.
const RANGES_MAX: usize = 2;
/// In bytes (`DNS1123SubdomainMaxLength`).
const FEATURE_LEN_MAX: usize = 253;

/// A node; of a new one also what stays.
pub(crate) fn node(object: &Value, is_new: bool, errors: &mut Errors) {
    taints(&object["spec"]["taints"], "metadata.taints", errors);
    for part in ["capacity", "allocatable"] {
        for (name, amount) in pairs(&object["status"][part]) {
            resources::value(name, amount, &format!("status.{part}.{name}"), errors);
        }
    }
    if is_new {
        swap(&object["status"]["nodeInfo"]["swap"]["capacity"], errors);
    }
    features(&object["status"]["declaredFeatures"], errors);
    if is_new {
        ranges(&object["spec"]["podCIDRs"], errors);
    }
}

pub(crate) fn swap(capacity: &Value, errors: &mut Errors) {
    if capacity.as_i64().is_some_and(|bytes| bytes <= 0) {
        // There is no such field: the real server names it so.
        errors.invalid("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero");
    }
}

/// What is judged when a kubelet tells of its node, and when the node is changed.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    node(object, false, errors);
    let mut known: Vec<(&str, &str)> = Vec::new();
    for (index, address) in entries(&object["status"]["addresses"]) {
        let (kind, address) = (text(&address["type"]), text(&address["address"]));
        if known.contains(&(kind, address)) {
            let shown = format!("{{\"Type\":{kind:?},\"Address\":{address:?}}}");
            errors.duplicate(&format!("status.addresses[{index}]"), &shown);
        }
        known.push((kind, address));
    }
}

/// What a kubelet can do: paths of words (`nodeDeclaredFeatureRegexp`), in their order.
fn features(list: &Value, errors: &mut Errors) {
    const FORM: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or \
                        MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let names: Vec<&str> = entries(list).map(|(_, name)| text(name)).collect();
    for (index, name) in names.iter().enumerate() {
        let wrong = |why: &str| format!("invalid feature name {name:?}: {why}");
        let at = |index: usize| format!("status.declaredFeatures[{index}]");
        if name.len() > FEATURE_LEN_MAX {
            let why = wrong(&format!("must be no more than {FEATURE_LEN_MAX} characters"));
            errors.invalid(&at(index), &(*name).into(), &why);
        } else if !name.starts_with(|first: char| first.is_ascii_uppercase()) || !name.split('/').all(is_word) {
            errors.invalid(&at(index), &(*name).into(), &wrong(FORM));
        }
        match names.get(index + 1) {
            Some(next) if next == name => errors.duplicate(&at(index + 1), &format!("{next:?}")),
            Some(next) if next < name => {
                errors.invalid(&at(index + 1), &(*next).into(), "list must be sorted alphabetically");
            }
            _ => {}
        }
    }
}

/// The addresses of its pods.
pub(crate) fn ranges(ranges: &Value, errors: &mut Errors) {
    let at = "spec.podCIDRs";
    for (index, range) in entries(ranges) {
        address::legacy_range(range, &format!("{at}[{index}]"), errors);
    }
    let families: Vec<bool> =
        entries(ranges).filter_map(|(_, range)| address::range(text(range))).map(|(ip, _)| ip.is_ipv4()).collect();
    let are_of_one = families.len() > 1 && families.iter().all(|family| *family == families[0]);
    if are_of_one || families.len() > RANGES_MAX {
        errors.invalid(at, ranges, "may specify no more than one CIDR for each IP family");
    }
}

pub(crate) fn runtime_class(object: &Value, errors: &mut Errors) {
    let overhead = json!({ "limits": object["overhead"]["podFixed"] });
    resources::resources(&overhead, "overhead", resources::Asker::Container, &[], errors);
    let scheduling = &object["scheduling"];
    errors.labels("scheduling.nodeSelector", &scheduling["nodeSelector"]);
    let (list, at) = (&scheduling["tolerations"], "scheduling.tolerations");
    affinity::tolerations(list, at, errors);
    let keys = ["key", "operator", "value", "effect"];
    for (index, toleration) in entries(list) {
        let is_same = |other: &Value| keys.iter().all(|key| text(&other[*key]) == text(&toleration[*key]));
        if entries(list).take(index).any(|(_, other)| is_same(other)) {
            let field = |name: &str| Value::from(text(&toleration[name]));
            let shown = format!(
                "{{\"Key\":{},\"Operator\":{},\"Value\":{},\"Effect\":{},\"TolerationSeconds\":{}}}",
                field("key"),
                field("operator"),
                field("value"),
                field("effect"),
                toleration["tolerationSeconds"]
            );
            errors.duplicate(&format!("{at}[{index}]"), &shown);
        }
    }
}

pub(crate) fn kept(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    if was["podCIDRs"].is_array() && was["podCIDRs"] != is["podCIDRs"] {
        errors.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
    }
    if !text(&was["providerID"]).is_empty() && was["providerID"] != is["providerID"] {
        errors.forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
    }
    if was["externalID"] != is["externalID"] {
        errors.forbidden("spec.externalID", "may not be updated");
    }
}

fn taints(list: &Value, at: &str, errors: &mut Errors) {
    let mut known = Vec::new();
    for (index, taint) in entries(list) {
        let at = format!("{at}[{index}]");
        errors.qualified_name(&format!("{at}.key"), text(&taint["key"]));
        let wrong = check_label_value(text(&taint["value"]));
        if !wrong.is_empty() {
            errors.invalid(&format!("{at}.value"), &taint["value"], &wrong.join(";"));
        }
        let effects = declared::values("core.v1.Taint", "effect");
        errors.required_one_of(&format!("{at}.effect"), &taint["effect"], &effects);
        let key = (text(&taint["effect"]), text(&taint["key"]));
        if known.contains(&key) {
            let shown = format!(
                "{{\"Key\":{},\"Value\":{:?},\"Effect\":{},\"TimeAdded\":{}}}: taints must be unique by key and effect pair",
                taint["key"],
                text(&taint["value"]),
                taint["effect"],
                taint["timeAdded"]
            );
            errors.duplicate(&at, &shown);
        }
        known.push(key);
    }
}

pub(crate) fn namespace(object: &Value, errors: &mut Errors) {
    let (phase, is_deleted) = (text(&object["status"]["phase"]), object["metadata"]["deletionTimestamp"].is_string());
    for (_, name) in entries(&object["spec"]["finalizers"]) {
        finalizer(name, "spec.finalizers", errors);
    }
    if !is_deleted && phase != "Active" {
        let detail = "may only be 'Active' if `deletionTimestamp` is empty";
        errors.invalid("status.Phase", &phase.into(), detail);
    } else if is_deleted && phase != "Terminating" {
        let detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
        errors.invalid("status.Phase", &phase.into(), detail);
    }
}

fn finalizer(name: &Value, at: &str, errors: &mut Errors) {
    const STANDARD: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];
    let given = text(name);
    for message in check_qualified_name(given) {
        errors.invalid(at, name, &message);
    }
    if !given.contains('/') && !STANDARD.contains(&given) {
        errors.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified");
    }
}
