//! Validation of `Ingress` and `IngressClass` objects.
//!
//! Upstream: `pkg/apis/networking/validation/validation.go`.

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{address, declared, entries, ports},
};

/// Detail of the error about a host with `*` (`validation.IsWildcardDNS1123Subdomain`).
const WILDCARD: &str = "must be *. and a DNS subdomain, such as *.example.com";
/// Parts of a path that proxies interpret in different ways, so that a rule could be bypassed.
const UNCLEAR: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
/// Ends of a path that proxies interpret in different ways.
const UNCLEAR_ENDS: &[&str] = &["/..", "/."];

/// Validates an Ingress (`ValidateIngressSpec`).
///
/// | field | rule |
/// |---|---|
/// | `defaultBackend`, `rules` | at least one of them |
/// | `rules[].host` | DNS name, or `*.` and a DNS name; not an IP address |
/// | `rules[].http.paths` | at least one |
/// | `tls[].hosts[]` | as the hosts of rules |
/// | `tls[].secretName`, `ingressClassName` | names of objects, which need not exist |
pub(crate) fn ingress(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let rules: Vec<(usize, &Value)> = entries(&spec["rules"]).collect();
    if rules.is_empty() && spec["defaultBackend"].is_null() {
        errors.invalid("spec", &Value::Null, "either `defaultBackend` or `rules` must be specified");
    }
    if spec["defaultBackend"].is_object() {
        backend(&spec["defaultBackend"], "spec.defaultBackend", errors);
    }
    for (index, rule) in rules {
        let path = format!("spec.rules[{index}]");
        if address::parse(text(&rule["host"])).is_some() {
            errors.invalid(&format!("{path}.host"), &rule["host"], "must be a DNS name, not an IP address");
        }
        if !text(&rule["host"]).is_empty() {
            host(&rule["host"], &format!("{path}.host"), errors);
        }
        if rule["http"].is_object() {
            paths(&rule["http"]["paths"], &format!("{path}.http.paths"), errors);
        }
    }
    for (index, tls) in entries(&spec["tls"]) {
        let path = format!("spec.tls[{index}]");
        for (nth, name) in entries(&tls["hosts"]) {
            host(name, &format!("{path}.hosts[{nth}]"), errors);
        }
        if !text(&tls["secretName"]).is_empty() {
            errors.name(&format!("{path}.secretName"), &tls["secretName"], NameRule::Subdomain);
        }
    }
    if !spec["ingressClassName"].is_null() {
        errors.name("spec.ingressClassName", &spec["ingressClassName"], NameRule::Subdomain);
    }
}

/// Validates that annotation and field of a new Ingress name the same class.
///
/// An update is not validated, so that old objects with both can still be changed.
pub(crate) fn new_ingress(object: &Value, errors: &mut Errors) {
    /// The annotation that named the class before `ingressClassName`.
    const CLASS: &str = "kubernetes.io/ingress.class";
    let (annotated, class) = (&object["metadata"]["annotations"][CLASS], &object["spec"]["ingressClassName"]);
    if !annotated.is_null() && !class.is_null() && annotated != class {
        let detail = "must match `ingressClassName` when both are specified";
        errors.invalid(&format!("annotations.{CLASS}"), annotated, detail);
    }
}

/// Validates a host: a DNS subdomain, or `*.` and a subdomain, which stands for all names one label
/// below it.
fn host(name: &Value, path: &str, errors: &mut Errors) {
    let host = text(name);
    if !host.contains('*') {
        return errors.name(path, name, NameRule::Subdomain);
    }
    let is_wildcard = host.strip_prefix("*.").is_some_and(|rest| NameRule::Subdomain.check(rest).is_none());
    if !is_wildcard {
        errors.invalid(path, name, WILDCARD);
    }
}

/// Validates the paths of a rule. A path without `pathType` is not validated further.
fn paths(list: &Value, field_path: &str, errors: &mut Errors) {
    if entries(list).next().is_none() {
        errors.required(field_path, "");
    }
    for (index, path) in entries(list) {
        let field_path = format!("{field_path}[{index}]");
        if path["pathType"].is_null() {
            // The path cannot be interpreted without a `pathType`.
            errors.required(&format!("{field_path}.pathType"), "pathType must be specified");
            continue;
        }
        one_path(path, &field_path, errors);
        backend(&path["backend"], &format!("{field_path}.backend"), errors);
    }
}

