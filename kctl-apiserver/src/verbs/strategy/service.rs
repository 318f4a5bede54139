//! Addresses and ports of services, and what goes with their type.

use serde_json::{Value, json};

use super::set;
use crate::{admit::rules, state::State, store::address};

/// The families of a service that a change leaves out stay, and with a second one goes its policy (`initIPFamilyFields`).
pub(in crate::verbs) fn keep_families(old: &Value, new: &mut Value) {
    const SINGLE: &str = "SingleStack";
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if !is.is_object() || [was, &*is].iter().any(|spec| spec["type"] == "ExternalName") {
        return;
    }
    let (policy, families) = ("ipFamilyPolicy", "ipFamilies");
    if is[policy].is_null() {
        set(is, policy, was.get(policy).cloned());
    }
    let stays = was[policy] == is[policy];
    let unsaid = is[families].as_array().is_none_or(Vec::is_empty);
    if unsaid && stays {
        set(is, families, was.get(families).cloned());
    } else if !unsaid && !stays && is[policy] == SINGLE && was[families] == is[families] {
        is[families].as_array_mut().into_iter().for_each(|families| families.truncate(1));
    }
}

/// What a service that is a name elsewhere does not have.
pub(super) fn forget_traffic(service: &mut Value) {
    let spec = &mut service["spec"];
    if spec["type"] == "ExternalName"
        && ["Cluster", "Local"].iter().any(|policy| spec["internalTrafficPolicy"] == *policy)
    {
        set(spec, "internalTrafficPolicy", None);
    }
}

/// Gives a service an address, when it is of a type that has one and brings none.
pub(in crate::verbs) fn allocate_address(state: &mut State, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" || spec["clusterIP"].as_str().is_some_and(|given| !given.is_empty()) {
        return;
    }
    state.n_addresses += 1;
    let address = address(state.n_addresses);
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
}

/// The addresses of a service that an update leaves out stay; a changed first one is told for all.
pub(super) fn keep_addresses(old: &Value, new: &mut Value) {
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if is["type"] == "ExternalName" && was["type"] != "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            set(is, field, None);
        }
    }
    if was["type"] == "ExternalName" || is["type"] == "ExternalName" {
        return;
    }
    if is["clusterIP"].as_str().is_none_or(str::is_empty) {
        set(is, "clusterIP", was.get("clusterIP").cloned());
    }
    if is["clusterIPs"].is_null() || (is["clusterIPs"] == was["clusterIPs"] && is["clusterIP"] != was["clusterIP"]) {
        let address = is["clusterIP"].clone();
        set(is, "clusterIPs", (!address.is_null()).then(|| json!([address])));
    }
}

/// The port at which nodes tell balancers whether they have pods of a service stays as long as it is used.
pub(super) fn keep_health_port(old: &Value, new: &mut Value) {
    const PORT: &str = "healthCheckNodePort";
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if !rules::is_checked_on_nodes(was) {
        return;
    }
    let is_checked = rules::is_checked_on_nodes(is);
    if is_checked && is[PORT].as_i64().unwrap_or(0) == 0 {
        set(is, PORT, was.get(PORT).cloned());
    } else if !is_checked && is[PORT] == was[PORT] {
        set(is, PORT, None);
    }
}

/// What a service had for its type goes with the type, unless it was changed, too (`dropTypeDependentFields`).
pub(super) fn forget_other_type(old: &Value, new: &mut Value) {
    let (was, is) = (&old["spec"], &mut new["spec"]);
    let kind = |spec: &Value| spec["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let (before, after) = (kind(was), kind(is));
    let on_nodes = |kind: &str| ["NodePort", "LoadBalancer"].contains(&kind);
    if on_nodes(&before) && !on_nodes(&after) {
        // Ports may come in another order, but none that was given by hand.
        let ports = |spec: &Value| -> Vec<i64> {
            let list = spec["ports"].as_array().into_iter().flatten();
            list.filter_map(|port| port["nodePort"].as_i64()).filter(|port| *port != 0).collect()
        };
        let known = ports(was);
        if ports(is).iter().all(|port| known.contains(port)) {
            for port in is["ports"].as_array_mut().into_iter().flatten() {
                set(port, "nodePort", None);
            }
        }
    }
    // Also of a service that has lost its addresses outside.
    if before == "LoadBalancer" && after != "LoadBalancer" {
        new["status"]["loadBalancer"] = json!({});
    }
    let (was, is) = (&old["spec"], &mut new["spec"]);
    let is_outside =
        |spec: &Value, kind: &str| on_nodes(kind) || spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    let mut of_type = Vec::new();
    if before == "LoadBalancer" && after != "LoadBalancer" {
        of_type.extend(["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]);
    }
    if is_outside(was, &before) && !is_outside(is, &after) {
        of_type.push("externalTrafficPolicy");
    }
    for field in of_type.into_iter().filter(|field| was[*field] == is[*field]).collect::<Vec<_>>() {
        set(is, field, None);
    }
}
