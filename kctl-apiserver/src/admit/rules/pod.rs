//! Rules of pods and of the templates of pods.

use serde_json::Value;

use super::{Errors, container, entries, pairs, text, volume};
use crate::admit::names::NameRule;

pub(super) fn pod(object: &Value, errors: &mut Errors) {
    spec(&object["spec"], "spec", errors);
}

/// A template at a place, such as `spec.template`.
pub(super) fn template(template: &Value, at: &str, errors: &mut Errors) {
    let meta = &template["metadata"];
    errors.labels(&format!("{at}.labels"), &meta["labels"]);
    errors.annotations(&format!("{at}.annotations"), &meta["annotations"]);
    spec(&template["spec"], &format!("{at}.spec"), errors);
}

fn spec(spec: &Value, at: &str, errors: &mut Errors) {
    let field = |name: &str| format!("{at}.{name}");
    let volumes = volume::volumes(&spec["volumes"], &field("volumes"), errors);
    container::containers(spec, at, &volumes, errors);
    errors.one_of(&field("restartPolicy"), &spec["restartPolicy"], &["Always", "OnFailure", "Never"]);
    dns(spec, at, errors);
    errors.labels(&field("nodeSelector"), &spec["nodeSelector"]);
    let names = [("serviceAccountName", NameRule::Subdomain), ("nodeName", NameRule::Subdomain)];
    for (name, rule) in names {
        if !text(&spec[name]).is_empty() {
            errors.name(&field(name), &spec[name], rule);
        }
    }
    if spec["activeDeadlineSeconds"].is_number() {
        let most = i64::from(i32::MAX);
        errors.in_range(&field("activeDeadlineSeconds"), &spec["activeDeadlineSeconds"], 1, most);
    }
    for name in ["hostname", "subdomain"] {
        if !text(&spec[name]).is_empty() {
            errors.name(&field(name), &spec[name], NameRule::Label);
        }
    }
    for (index, toleration) in entries(&spec["tolerations"]) {
        tolerates(toleration, &format!("{at}.tolerations[{index}]"), errors);
    }
}

fn dns(spec: &Value, at: &str, errors: &mut Errors) {
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.one_of(&format!("{at}.dnsPolicy"), &spec["dnsPolicy"], &policies);
    if spec["dnsPolicy"] == "None" {
        let config = &spec["dnsConfig"];
        if config.is_null() {
            errors.required(&format!("{at}.dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None");
        } else if entries(&config["nameservers"]).next().is_none() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.required(&format!("{at}.dnsConfig.nameservers"), detail);
        }
    }
}

fn tolerates(toleration: &Value, at: &str, errors: &mut Errors) {
    let (key, operator) = (text(&toleration["key"]), text(&toleration["operator"]));
    let operator_at = format!("{at}.operator");
    if !key.is_empty() {
        errors.qualified_name(&format!("{at}.key"), key);
    }
    if key.is_empty() && operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.invalid(&operator_at, &operator.into(), detail);
    }
    let effect = text(&toleration["effect"]);
    if toleration["tolerationSeconds"].is_number() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.invalid(&format!("{at}.effect"), &effect.into(), detail);
    }
    match operator {
        "Exists" if !text(&toleration["value"]).is_empty() => {
            errors.invalid(&operator_at, &toleration["value"], "value must be empty when `operator` is 'Exists'");
        }
        "Exists" => {}
        "" | "Equal" => {
            for message in crate::admit::names::check_label_value(text(&toleration["value"])) {
                errors.invalid(&operator_at, &toleration["value"], &message);
            }
        }
        _ => errors.unsupported(&operator_at, &toleration["operator"].to_string(), &["Equal", "Exists"]),
    }
    if !effect.is_empty() {
        let supported = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
        errors.one_of(&format!("{at}.effect"), &toleration["effect"], &supported);
    }
}

/// Amounts of resources of a container: their names, that they are not negative and that requests are within limits.
pub(super) fn resources(resources: &Value, at: &str, errors: &mut Errors) {
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (part, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in pairs(amounts) {
            let at = format!("{at}.{part}[{name}]");
            resource_name(name, &at, errors);
            if text(amount).starts_with('-') {
                errors.invalid(&at, amount, "must be greater than or equal to 0");
            }
        }
    }
    for (name, amount) in pairs(requests) {
        let is_overcommitted = !name.contains('/') && !name.starts_with("hugepages-");
        let at_requests = format!("{at}.requests");
        match limits.get(name) {
            Some(limit) if is_overcommitted && exceeds(amount, limit) => {
                let detail = format!("must be less than or equal to {name} limit of {}", text(limit));
                errors.invalid(&at_requests, amount, &detail);
            }
            Some(limit) if !is_overcommitted && amount != limit => {
                errors.invalid(&at_requests, amount, &format!("must be equal to {name} limit of {}", text(limit)));
            }
            None if !is_overcommitted => {
                errors.required(&format!("{at}.limits"), "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
}

fn resource_name(name: &str, at: &str, errors: &mut Errors) {
    errors.qualified_name(at, name);
    let is_standard = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    if name.contains('/') || is_standard {
        return;
    }
    errors.invalid(at, &name.into(), "must be a standard resource type or fully qualified");
    errors.invalid(at, &name.into(), "must be a standard resource for containers");
}

/// Whether one amount is more than another.
fn exceeds(one: &Value, other: &Value) -> bool {
    let amounts = [one, other].map(|amount| amount_of(text(amount)));
    matches!(amounts, [Some(one), Some(other)] if one > other)
}

/// An amount as a number; near enough to compare amounts that people write.
fn amount_of(text: &str) -> Option<f64> {
    const UNITS: &[(&str, f64)] = &[
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (digits, factor) = unit.unwrap_or((text, 1.0));
    Some(digits.parse::<f64>().ok()? * factor)
}
