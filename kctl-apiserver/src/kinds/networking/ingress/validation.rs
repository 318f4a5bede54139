//! Validation of `Ingress` and `IngressClass` objects.
//!
//! Upstream: `pkg/apis/networking/validation/validation.go`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    names::NameRule,
    validation::{address, declared, ports},
};

/// Parts of a path that proxies interpret in different ways, so that a rule could be bypassed.
const INVALID_PATH_SEQUENCES: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
/// Ends of a path that proxies interpret in different ways.
const INVALID_PATH_SUFFIXES: &[&str] = &["/..", "/."];

/// Validates an Ingress (`ValidateIngressSpec`). The objects that it names need not exist.
pub(crate) fn validate_ingress(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (default, rules, class) = (spec.at("defaultBackend"), spec.at("rules"), spec.at("ingressClassName"));
    spec.invalid_if(rules.is_empty() && default.is_null(), "must have `defaultBackend` or `rules`");
    default.when_present(validate_backend);
    for rule in rules.items() {
        let name = rule.at("host");
        name.invalid_if(address::parse(name.text()).is_some(), "must be a DNS name, not an IP address");
        if !name.is_empty() {
            validate_host(&name);
        }
        rule.at("http").when_present(|http| validate_paths(&http.at("paths")));
    }
    for tls in spec.at("tls").items() {
        tls.at("hosts").items().for_each(|name| validate_host(&name));
        tls.at("secretName").name_if_set(NameRule::Subdomain);
    }
    class.when_present(|class| class.name(NameRule::Subdomain));
}

/// Validates that annotation and field of a new Ingress name the same class. An update is not validated, so that old
/// objects with both can still be changed.
pub(crate) fn new_ingress(object: &Value, errors: &mut Errors) {
    /// The annotation that named the class before `ingressClassName`.
    const CLASS: &str = "kubernetes.io/ingress.class";
    let class = &object["spec"]["ingressClassName"];
    let annotated = Field::new(&object["metadata"]["annotations"][CLASS], format!("annotations.{CLASS}"), errors);
    let is_other = !annotated.is_null() && !class.is_null() && *annotated != *class;
    annotated.invalid_if(is_other, "must match `ingressClassName` when both are specified");
}

/// Validates a host: a DNS subdomain, or `*.` and a subdomain, which matches all names one label below it
/// (`validation.IsWildcardDNS1123Subdomain`).
fn validate_host(name: &Field<'_>) {
    let host = name.text();
    if !host.contains('*') {
        return name.name(NameRule::Subdomain);
    }
    let is_wildcard = host.strip_prefix("*.").is_some_and(|rest| NameRule::Subdomain.check(rest).is_none());
    name.invalid_if(!is_wildcard, "must be *. and a DNS subdomain, such as *.example.com");
}

/// Validates the paths of a rule. A path without `pathType` is not validated further.
fn validate_paths(list: &Field<'_>) {
    list.required_if(list.is_empty());
    for path in list.items() {
        let kind = path.at("pathType");
        // The path cannot be interpreted without a `pathType`.
        if kind.is_null() {
            kind.required();
        } else {
            validate_path(&path);
            validate_backend(&path.at("backend"));
        }
    }
}

/// Validates a path. For `Exact` and `Prefix` it is absolute, and all proxies read it alike. How an
/// `ImplementationSpecific` path matches is decided by the class.
fn validate_path(path: &Field<'_>) {
    let (kind, path) = (path.at("pathType"), path.at("path"));
    let (is_absolute, given) = (path.text().starts_with('/'), path.text());
    let is_clear = !INVALID_PATH_SEQUENCES.iter().any(|part| given.contains(part))
        && !INVALID_PATH_SUFFIXES.iter().any(|end| given.ends_with(end));
    match kind.text() {
        "Exact" | "Prefix" => {
            let detail =
                "must be absolute, without '//', '/./', '/../' and encoded slashes, and not end with '/.' or '/..'";
            path.invalid_if(!is_absolute || !is_clear, detail);
        }
        "ImplementationSpecific" => path.invalid_if(!given.is_empty() && !is_absolute, "must be an absolute path"),
        _ => kind.unsupported(&declared::values("networking.v1.HTTPIngressPath", "pathType")),
    }
}

