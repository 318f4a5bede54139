//! Validation of new and changed Services, and of their statuses.
//!
//! Validation sees the Service after defaults and allocation, so `clusterIP` and IP families are set.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{address, declared, entries, ports},
};

/// Maximum timeout of `ClientIP` session affinity: one day, in seconds.
const AFFINITY_SECONDS_MAX: i64 = 86_400;
/// Maximum number of cluster IPs: one of each IP family.
const ADDRESSES_MAX: usize = 2;
/// Detail of errors about fields that only a `LoadBalancer` may have.
const BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates a Service (`ValidateService` in `pkg/apis/core/validation/validation.go`).
///
/// Checks that ports are set unless the Service is headless or an `ExternalName`, the ports themselves, selector,
/// session affinity, addresses, and the fields that only one type may have. Only `LoadBalancer` may set the load
/// balancer fields (`FieldValueForbidden`).
///
/// | type | required | forbidden |
/// |---|---|---|
/// | `ClusterIP` | ports, unless it is headless | node ports |
/// | `NodePort` | ports | `None` as cluster IP |
/// | `LoadBalancer` | ports | `None` as cluster IP |
/// | `ExternalName` | `externalName` | cluster IPs and IP families |
pub(crate) fn service(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let kind = text(&spec["type"]);
    let list: Vec<(usize, &Value)> = entries(&spec["ports"]).collect();
    if list.is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.required("spec.ports", "");
    }
    if is_headless(spec) && ["LoadBalancer", "NodePort"].contains(&kind) {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.invalid("spec.clusterIPs[0]", &"None".into(), &detail);
    }
    if kind == "ExternalName" {
        external(spec, errors);
    }
    let mut names = Vec::new();
    for (index, port) in &list {
        let path = format!("spec.ports[{index}]");
        if list.len() > 1 && text(&port["name"]).is_empty() {
            errors.required(&format!("{path}.name"), "");
        }
        service_port(port, &path, &mut names, errors);
    }
    errors.labels("spec.selector", &spec["selector"]);
    affinity(spec, errors);
    addresses(spec, errors);
    for (index, ip) in entries(&spec["externalIPs"]) {
        let (path, before) = (format!("spec.externalIPs[{index}]"), errors.len());
        address::legacy(ip, &path, errors);
        if errors.len() == before {
            address::endpoint(ip, &path, errors);
        }
    }
    repeated_ports(spec, &list, errors);
    balancer(spec, errors);
    traffic(spec, errors);
}

/// Returns `true` for a Service without a virtual IP: `clusterIPs` is `["None"]`.
pub(crate) fn is_headless(spec: &Value) -> bool {
    spec["clusterIPs"] == json!(["None"])
}

/// Validates an `ExternalName` Service: no cluster IPs or IP families (`FieldValueForbidden`), and a DNS name as
/// `externalName`, with or without the final dot.
fn external(spec: &Value, errors: &mut Errors) {
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let is_told = name == "clusterIPs" && !text(&spec["clusterIP"]).is_empty();
        if is_told || !spec[name].is_null() {
            errors.forbidden(&format!("spec.{name}"), "may not be set for ExternalName services");
        }
    }
    let given = text(&spec["externalName"]);
    let name = given.strip_suffix('.').unwrap_or(given);
    errors.required_name("spec.externalName", &name.into(), NameRule::Subdomain);
}

/// Validates the timeout of `ClientIP` session affinity, 1 to 86,400 seconds (`FieldValueInvalid`).
fn affinity(spec: &Value, errors: &mut Errors) {
    let (kind, seconds) = (&spec["sessionAffinity"], &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]);
    let is_wrong = |seconds: i64| !(1..=AFFINITY_SECONDS_MAX).contains(&seconds);
    if kind == "ClientIP" && seconds.as_i64().is_some_and(is_wrong) {
        let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        errors.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, &detail);
    }
}

