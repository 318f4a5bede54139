//! Allocates the cluster IPs and node ports of Services (`pkg/registry/core/service/storage/alloc.go`).

mod cluster_ips;

use serde_json::Value;

use super::Write;
use crate::{
    kinds::core::service,
    request::RequestInfo,
    state::State,
    status::{FieldError, StatusError},
};

/// The range of node ports of Services: the default of `--service-node-port-range`. Inclusive at both ends.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Checks the addresses of a new Service as it was sent, because upstream's allocator runs before the defaults.
///
/// # Errors
/// `Invalid` for addresses and families that the cluster does not have, and for taken addresses.
pub(super) fn check_new(state: &State, info: &RequestInfo, write: &Write) -> Result<(), StatusError> {
    if write.is_new() && info.resource.kind.strategy.allocates_ports {
        return cluster_ips::check(state, info, None, &write.object);
    }
    Ok(())
}

/// Allocates the values of a new or changed object. The kind allocates those that need no other object (`allocate`),
/// such as a cluster IP. Writes of a Service's subresources allocate no node ports.
///
/// # Errors
/// `Invalid` for requested addresses and ports that can't be allocated.
pub(super) fn allocate(state: &mut State, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    let strategy = &info.resource.kind.strategy;
    (strategy.allocate)(state, &mut write.object);
    let is_whole = write.is_new() || info.subresource.is_empty();
    if !strategy.allocates_ports || !is_whole {
        return Ok(());
    }
    if let Some(old) = write.old() {
        cluster_ips::check(state, info, Some(old), &write.object)?;
    }
    allocate_node_ports(state, info, &mut write.object)
}

/// Checks the requested node ports of a Service and allocates the missing ones. A port that is out of range, taken, or
/// repeated in the Service is `Invalid` at its path. Only the first error is reported, as by upstream's allocator.
fn allocate_node_ports(state: &State, info: &RequestInfo, service: &mut Value) -> Result<(), StatusError> {
    if !["NodePort", "LoadBalancer"].contains(&service["spec"]["type"].as_str().unwrap_or_default()) {
        return Ok(());
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let others = state.objects(&info.resource.id, None).filter(|other| {
        other["metadata"]["name"] != name.as_str() || other["metadata"]["namespace"] != info.namespace.as_str()
    });
    let ports = |service: &Value| -> Vec<i64> {
        let list = service["spec"]["ports"].as_array().into_iter().flatten();
        let node_ports = list.filter_map(|port| port["nodePort"].as_i64());
        node_ports.chain(service["spec"]["healthCheckNodePort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let mut taken: Vec<i64> = others.flat_map(|other| ports(&other)).collect();
    let mut requested_before = Vec::new();
    let list = service["spec"]["ports"].as_array().into_iter().flatten();
    let requested =
        list.enumerate().map(|(index, port)| (index, port["nodePort"].as_i64().unwrap_or(0), &port["protocol"]));
    for (index, port, protocol) in requested.filter(|(_, port, _)| *port != 0) {
        // One port may serve several protocols of the same Service.
        let is_repeated = requested_before.contains(&(port, protocol));
        requested_before.push((port, protocol));
        if !NODE_PORTS.contains(&port) || is_repeated || taken.contains(&port) {
            let why = format!("must be a free port from {} to {}", NODE_PORTS.start(), NODE_PORTS.end());
            let field_error = FieldError::invalid(&format!("spec.ports[{index}].nodePort"), &port.into(), &why);
            return Err(StatusError::invalid("", service::KIND.kind, &name, &[field_error]));
        }
    }
    taken.extend(ports(service));
    allocate_missing_ports(service, &mut taken);
    Ok(())
}

/// Allocates node ports: one per port of the Service, and one for the health check of its load balancer. It takes the
/// lowest free port; upstream draws a random one. Without a free port the field stays unset.
fn allocate_missing_ports(service: &mut Value, taken: &mut Vec<i64>) {
    let has_health_check = service::validation::needs_health_check(&service["spec"]);
    let mut set_free_port = |object: &mut Value, field: &str| {
        if object[field].as_i64().unwrap_or(0) == 0
            && let Some(free) = NODE_PORTS.into_iter().find(|free| !taken.contains(free))
        {
            taken.push(free);
            object[field] = free.into();
        }
    };
    if service["spec"]["allocateLoadBalancerNodePorts"] != false {
        for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
            set_free_port(port, "nodePort");
        }
    }
    if has_health_check {
        set_free_port(&mut service["spec"], "healthCheckNodePort");
    }
}
