//! Validation of `NetworkPolicy` objects.
//!
//! Upstream: `ValidateNetworkPolicySpec` in `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    validation::{address, entries, ports, selector},
};

/// Directions of traffic, each with the field that lists the peers of a rule.
const DIRECTIONS: &[(&str, &str)] = &[("ingress", "from"), ("egress", "to")];

/// Validates a policy: the Pods that it selects, the ports and peers of its rules, and its types.
///
/// Three or more types are reported once at the list; errors about single types are dropped.
pub(crate) fn policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    selector::selector(&spec["podSelector"], "spec.podSelector", errors);
    for (direction, peers) in DIRECTIONS {
        for (index, rule) in entries(&spec[*direction]) {
            let path = format!("spec.{direction}[{index}]");
            for (nth, item) in entries(&rule["ports"]) {
                port(item, &format!("{path}.ports[{nth}]"), errors);
            }
            for (nth, item) in entries(&rule[*peers]) {
                peer(item, &format!("{path}.{peers}[{nth}]"), errors);
            }
        }
    }
    if entries(&spec["policyTypes"]).count() > DIRECTIONS.len() {
        errors.leave_out("spec.policyTypes[");
        errors.invalid("spec.policyTypes", &spec["policyTypes"], "may not specify more than two policyTypes");
    }
}

/// Validates a port by number or name, or a range from `port` to `endPort`. A range needs two
/// numbers.
fn port(port: &Value, path: &str, errors: &mut Errors) {
    let (first, last, end_port_path) = (&port["port"], &port["endPort"], format!("{path}.endPort"));
    let wrong_end = match first {
        Value::Null => Some("may not be specified when `port` is not specified"),
        Value::String(_) => Some("may not be specified when `port` is non-numeric"),
        _ => None,
    };
    if let (Some(why), false) = (wrong_end, last.is_null()) {
        errors.invalid(&end_port_path, last, why);
    }
    if first.is_null() {
        return;
    }
    ports::number_or_name(first, &format!("{path}.port"), errors);
    if wrong_end.is_none() && !last.is_null() {
        if last.as_i64() < first.as_i64() {
            errors.invalid(&end_port_path, last, "must be greater than or equal to `port`");
        }
        errors.in_range(&end_port_path, last, 1, 65_535);
    }
}

/// Validates a peer: either a block of addresses, or selectors of Pods and namespaces.
///
/// | fields | peers |
/// |---|---|
/// | `podSelector` | Pods of the policy's namespace |
/// | `namespaceSelector` | all Pods of the selected namespaces |
/// | both selectors | selected Pods of the selected namespaces |
/// | `ipBlock` | addresses outside of the cluster; no selector beside it (`FieldValueForbidden`) |
fn peer(peer: &Value, path: &str, errors: &mut Errors) {
    for name in ["podSelector", "namespaceSelector"] {
        selector::selector(&peer[name], &format!("{path}.{name}"), errors);
    }
    let selects = ["podSelector", "namespaceSelector"].iter().any(|name| peer[*name].is_object());
    if peer["ipBlock"].is_object() {
        block(&peer["ipBlock"], &format!("{path}.ipBlock"), errors);
        if selects {
            errors.forbidden(path, "may not specify both ipBlock and another peer");
        }
    } else if !selects {
        errors.required(path, "must specify a peer");
    }
}

/// Validates a block of addresses. Each exception is a strict subset of it. An absent `cidr` is
/// reported by the schema.
fn block(block: &Value, path: &str, errors: &mut Errors) {
    let whole = text(&block["cidr"]);
    if whole.is_empty() {
        return;
    }
    address::legacy_range(&block["cidr"], &format!("{path}.cidr"), errors);
    let Some(whole) = address::range(whole) else { return };
    for (index, part) in entries(&block["except"]) {
        let path = format!("{path}.except[{index}]");
        let before = errors.len();
        address::legacy_range(part, &path, errors);
        if errors.len() == before && address::range(text(part)).is_some_and(|part| !address::is_part(part, whole)) {
            errors.invalid(&path, part, "must be a strict subset of `cidr`");
        }
    }
}