/// Validates a backend: exactly one of a Service, with name or number of a port, and another resource. If both or none
/// are set, the error is at the backend itself.
fn validate_backend(backend: &Field<'_>) {
    let (service, resource) = (backend.at("service"), backend.at("resource"));
    let has_one = service.is_object() != resource.is_object();
    backend.invalid_if(!has_one, "must have either `service` or `resource`");
    if has_one && resource.is_object() {
        resource.require_children(&["kind", "name"]);
        validate_reference(&resource);
    } else if has_one {
        service.at("name").required_name(NameRule::Label);
        let (name, number) = (service.at("port").at("name"), service.at("port").at("number"));
        match (name.is_empty(), number.as_i64().unwrap_or(0)) {
            (true, 0) => backend.required_with("must have name or number of a port of the service"),
            (true, _) => number.in_range(1, 65_535),
            (false, 0) => name.check(ports::number_or_name),
            (false, _) => backend.invalid("must have either name or number of a port"),
        }
    }
}

/// Validates the addresses of the load balancer (`ValidateIngressLoadBalancerStatus`). Addresses that the old status
/// has are not validated again.
pub(crate) fn validate_status(old: &Value, new: &Value, errors: &mut Errors) {
    let before = entries(&old["status"]["loadBalancer"]["ingress"]);
    let before: BTreeSet<&str> = before.map(|(_, existing)| text(&existing["ip"])).collect();
    let list = Field::new(&new["status"]["loadBalancer"]["ingress"], "status.loadBalancer.ingress", errors);
    for ingress in list.items() {
        let ip = ingress.at("ip");
        if !ip.is_empty() && !before.contains(ip.text()) {
            ip.check(address::validate_legacy_ip);
        }
        ingress.at("hostname").check(address::validate_status_host);
    }
}

/// Validates the names in a reference to another object; an absent group means the core group.
fn validate_reference(reference: &Field<'_>) {
    reference.at("apiGroup").when_present(|group| group.name(NameRule::Subdomain));
    reference.check_children(&["kind", "name"], |field| field.name_if_set(NameRule::PathSegment));
}

/// Validates an `IngressClass` (`validateIngressClassSpec`). Parameters are in the cluster or in a namespace.
pub(crate) fn validate_class(object: &Value, errors: &mut Errors) {
    /// Maximum length of the name of a controller, in characters.
    const CONTROLLER_LEN_MAX: usize = 250;
    let spec = Field::new(&object["spec"], "spec", errors);
    let (controller, parameters) = (spec.at("controller"), spec.at("parameters"));
    controller.max_bytes(CONTROLLER_LEN_MAX);
    controller.domain_prefixed();
    if parameters.is_null() {
        return;
    }
    validate_reference(&parameters);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    scope.one_of(&["Cluster", "Namespace"]);
    match scope.text() {
        "Namespace" if namespace.is_null() => namespace.required(),
        "Namespace" => namespace.name(NameRule::Label),
        "Cluster" => namespace.forbidden_if(!namespace.is_null(), "needs the scope Namespace"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each address is compared with all old ones.
    #[test]
    fn only_new_load_balancer_addresses_are_validated() {
        let with_addresses = |first: &str| {
            let addresses = (0..50_000).map(|n| json!({ "ip": format!("{first}.{}.{}", n / 250, n % 250) }));
            json!({ "status": { "loadBalancer": { "ingress": addresses.collect::<Value>() } } })
        };
        let (valid, other, wrong) = (with_addresses("10.0"), with_addresses("10.1"), with_addresses("x"));
        let n_errors = |old: &Value, new: &Value| Errors::collect(|errors| validate_status(old, new, errors)).len();
        assert_eq!(n_errors(&valid, &other), 0);
        assert_eq!(n_errors(&wrong, &wrong), 0, "the old status has them");
        assert_eq!(n_errors(&valid, &wrong), 50_000);
    }
}
