//! Defaults of Services (`SetDefaults_Service` of `pkg/apis/core/v1/defaults.go`).
//!
//! In an update they run a second time, after `prepare_update`. It drops fields of the old type, and the new type may
//! have other defaults (`again_after_update`).

use serde_json::{Value, json};

use crate::{
    defaulting::{add, fill, is_text, items, part},
    json_path::set,
};

/// Fills in the defaults of a Service. Without `ClientIP`, the settings of session affinity are removed.
pub(crate) fn service(object: &mut Value) {
    let spec = part(object, "spec");
    fill(spec, "type", "ClusterIP");
    fill(spec, "sessionAffinity", "None");
    if is_text(spec, "sessionAffinity", "ClientIP") {
        add(part(part(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10_800);
    } else {
        set(spec, "sessionAffinityConfig", None);
    }
    for port in items(spec, "ports") {
        fill(port, "protocol", "TCP");
        fill(port, "targetPort", port["port"].clone());
    }
    let is_external = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let is_balancer = is_text(spec, "type", "LoadBalancer");
    if is_balancer || is_text(spec, "type", "NodePort") || (is_external && is_text(spec, "type", "ClusterIP")) {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_balancer {
        add(spec, "allocateLoadBalancerNodePorts", true);
    }
    if !is_text(spec, "type", "ExternalName") {
        add(spec, "internalTrafficPolicy", "Cluster");
        address_families(spec);
    }
    let balancer = part(part(object, "status"), "loadBalancer");
    if is_balancer {
        items(balancer, "ingress")
            .filter(|ingress| has_address(ingress))
            .for_each(|ingress| add(ingress, "ipMode", "VIP"));
    }
}

/// Returns `true` if an ingress point of the load balancer has an IP, rather than a host name.
fn has_address(ingress: &Value) -> bool {
    ingress["ip"].as_str().is_some_and(|address| !address.is_empty())
}

/// Fills in IP families and policy, as in a cluster with IPv4 only. A headless Service without a selector has both
/// families: its endpoints are written by its user and may have any address.
fn address_families(spec: &mut Value) {
    for list in ["clusterIPs", "ipFamilies"] {
        if spec.get(list).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            set(spec, list, None);
        }
    }
    if let Some(address) = spec.get("clusterIP").filter(|address| **address != "").cloned() {
        add(spec, "clusterIPs", json!([address]));
    }
    let has_selector = spec.get("selector").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty());
    let is_dual_stack = is_text(spec, "clusterIP", "None") && !has_selector && spec.get("ipFamilies").is_none();
    add(spec, "ipFamilyPolicy", if is_dual_stack { "RequireDualStack" } else { "SingleStack" });
    let is_single = is_text(spec, "ipFamilyPolicy", "SingleStack");
    add(spec, "ipFamilies", if is_dual_stack && !is_single { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
}
