//! Validation of new and changed Services, and of their statuses.
//!
//! Validation sees the Service after defaults and allocation, so `clusterIP` and IP families are set.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    field::Field,
    field_errors::{Errors, text},
    names::NameRule,
    validation::{address, declared, ports},
};

/// Maximum timeout of `ClientIP` session affinity: one day, in seconds.
const AFFINITY_SECONDS_MAX: i64 = 86_400;
/// Maximum number of cluster IPs: one of each IP family.
const ADDRESSES_MAX: usize = 2;
/// Detail of errors about fields that only a `LoadBalancer` may have.
const BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates a Service (`ValidateService` in `pkg/apis/core/validation/validation.go`).
pub(crate) fn validate_service(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let (kind, ports, cluster_ips) = (text(&spec["type"]), spec.at("ports"), spec.at("clusterIPs"));
    ports.required_if(ports.is_empty() && !is_headless(&spec) && kind != "ExternalName");
    if is_headless(&spec) && ["LoadBalancer", "NodePort"].contains(&kind) {
        cluster_ips.items().for_each(|ip| ip.invalid("must not be 'None' for this type of Service"));
    }
    if kind == "ExternalName" {
        validate_external_name(&spec);
    }
    let (has_several, mut names) = (ports.items().count() > 1, BTreeSet::new());
    for port in ports.items() {
        let name = port.at("name");
        name.required_if(has_several && name.is_empty());
        name.duplicate_if(!name.is_empty() && !names.insert(name.text()));
        validate_service_port(&port);
    }
    forbid_repeated_ports(&spec);
    spec.at("selector").labels();
    validate_affinity(&spec);
    validate_addresses(&spec);
    for ip in spec.at("externalIPs").items() {
        if ip.passes(address::validate_legacy_ip) {
            ip.check(address::validate_endpoint_ip);
        }
    }
    validate_load_balancer(&spec);
    validate_traffic(&spec);
}

/// Returns `true` for a Service without a virtual IP: `clusterIPs` is `["None"]`.
pub(crate) fn is_headless(spec: &Value) -> bool {
    spec["clusterIPs"] == json!(["None"])
}

/// Validates an `ExternalName` Service: no cluster IPs or IP families, and a DNS name as `externalName`, with or
/// without the final dot.
fn validate_external_name(spec: &Field<'_>) {
    let has_address = !text(&spec["clusterIP"]).is_empty();
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let is_set = !spec[name].is_null() || (name == "clusterIPs" && has_address);
        spec.at(name).forbidden_if(is_set, "may not be set for ExternalName services");
    }
    let given = text(&spec["externalName"]);
    let name = Value::from(given.strip_suffix('.').unwrap_or(given));
    spec.at_with("externalName", &name).required_name(NameRule::Subdomain);
}

/// Validates the timeout of `ClientIP` session affinity, 1 to 86,400 seconds (`FieldValueInvalid`).
fn validate_affinity(spec: &Field<'_>) {
    if spec["sessionAffinity"] == "ClientIP" {
        let client = spec.at("sessionAffinityConfig").at("clientIP");
        client.at("timeoutSeconds").in_range(1, AFFINITY_SECONDS_MAX);
    }
}

/// Validates addresses and their families (`ValidateServiceClusterIPsRelatedFields`).
///
/// An `ExternalName` has no addresses; `validate_external_name` reports them. Families are compared only if all
/// addresses are valid.
fn validate_addresses(spec: &Field<'_>) {
    if spec["type"] == "ExternalName" {
        return;
    }
    let (first, all, families) = (spec.at("clusterIP"), spec.at("clusterIPs"), spec.at("ipFamilies"));
    all.required_if(!first.is_empty() && all.is_empty());
    let mut known_families = declared::values("core.v1.ServiceSpec", "ipFamilies");
    // The OpenAPI document has the empty string, too, which is rejected.
    known_families.retain(|family| !family.is_empty());
    families.items().for_each(|family| family.one_of(&known_families));
    families.unique(|family| family);
    spec.at("ipFamilyPolicy").one_of(&declared::values("core.v1.ServiceSpec", "ipFamilyPolicy"));
    let (n_all, is_none) = (all.items().count(), all[0] == "None");
    let n_invalid = all.items().skip(usize::from(is_none)).filter(|ip| !ip.passes(address::validate_legacy_ip)).count();
    let is_other = !all.is_empty() && (first.is_empty() || all[0] != *first);
    let is_wrong = is_other || n_all > ADDRESSES_MAX || (is_none && n_all > 1);
    all.invalid_if(is_wrong, "must be `clusterIP` and at most one further address; 'None' must be alone");
    if n_invalid == 0 && !is_none {
        validate_families(&all, &families);
    }
}