/// Validates addresses and their families (`ValidateServiceClusterIPsRelatedFields`).
///
/// | rule | error |
/// |---|---|
/// | `clusterIP` equals `clusterIPs[0]`, or neither is set | `FieldValueInvalid`; `FieldValueRequired` without a list |
/// | `None` is alone in the list | `FieldValueInvalid` |
/// | at most two addresses, of different families | `FieldValueInvalid` |
/// | each address fits the family at its index | `FieldValueInvalid` |
/// | no family is listed twice | `FieldValueDuplicate` |
///
/// An `ExternalName` has no addresses; `external` reports them. Families are compared only if all
/// addresses are valid.
pub(crate) fn addresses(spec: &Value, errors: &mut Errors) {
    if spec["type"] == "ExternalName" {
        return;
    }
    let (cluster_ip, all, path) = (text(&spec["clusterIP"]), &spec["clusterIPs"], "spec.clusterIPs");
    let n_all = entries(all).count();
    match (cluster_ip.is_empty(), n_all == 0) {
        (false, true) => errors.required(path, ""),
        (false, false) if all[0] != cluster_ip => errors.invalid(path, all, "first value must match `clusterIP`"),
        (true, false) => errors.invalid(path, all, "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let mut seen = Vec::new();
    for (index, family) in entries(&spec["ipFamilies"]) {
        let path = format!("spec.ipFamilies[{index}]");
        // The OpenAPI document has the empty string, too, which is rejected.
        errors.one_of(&path, family, &["IPv4", "IPv6"]);
        if seen.contains(&family) {
            errors.duplicate(&path);
        }
        seen.push(family);
    }
    let policies = declared::values("core.v1.ServiceSpec", "ipFamilyPolicy");
    errors.one_of("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], &policies);
    let before = errors.len();
    for (index, ip) in entries(all) {
        if index == 0 && ip == "None" {
            if n_all > 1 {
                errors.invalid(path, all, "'None' must be the first and only value");
            }
            continue;
        }
        address::legacy(ip, &format!("{path}[{index}]"), errors);
    }
    let are_wrong = errors.len() > before;
    if n_all > ADDRESSES_MAX {
        errors.invalid(path, all, &format!("may only hold up to {ADDRESSES_MAX} values"));
    }
    if !are_wrong && !is_headless(spec) {
        families(spec, errors);
    }
}

/// Validates that each cluster IP has the family at its index, and that two IPs have different families.
///
/// A surplus of addresses or families at the end of one list is not reported.
fn families(spec: &Value, errors: &mut Errors) {
    let all: Vec<IpAddr> = entries(&spec["clusterIPs"]).filter_map(|(_, ip)| address::parse(text(ip))).collect();
    if all.len() > 1 && all.iter().all(|ip| ip.is_ipv4() == all[0].is_ipv4()) {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid("spec.clusterIPs", &spec["clusterIPs"], detail);
    }
    for (index, (ip, (_, family))) in all.iter().zip(entries(&spec["ipFamilies"])).enumerate() {
        let is_other = (family == "IPv4" && ip.is_ipv6()) || (family == "IPv6" && ip.is_ipv4());
        if is_other {
            let detail = format!("expected an {} value as indicated by `ipFamilies[{index}]`", text(family));
            errors.invalid(&format!("spec.clusterIPs[{index}]"), &spec["clusterIPs"][index], &detail);
        }
    }
}

/// Validates a `ServicePort`. Its name is unique (`FieldValueDuplicate`); an absent `targetPort` counts as `port`.
///
/// `names` collects the names so far. An absent name is valid here: the caller requires one if the Service has several
/// ports.
fn service_port<'a>(port: &'a Value, path: &str, names: &mut Vec<&'a str>, errors: &mut Errors) {
    let name = text(&port["name"]);
    if !name.is_empty() {
        errors.name(&format!("{path}.name"), &port["name"], NameRule::Label);
        if names.contains(&name) {
            errors.duplicate(&format!("{path}.name"));
        }
        names.push(name);
    }
    let number = port["port"].as_i64().unwrap_or(0);
    errors.in_range(&format!("{path}.port"), &number.into(), 1, 65_535);
    let target = if port["targetPort"].is_null() { &Value::from(number) } else { &port["targetPort"] };
    ports::number_or_name(target, &format!("{path}.targetPort"), errors);
    if port["appProtocol"].is_string() {
        errors.qualified_name(&format!("{path}.appProtocol"), text(&port["appProtocol"]));
    }
}

/// Validates that no two ports share protocol and number, or protocol and node port (`FieldValueDuplicate`). A
/// `ClusterIP` Service has no node ports (`FieldValueForbidden`).
///
/// One number may be used once for each protocol, as DNS needs it for TCP and UDP.
fn repeated_ports(spec: &Value, list: &[(usize, &Value)], errors: &mut Errors) {
    let on_node = |port: &Value| port["nodePort"].as_i64().unwrap_or(0);
    if spec["type"] == "ClusterIP" {
        for (index, _) in list.iter().filter(|(_, port)| on_node(port) != 0) {
            let path = format!("spec.ports[{index}].nodePort");
            errors.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
        }
    }
    let mut seen = Vec::new();
    for (index, port) in list.iter().filter(|(_, port)| on_node(port) != 0) {
        let key = (port["protocol"].clone(), on_node(port));
        if seen.contains(&key) {
            errors.duplicate(&format!("spec.ports[{index}].nodePort"));
        }
        seen.push(key);
    }
    let mut seen = Vec::new();
    for (index, port) in list {
        let key = (port["protocol"].clone(), port["port"].clone());
        if seen.contains(&key) {
            errors.duplicate(&format!("spec.ports[{index}]"));
        }
        seen.push(key);
    }
}

/// Validates the fields of load balancers. The path `spec.LoadBalancerSourceRanges` is spelled as in kube-apiserver.
fn balancer(spec: &Value, errors: &mut Errors) {
    let is_balancer = spec["type"] == "LoadBalancer";
    let ranges_path = "spec.LoadBalancerSourceRanges";
    if entries(&spec["loadBalancerSourceRanges"]).next().is_some() && !is_balancer {
        errors.forbidden(ranges_path, BALANCED);
    }
    for (index, range) in entries(&spec["loadBalancerSourceRanges"]) {
        address::legacy_range(&text(range).trim().into(), &format!("{ranges_path}[{index}]"), errors);
    }
    if !spec["allocateLoadBalancerNodePorts"].is_null() && !is_balancer {
        errors.forbidden("spec.allocateLoadBalancerNodePorts", BALANCED);
    }
    class_of_balancer(spec, errors);
}

/// Validates `loadBalancerClass`: a qualified name, and only for `LoadBalancer`. It chooses the
/// implementation.
fn class_of_balancer(spec: &Value, errors: &mut Errors) {
    let (class, path) = (&spec["loadBalancerClass"], "spec.loadBalancerClass");
    match (class.is_null(), spec["type"] == "LoadBalancer") {
        (true, _) => {}
        (false, true) => errors.qualified_name(path, text(class)),
        (false, false) => errors.forbidden(path, BALANCED),
    }
}

/// Validates external traffic policy, health check port and traffic distribution. The policy is required for a Service
/// that is reachable from outside, and invalid for others.
///
/// `healthCheckNodePort` is a valid port or absent if it is used, and unset or 0 otherwise.
fn traffic(spec: &Value, errors: &mut Errors) {
    let (outside, path) = (&spec["externalTrafficPolicy"], "spec.externalTrafficPolicy");
    if is_reached_from_outside(spec) {
        if text(outside).is_empty() {
            errors.required(path, "");
        }
    } else if !outside.is_null() {
        errors.leave_out(path);
        errors.invalid(path, outside, "may only be set for externally-accessible services");
    }
    let (port, path) = (&spec["healthCheckNodePort"], "spec.healthCheckNodePort");
    if is_checked(spec) {
        errors.in_range(path, port, 1, 65_535);
    } else if port.as_i64().is_some_and(|port| port != 0) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.invalid(path, port, detail);
    }
    let near = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    errors.one_of("spec.trafficDistribution", &spec["trafficDistribution"], &near);
}

/// Returns `true` for node ports, load balancers, and a `ClusterIP` Service with external IPs
/// (`ExternallyAccessible`).
fn is_reached_from_outside(spec: &Value) -> bool {
    let by_address = spec["type"] == "ClusterIP" && entries(&spec["externalIPs"]).next().is_some();
    ["LoadBalancer", "NodePort"].contains(&text(&spec["type"])) || by_address
}

/// Returns `true` if the load balancer checks the health of nodes (`NeedsHealthCheck`).
///
/// With the policy `Local`, only nodes with an endpoint may get traffic, so the load balancer has to probe them.
pub(crate) fn is_checked(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Validates the status that a load balancer's controller writes (`ValidateLoadBalancerStatus`).
///
/// Only a `LoadBalancer` has ingress points. An ingress point has an `ipMode` if and only if it has an IP.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    const AT: &str = "status.loadBalancer.ingress";
    let list = &object["status"]["loadBalancer"]["ingress"];
    if object["spec"]["type"] != "LoadBalancer" {
        if entries(list).next().is_some() {
            errors.forbidden(AT, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    for (index, ingress) in entries(list) {
        let path_of = |field: &str| format!("{AT}[{index}].{field}");
        let (address, mode) = (text(&ingress["ip"]), &ingress["ipMode"]);
        if !address.is_empty() {
            address::legacy(&ingress["ip"], &path_of("ip"), errors);
        }
        if !address.is_empty() && mode.is_null() {
            errors.required(&path_of("ipMode"), "must be specified when `ip` is set");
        } else if address.is_empty() && !mode.is_null() {
            errors.forbidden(&path_of("ipMode"), "may not be specified when `ip` is not set");
        } else if !mode.is_null() {
            errors.one_of(&path_of("ipMode"), mode, &["Proxy", "VIP"]);
        }
        address::host(&ingress["hostname"], &path_of("hostname"), errors);
    }
}

/// Validates an update (`ValidateServiceUpdate`): cluster IPs, IP families, load balancer class and health check port
/// are immutable while the type still uses them.
///
/// The class of a load balancer may change together with the type, and is always validated.
pub(crate) fn kept(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    let external = |spec: &Value| spec["type"] == "ExternalName";
    if !external(was) && !external(is) {
        addresses_stay(was, is, errors);
        if !is_headless(was) && !is_headless(is) {
            families_stay(was, is, errors);
        }
    }
    if was["type"] == "LoadBalancer"
        && is["type"] == "LoadBalancer"
        && was["loadBalancerClass"] != is["loadBalancerClass"]
    {
        errors.invalid("spec.loadBalancerClass", &is["loadBalancerClass"], "may not change once set");
    }
    class_of_balancer(is, errors);
    if is_checked(was) && is_checked(is) && was["healthCheckNodePort"] != is["healthCheckNodePort"] {
        errors.forbidden("spec.healthCheckNodePort", "field is immutable");
    }
}

/// Validates that an update keeps the primary cluster IP. The secondary one may be released with the policy
/// `SingleStack`.
fn addresses_stay(was: &Value, is: &Value, errors: &mut Errors) {
    let (existing, given) = (&was["clusterIPs"], &is["clusterIPs"]);
    let (n_existing, n_given) = (entries(existing).count(), entries(given).count());
    let path_of = |index: usize| format!("spec.clusterIPs[{index}]");
    if is_headless(was) && is_headless(is) {
        return;
    }
    if n_existing > n_given && n_given == 0 {
        errors.invalid(&path_of(0), given, "primary clusterIP can not be unset");
    }
    let n_compared = if n_existing == n_given { n_existing } else { n_existing.min(n_given).min(1) };
    for index in (0..n_compared).filter(|index| existing[*index] != given[*index]) {
        errors.invalid(&path_of(index), given, "may not change once set");
    }
    if n_existing > n_given && n_given == 1 && is["ipFamilyPolicy"] != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.invalid("spec.ipFamilyPolicy", &is["ipFamilyPolicy"], detail);
    }
}

/// Validates that an update keeps the primary IP family. The secondary one may be released with the policy
/// `SingleStack`.
fn families_stay(was: &Value, is: &Value, errors: &mut Errors) {
    let (existing, given) = (&was["ipFamilies"], &is["ipFamilies"]);
    let (n_existing, n_given) = (entries(existing).count(), entries(given).count());
    let n_compared = if n_existing == n_given { n_existing } else { n_existing.min(n_given).min(1) };
    if (0..n_compared).any(|index| existing[index] != given[index]) {
        errors.invalid("spec.ipFamilies[0]", given, "may not change once set");
    }
    if n_existing > n_given && n_given == 1 && is["ipFamilyPolicy"] != "SingleStack" {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        errors.invalid("spec.ipFamilyPolicy", &is["ipFamilyPolicy"], detail);
    }
}

/// Returns the errors of the cluster IPs and IP families.
///
/// It runs on a Service as it was sent, before addresses are allocated, so that an invalid Service
/// allocates none.
pub(crate) fn addresses_of_service(object: &Value) -> Errors {
    Errors::collect(|errors| addresses(&object["spec"], errors))
}
