//! `Service` of the core group: one address for a set of Pods.
//!
//! The server allocates a cluster IP, fills in IP families and policy, and keeps allocated values that an update leaves
//! out. Cluster IPs, IP families and load balancer class are immutable while the type still uses them; see
//! `validation.rs`.
//!
//! Upstream: `pkg/registry/core/service/strategy.go` and `pkg/apis/core/validation/validation.go`.

mod cluster_ips;
mod defaults;
mod ports;
pub(crate) mod table;
pub(crate) mod validation;
mod warnings;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::{
    amounts::Amounts,
    defaulting::items,
    json_path::set,
    names::NameRule,
    quantity,
    registry::kind::{
        Allocator, ConnectTarget, Defaults, DeleteStrategy, Environment, Kind, ManagedFields, Metadata, OwnedState,
        Quota, Requests, Strategy, Subresource, TableColumns, Undecoded, Validation,
    },
    validation::declared,
};

pub(crate) static KIND: Kind = Kind {
    resource: "services",
    kind: "Service",
    metadata: Metadata { names: NameRule::Label, ..Metadata::DEFAULT },
    requests: Requests {
        selectable_fields: &["metadata.namespace", "spec.clusterIP", "spec.type"],
        connects: &[Subresource::Proxy],
        connect_target: ConnectTarget::Endpoint,
        ..Requests::DEFAULT
    },
    defaults: Defaults {
        keep_before: keep_families,
        set: defaults::service,
        again_after_update: true,
        later: &[
            ("/spec/clusterIPs", Undecoded::Absent),
            ("/spec/ipFamilies", Undecoded::Absent),
            ("/spec/ipFamilyPolicy", Undecoded::Absent),
        ],
        ..Defaults::DEFAULT
    },
    strategy: Strategy {
        creates_on_update: true,
        prepare_create: |_, object| drop_internal_traffic_policy(object),
        prepare_update,
        allocate: allocate_address,
        allocator: Some(Allocator { check: cluster_ips::check, allocate: ports::allocate_node_ports }),
        ..Strategy::DEFAULT
    },
    validation: Validation {
        validate: validation::validate_service,
        validate_update: validation::validate_update,
        validate_status: |_, new, errors| validation::validate_status(new, errors),
        warn: |_, object, warnings| warnings::warn(object, warnings),
        ..Validation::DEFAULT
    },
    managed_fields: ManagedFields {
        filled_in: &["/spec/clusterIP", "/spec/clusterIPs", "/spec/ipFamilies", "/spec/ipFamilyPolicy"],
        absent_when_empty: &["/spec/clusterIPs", "/spec/ipFamilies"],
        owned_state: OwnedState::SentWithoutFilledIn,
        ..ManagedFields::DEFAULT
    },
    delete: DeleteStrategy::RETURNS_OBJECT,
    table: TableColumns::cells(table::CELLS),
    quota: QUOTA,
    ..Kind::DEFAULT
};

/// Counts Services, load balancers and node ports. Only an update of the spec changes the usage. Quotas are
/// recalculated when the type changes.
const QUOTA: Quota = Quota {
    counts: |name| ["services", "services.nodeports", "services.loadbalancers"].contains(&name),
    usage: |service, _| usage(&service["spec"]),
    changes_usage: |subresource, _, _| subresource.is_main(),
    frees_usage: Some(|old, new, _| old.is_some_and(|old| old["spec"]["type"] != new["spec"]["type"])),
    ..Quota::DEFAULT
};

/// Keeps allocated values that the update leaves out, and drops fields that only the old type has. Upstream:
/// `PrepareForUpdate` and `patchAllocatedValues` in `pkg/registry/core/service`.
fn prepare_update(_: Subresource, old: &Value, new: &mut Value) {
    keep_addresses(old, new);
    drop_fields_of_old_type(old, new);
    keep_health_port(old, new);
    drop_internal_traffic_policy(new);
}

/// Keeps the IP families that an update leaves out; a policy of one family drops the second (`initIPFamilyFields`). It
/// runs before the defaults, which would set the policy of a new Service. Nothing is kept when the type changes to or
/// from `ExternalName`, which has no families.
fn keep_families(old: &Value, new: &mut Value) {
    const SINGLE: &str = "SingleStack";
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if !is.is_object() || [was, &*is].iter().any(|spec| spec["type"] == "ExternalName") {
        return;
    }
    let (policy, families) = ("ipFamilyPolicy", "ipFamilies");
    if is[policy].is_null() {
        set(is, policy, was.get(policy).cloned());
    }
    let keeps_policy = was[policy] == is[policy];
    let lacks_families = is[families].as_array().is_none_or(Vec::is_empty);
    if lacks_families && keeps_policy {
        set(is, families, was.get(families).cloned());
    } else if !lacks_families && !keeps_policy && is[policy] == SINGLE && was[families] == is[families] {
        is[families].as_array_mut().into_iter().for_each(|families| families.truncate(1));
    }
}