/// Validates that each cluster IP has the family at its index, and that two IPs have different families.
///
/// A surplus of addresses or families at the end of one list is not reported.
fn validate_families(all: &Field<'_>, families: &Field<'_>) {
    let all_parsed: Vec<_> = all.items().filter_map(|ip| Some((address::parse(ip.text())?.is_ipv4(), ip))).collect();
    let is_repeated = all_parsed.len() > 1 && all_parsed.iter().all(|(is_ipv4, _)| *is_ipv4 == all_parsed[0].0);
    all.invalid_if(is_repeated, "may specify no more than one IP for each IP family");
    for ((is_ipv4, ip), family) in all_parsed.iter().zip(families.items()) {
        let other = if *is_ipv4 { "IPv6" } else { "IPv4" };
        ip.invalid_if(*family == other, format_args!("must be an {other} address, by `ipFamilies`"));
    }
}

/// Validates a `ServicePort`. An absent `targetPort` counts as `port`. An absent name is valid here.
fn validate_service_port(port: &Field<'_>) {
    let target = port.at("targetPort");
    port.at("name").name_if_set(NameRule::Label);
    let number = Value::from(port["port"].as_i64().unwrap_or(0));
    port.at_with("port", &number).in_range(1, 65_535);
    let target = if target.is_null() { target.with(&number) } else { target.clone() };
    target.check(ports::number_or_name);
    port.at("appProtocol").when_present(Field::qualified_name);
}

/// Validates that no two ports share protocol and number, or protocol and node port. One number may be used once for
/// each protocol, as DNS needs it for TCP and UDP. A `ClusterIP` Service has no node ports.
fn forbid_repeated_ports(spec: &Field<'_>) {
    let (ports, mut taken) = (spec.at("ports"), BTreeSet::new());
    ports.unique_by(|port| (text(&port["protocol"]), port["port"].as_i64()));
    for port in ports.items() {
        let on_node = port.at("nodePort");
        let number = on_node.as_i64().unwrap_or(0);
        on_node.forbidden_if(number != 0 && spec["type"] == "ClusterIP", "may not be used when `type` is 'ClusterIP'");
        on_node.duplicate_if(number != 0 && !taken.insert((port.at("protocol").text(), number)));
    }
}

/// Validates the fields of load balancers. The path `spec.LoadBalancerSourceRanges` is spelled as in kube-apiserver.
fn validate_load_balancer(spec: &Field<'_>) {
    let is_balancer = spec["type"] == "LoadBalancer";
    let ranges = spec.at_with("LoadBalancerSourceRanges", &spec["loadBalancerSourceRanges"]);
    ranges.forbidden_if(!is_balancer && !ranges.is_empty(), BALANCED);
    for range in ranges.items() {
        let trimmed = Value::from(range.text().trim());
        range.with(&trimmed).check(address::legacy_range);
    }
    let allocates = spec.at("allocateLoadBalancerNodePorts");
    allocates.forbidden_if(!is_balancer && !allocates.is_null(), BALANCED);
    validate_load_balancer_class(spec);
}

/// Validates `loadBalancerClass`, which chooses the implementation.
fn validate_load_balancer_class(spec: &Field<'_>) {
    let class = spec.at("loadBalancerClass");
    if class.is_null() {
        return;
    }
    if spec["type"] == "LoadBalancer" {
        class.qualified_name();
    } else {
        class.forbidden(BALANCED);
    }
}

/// Validates external traffic policy, health check port and traffic distribution. The policy is required for a Service
/// that is reachable from outside, and invalid for others.
fn validate_traffic(spec: &Field<'_>) {
    let (outside, port) = (spec.at("externalTrafficPolicy"), spec.at("healthCheckNodePort"));
    if is_reached_from_outside(spec) {
        outside.required_if(outside.is_empty());
    } else if !outside.is_null() {
        outside.with_errors(|errors, path| errors.retain(|error| error.field != path));
        outside.invalid("may only be set for externally-accessible services");
    }
    if needs_health_check(spec) {
        port.in_range(1, 65_535);
    } else {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        port.invalid_if(port.as_i64().is_some_and(|port| port != 0), detail);
    }
    spec.at("trafficDistribution").one_of(&["PreferClose", "PreferSameZone", "PreferSameNode"]);
}

