//! Rules of ingresses, network policies and endpoint slices.

use serde_json::Value;

use super::{Errors, entries, selector, text};
use crate::admit::names::NameRule;

pub(super) fn ingress(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let rules: Vec<(usize, &Value)> = entries(&spec["rules"]).collect();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        errors.invalid("spec", &Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if spec["defaultBackend"].is_object() {
        backend(&spec["defaultBackend"], "spec.defaultBackend", errors);
    }
    for (index, rule) in rules {
        let at = format!("spec.rules[{index}]");
        let host = text(&rule["host"]);
        if host.parse::<std::net::IpAddr>().is_ok() {
            errors.invalid(&format!("{at}.host"), &rule["host"], "must be a DNS name, not an IP address");
        } else if !host.is_empty() && !host.starts_with("*.") {
            errors.name(&format!("{at}.host"), &rule["host"], NameRule::Subdomain);
        }
        if rule["http"].is_object() {
            paths(&rule["http"]["paths"], &format!("{at}.http.paths"), errors);
        }
    }
}

fn paths(list: &Value, at: &str, errors: &mut Errors) {
    if entries(list).next().is_none() {
        errors.required(at, "");
    }
    for (index, path) in entries(list) {
        let at = format!("{at}[{index}]");
        let text_of_path = text(&path["path"]);
        match text(&path["pathType"]) {
            "" => {
                errors.required(&format!("{at}.pathType"), "pathType must be specified");
                // Without it nothing says how to read the rest.
                continue;
            }
            "Exact" | "Prefix" if !text_of_path.starts_with('/') => {
                errors.invalid(&format!("{at}.path"), &path["path"], "must be an absolute path");
            }
            "ImplementationSpecific" if !text_of_path.is_empty() && !text_of_path.starts_with('/') => {
                errors.invalid(&format!("{at}.path"), &path["path"], "must be an absolute path");
            }
            _ => {
                let supported = ["Exact", "ImplementationSpecific", "Prefix"];
                errors.one_of(&format!("{at}.pathType"), &path["pathType"], &supported);
            }
        }
        backend(&path["backend"], &format!("{at}.backend"), errors);
    }
}

fn backend(backend: &Value, at: &str, errors: &mut Errors) {
    let service = &backend["service"];
    match (service.is_object(), backend["resource"].is_object()) {
        (true, true) => errors.shown(at, "\"\"", "cannot set both resource and service backends"),
        (false, true) => {}
        (false, false) => errors.required(at, "port name or number is required"),
        (true, false) => {
            errors.required_name(&format!("{at}.service.name"), &service["name"], NameRule::Label1035);
            let (name, number) = (text(&service["port"]["name"]), service["port"]["number"].as_i64().unwrap_or(0));
            if !name.is_empty() && number != 0 {
                errors.invalid(at, &"".into(), "cannot set both port name & port number");
            } else if name.is_empty() && number == 0 {
                errors.required(at, "port name or number is required");
            } else if number != 0 {
                errors.in_range(&format!("{at}.service.port.number"), &number.into(), 1, 65_535);
            }
        }
    }
}

pub(super) fn policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    selector::selector(&spec["podSelector"], "spec.podSelector", errors);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in entries(&spec[direction]) {
            for (nth, peer) in entries(&rule[peers]) {
                let kinds = ["podSelector", "namespaceSelector", "ipBlock"];
                if kinds.iter().all(|kind| peer[*kind].is_null()) {
                    errors.required(&format!("spec.{direction}[{index}].{peers}[{nth}]"), "must specify a peer");
                }
            }
        }
    }
    for (index, kind) in entries(&spec["policyTypes"]) {
        errors.one_of(&format!("spec.policyTypes[{index}]"), kind, &["Ingress", "Egress"]);
    }
}

pub(super) fn ingress_class(object: &Value, errors: &mut Errors) {
    if text(&object["spec"]["controller"]).is_empty() {
        errors.required("spec.controller", "");
    }
}

pub(super) fn endpoints(object: &Value, errors: &mut Errors) {
    for (index, subset) in entries(&object["subsets"]) {
        for list in ["addresses", "notReadyAddresses"] {
            for (nth, address) in entries(&subset[list]) {
                let ip = &address["ip"];
                if text(ip).parse::<std::net::IpAddr>().is_err() {
                    let at = format!("subsets[{index}].{list}[{nth}].ip");
                    errors.invalid(&at, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
                    errors.invalid(&at, ip, "must be a valid IP address");
                }
            }
        }
    }
}

pub(super) fn endpoint_slice(object: &Value, errors: &mut Errors) {
    let kind = &object["addressType"];
    if text(kind).is_empty() {
        errors.required("addressType", "");
    } else {
        errors.one_of("addressType", kind, &["FQDN", "IPv4", "IPv6"]);
    }
    for (index, port) in entries(&object["ports"]) {
        if !text(&port["name"]).is_empty() {
            errors.name(&format!("ports[{index}].name"), &port["name"], NameRule::Label);
        }
    }
    for (index, endpoint) in entries(&object["endpoints"]) {
        if entries(&endpoint["addresses"]).next().is_none() {
            errors.required(&format!("endpoints[{index}].addresses"), "must contain at least 1 address");
        }
    }
}