/// Validates a path. For `Exact` and `Prefix` it is absolute and unambiguous; for `ImplementationSpecific` it may be
/// empty.
///
/// | `pathType` | matches | rule for `path` |
/// |---|---|---|
/// | `Exact` | this path only | absolute, without `//`, `/./`, `/../` and encoded slashes |
/// | `Prefix` | the path and all below it | the same |
/// | `ImplementationSpecific` | as the class decides | absolute, or empty |
fn one_path(path: &Value, field_path: &str, errors: &mut Errors) {
    let (given, path_field) = (text(&path["path"]), format!("{field_path}.path"));
    let is_relative = !given.starts_with('/');
    match text(&path["pathType"]) {
        "Exact" | "Prefix" => {
            if is_relative {
                errors.invalid(&path_field, &given.into(), "must be an absolute path");
            }
            for part in UNCLEAR.iter().filter(|part| given.contains(**part)) {
                errors.invalid(&path_field, &given.into(), &format!("must not contain '{part}'"));
            }
            for end in UNCLEAR_ENDS.iter().filter(|end| given.ends_with(**end)) {
                errors.invalid(&path_field, &given.into(), &format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" if !given.is_empty() && is_relative => {
            errors.invalid(&path_field, &given.into(), "must be an absolute path");
        }
        _ => {
            let supported = declared::values("networking.v1.HTTPIngressPath", "pathType");
            errors.always_one_of(&format!("{field_path}.pathType"), &path["pathType"], &supported);
        }
    }
}

/// Validates a backend: exactly one of a Service and another resource.
///
/// A Service has a name, and its port a name or a number. If both or none are set, the error is at the backend itself.
///
/// | backend | error |
/// |---|---|
/// | Service and resource | `FieldValueInvalid` |
/// | neither | `FieldValueInvalid` |
/// | Service with name and number of a port | `FieldValueInvalid` |
/// | Service without a port | `FieldValueRequired` |
fn backend(backend: &Value, path: &str, errors: &mut Errors) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => errors.invalid(path, backend, "cannot set both resource and service backends"),
        (false, true) => {
            let path = format!("{path}.resource");
            for name in ["kind", "name"].into_iter().filter(|name| text(&resource[*name]).is_empty()) {
                errors.required(&format!("{path}.{name}"), "");
            }
            reference(resource, &path, errors);
        }
        (false, false) => errors.invalid(path, backend, "resource or service backend is required"),
        (true, false) => {
            errors.required_name(&format!("{path}.service.name"), &service["name"], NameRule::Label);
            let (name, number) = (text(&service["port"]["name"]), service["port"]["number"].as_i64().unwrap_or(0));
            if !name.is_empty() && number != 0 {
                errors.invalid(path, &"".into(), "cannot set both port name & port number");
            } else if name.is_empty() && number == 0 {
                errors.required(path, "port name or number is required");
            } else if number != 0 {
                errors.in_range(&format!("{path}.service.port.number"), &number.into(), 1, 65_535);
            } else {
                ports::number_or_name(&service["port"]["name"], &format!("{path}.service.port.name"), errors);
            }
        }
    }
}

/// Validates the addresses of the load balancer (`ValidateIngressLoadBalancerStatus`). Addresses that the old status
/// has are not validated again.
pub(crate) fn status(old: &Value, new: &Value, errors: &mut Errors) {
    let list = |object: &Value| object["status"]["loadBalancer"]["ingress"].clone();
    let (before, now) = (list(old), list(new));
    for (index, ingress) in entries(&now) {
        let path_of = |field: &str| format!("status.loadBalancer.ingress[{index}].{field}");
        let (ip, host) = (&ingress["ip"], &ingress["hostname"]);
        if !text(ip).is_empty() && !entries(&before).any(|(_, existing)| existing["ip"] == *ip) {
            address::legacy(ip, &path_of("ip"), errors);
        }
        address::host(host, &path_of("hostname"), errors);
    }
}

/// Validates the names in a reference to another object; an absent group means the core group.
fn reference(reference: &Value, path: &str, errors: &mut Errors) {
    if !reference["apiGroup"].is_null() {
        errors.name(&format!("{path}.apiGroup"), &reference["apiGroup"], NameRule::Subdomain);
    }
    for name in ["kind", "name"].into_iter().filter(|name| !text(&reference[*name]).is_empty()) {
        errors.name(&format!("{path}.{name}"), &reference[name], NameRule::PathSegment);
    }
}

/// Validates an `IngressClass` (`validateIngressClassSpec`).
///
/// - `controller` has a domain, as in `example.com/ingress-controller`.
/// - Parameters are in the cluster or in a namespace. The namespace is required for the second, and
///   forbidden for the first.
pub(crate) fn class(object: &Value, errors: &mut Errors) {
    /// Maximum length of the name of a controller, in characters.
    const CONTROLLER_LEN_MAX: usize = 250;
    let (controller, path) = (&object["spec"]["controller"], "spec.controller");
    if text(controller).len() > CONTROLLER_LEN_MAX {
        errors.too_long(path, CONTROLLER_LEN_MAX);
    }
    errors.domain_prefixed(path, controller);
    let (parameters, path) = (&object["spec"]["parameters"], "spec.parameters");
    if parameters.is_null() {
        return;
    }
    reference(parameters, path, errors);
    let scope = text(&parameters["scope"]);
    errors.one_of(&format!("{path}.scope"), &parameters["scope"], &["Cluster", "Namespace"]);
    let path = format!("{path}.namespace");
    match scope {
        "Namespace" if parameters["namespace"].is_null() => {
            errors.required(&path, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => errors.name(&path, &parameters["namespace"], NameRule::Label),
        "Cluster" if !parameters["namespace"].is_null() => {
            errors.forbidden(&path, "`parameters.scope` is set to 'Cluster'");
        }
        _ => {}
    }
}