/// Drops the internal traffic policy of an `ExternalName` Service, which has no traffic.
fn drop_internal_traffic_policy(service: &mut Value) {
    let spec = &mut service["spec"];
    let policies = || declared::values("core.v1.ServiceSpec", "internalTrafficPolicy").into_iter();
    if spec["type"] == "ExternalName" && policies().any(|policy| spec["internalTrafficPolicy"] == policy) {
        set(spec, "internalTrafficPolicy", None);
    }
}

/// Allocates a cluster IP for a Service whose type has one and that was sent without one. The address is from the
/// cluster's range and in no other Service. `None`, for a headless Service, is kept.
fn allocate_address(environment: &mut dyn Environment, object: &mut Value) {
    let spec = &mut object["spec"];
    if spec["type"] == "ExternalName" || spec["clusterIP"].as_str().is_some_and(|given| !given.is_empty()) {
        return;
    }
    let address = environment.cluster_ip();
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
}

/// Keeps the addresses that an update leaves out. If only the first address has changed, it becomes the only one. Only
/// a change to `ExternalName` drops them: such a Service has no addresses, and the client need not remove them.
fn keep_addresses(old: &Value, new: &mut Value) {
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

/// Keeps the port of the nodes' health checks while it is used. The port is used by a `LoadBalancer` with
/// `externalTrafficPolicy: Local`. Otherwise an unchanged port is dropped.
fn keep_health_port(old: &Value, new: &mut Value) {
    const PORT: &str = "healthCheckNodePort";
    let (was, is) = (&old["spec"], &mut new["spec"]);
    if !validation::needs_health_check(was) {
        return;
    }
    let needs_check = validation::needs_health_check(is);
    if needs_check && is[PORT].as_i64().unwrap_or(0) == 0 {
        set(is, PORT, was.get(PORT).cloned());
    } else if !needs_check && is[PORT] == was[PORT] {
        set(is, PORT, None);
    }
}

/// Drops fields that the old type had and the new one lacks, unless they were changed, too (`dropTypeDependentFields`).
fn drop_fields_of_old_type(old: &Value, new: &mut Value) {
    let (was, is) = (&old["spec"], &mut new["spec"]);
    let kind = |spec: &Value| spec["type"].as_str().unwrap_or("ClusterIP").to_owned();
    let (before, after) = (kind(was), kind(is));
    let on_nodes = |kind: &str| ["NodePort", "LoadBalancer"].contains(&kind);
    if on_nodes(&before) && !on_nodes(&after) {
        // Ports may be in another order, but none may be new.
        let ports = |spec: &Value| -> Vec<i64> {
            let list = spec["ports"].as_array().into_iter().flatten();
            list.filter_map(|port| port["nodePort"].as_i64()).filter(|port| *port != 0).collect()
        };
        let old_ports: HashSet<i64> = ports(was).into_iter().collect();
        if ports(is).iter().all(|port| old_ports.contains(port)) {
            items(is, "ports").for_each(|port| set(port, "nodePort", None));
        }
    }
    let is_outside =
        |spec: &Value, kind: &str| on_nodes(kind) || spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    let mut type_fields = Vec::new();
    if before == "LoadBalancer" && after != "LoadBalancer" {
        new["status"]["loadBalancer"] = json!({});
        type_fields.extend(["allocateLoadBalancerNodePorts", "healthCheckNodePort", "loadBalancerClass"]);
    }
    let is = &mut new["spec"];
    if is_outside(was, &before) && !is_outside(is, &after) {
        type_fields.push("externalTrafficPolicy");
    }
    type_fields.retain(|field| was[*field] == is[*field]);
    for field in type_fields {
        set(is, field, None);
    }
}

/// Returns what a Service uses of a quota. A `LoadBalancer` uses a node port for each of its ports, unless
/// `allocateLoadBalancerNodePorts` is `false`; then only the ports with a number count.
fn usage(spec: &Value) -> Amounts {
    let ports = spec["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let n_given = ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or(0) != 0).count();
    let (n_ports, n_balancers) = match spec["type"].as_str() {
        Some("NodePort") => (ports.len(), 0),
        Some("LoadBalancer") if spec["allocateLoadBalancerNodePorts"] == false => (n_given, 1),
        Some("LoadBalancer") => (ports.len(), 1),
        _ => (0, 0),
    };
    let count = |amount: usize| quantity::count(i64::try_from(amount).unwrap_or(i64::MAX));
    Amounts::from([
        ("services".into(), count(1)),
        ("services.nodeports".into(), count(n_ports)),
        ("services.loadbalancers".into(), count(n_balancers)),
    ])
}