/// Returns `true` for node ports, load balancers, and a `ClusterIP` Service with external IPs
/// (`ExternallyAccessible`).
fn is_reached_from_outside(spec: &Value) -> bool {
    let by_address = spec["type"] == "ClusterIP" && spec["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty());
    ["LoadBalancer", "NodePort"].contains(&text(&spec["type"])) || by_address
}

/// Returns `true` if the load balancer checks the health of nodes (`NeedsHealthCheck`): with the policy `Local`, only
/// nodes with an endpoint may get traffic.
pub(crate) fn needs_health_check(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local"
}

/// Validates the status that a load balancer's controller writes (`ValidateLoadBalancerStatus`).
pub(crate) fn validate_status(object: &Value, errors: &mut Errors) {
    let list = Field::new(&object["status"]["loadBalancer"]["ingress"], "status.loadBalancer.ingress", errors);
    if object["spec"]["type"] != "LoadBalancer" {
        return list.forbidden_if(!list.is_empty(), "may only be used when `spec.type` is 'LoadBalancer'");
    }
    for ingress in list.items() {
        let (address, mode) = (ingress.at("ip"), ingress.at("ipMode"));
        if address.is_empty() {
            mode.forbidden_if(!mode.is_null(), "may not be specified when `ip` is not set");
        } else {
            address.check(address::validate_legacy_ip);
            mode.required_with_if(mode.is_null(), "must be set when `ip` is set");
            mode.one_of(&["Proxy", "VIP"]);
        }
        ingress.at("hostname").check(address::validate_status_host);
    }
}

/// Validates an update (`ValidateServiceUpdate`): cluster IPs, IP families, load balancer class and health check port
/// are immutable while the type still uses them.
///
/// The class of a load balancer may change together with the type, and is always validated.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, spec) = (&old["spec"], Field::new(&new["spec"], "spec", errors));
    let has = |kind: &str| (was["type"] == kind, spec["type"] == kind);
    if has("ExternalName") == (false, false) {
        validate_kept_addresses(was, &spec);
    }
    let (class, port) = (spec.at("loadBalancerClass"), spec.at("healthCheckNodePort"));
    let is_changed = *class != was["loadBalancerClass"];
    class.invalid_if(has("LoadBalancer") == (true, true) && is_changed, "may not change once set");
    validate_load_balancer_class(&spec);
    let is_changed = *port != was["healthCheckNodePort"];
    port.forbidden_if(needs_health_check(was) && needs_health_check(&spec) && is_changed, "field is immutable");
}

/// Validates that an update keeps cluster IPs, unless both Services are headless, and IP families, unless one of them
/// is.
fn validate_kept_addresses(was: &Value, spec: &Field<'_>) {
    let (ips, families) = (spec.at("clusterIPs"), spec.at("ipFamilies"));
    if !is_headless(was) || !is_headless(spec) {
        let is_unset = ips.is_empty() && !was["clusterIPs"][0].is_null();
        ips.index(0).invalid_if(is_unset, "the primary address cannot be unset");
        for index in changed_items(was, spec, "clusterIPs") {
            ips.index(index).with(&ips).invalid("may not change once set");
        }
    }
    if !is_headless(was) && !is_headless(spec) {
        let is_changed = !changed_items(was, spec, "ipFamilies").is_empty();
        families.index(0).with(&families).invalid_if(is_changed, "may not change once set");
    }
}

/// Returns the indexes of the items that an update changes. The secondary one may be added, or released with the policy
/// `SingleStack`.
fn changed_items(was: &Value, spec: &Field<'_>, list: &str) -> Vec<usize> {
    let items = |spec: &Value| spec[list].as_array().map_or(0, Vec::len);
    let (n_existing, n_given) = (items(was), items(spec));
    let policy = spec.at("ipFamilyPolicy");
    let releases = n_existing > n_given && n_given == 1;
    let detail = "must be 'SingleStack' to release the secondary address and its family";
    policy.invalid_if(releases && *policy != "SingleStack", detail);
    let n_compared = if n_existing == n_given { n_existing } else { n_existing.min(n_given).min(1) };
    (0..n_compared).filter(|index| was[list][*index] != spec[list][*index]).collect()
}

/// Returns the errors of the cluster IPs and IP families. Runs before addresses are allocated, so that an invalid
/// Service allocates none.
pub(crate) fn addresses_of_service(object: &Value) -> Errors {
    Errors::collect(|errors| validate_addresses(&Field::new(&object["spec"], "spec", errors)))
}
