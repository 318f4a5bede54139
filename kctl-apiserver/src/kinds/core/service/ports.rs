//! Allocates the node ports of Services (`pkg/registry/core/service/storage/alloc.go`).

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde_json::Value;

use super::validation;
use crate::{
    field_errors::{Errors, text},
    registry::kind::Others,
};

/// The range of node ports: the default of `--service-node-port-range`. Inclusive at both ends.
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;

/// Checks the requested node ports of a Service and allocates the missing ones.
///
/// # Errors
/// `FieldValueInvalid` for a port that is out of range, taken, or repeated in the Service. Only the first error is
/// reported, as by upstream's allocator.
pub(super) fn allocate_node_ports(service: &mut Value, others: Others<'_>) -> Result<(), Errors> {
    if !["NodePort", "LoadBalancer"].contains(&service["spec"]["type"].as_str().unwrap_or_default()) {
        return Ok(());
    }
    let ports = |service: &Value| -> Vec<i64> {
        let list = service["spec"]["ports"].as_array().into_iter().flatten();
        let node_ports = list.filter_map(|port| port["nodePort"].as_i64());
        node_ports.chain(service["spec"]["healthCheckNodePort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let mut taken: BTreeSet<i64> = others.flat_map(|other| ports(&other)).collect();
    let mut requested_before = BTreeSet::new();
    let list = service["spec"]["ports"].as_array().into_iter().flatten();
    let requested =
        list.enumerate().map(|(index, port)| (index, port["nodePort"].as_i64().unwrap_or(0), text(&port["protocol"])));
    for (index, port, protocol) in requested.filter(|(_, port, _)| *port != 0) {
        // One port may serve several protocols of the same Service.
        let is_repeated = !requested_before.insert((port, protocol));
        if !NODE_PORTS.contains(&port) || is_repeated || taken.contains(&port) {
            let field = format!("spec.ports[{index}].nodePort");
            let why = format!("must be a free port from {} to {}", NODE_PORTS.start(), NODE_PORTS.end());
            return Err(Errors::collect(|errors| errors.invalid(&field, &port.into(), &why)));
        }
    }
    taken.extend(ports(service));
    allocate_missing_ports(service, &taken);
    Ok(())
}

/// Allocates node ports: one per port of the Service, and one for the health check of its load balancer. It takes the
/// lowest free port; upstream draws a random one (`PortAllocator.AllocateNext` in
/// `pkg/registry/core/service/portallocator`). Without a free port the field remains unset.
fn allocate_missing_ports(service: &mut Value, taken: &BTreeSet<i64>) {
    let has_health_check = validation::needs_health_check(&service["spec"]);
    let mut free_ports = NODE_PORTS.filter(|port| !taken.contains(port));
    let mut set_free_port = |object: &mut Value, field: &str| {
        if object[field].as_i64().unwrap_or(0) == 0
            && let Some(free) = free_ports.next()
        {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_beyond_free_node_ports_remain_unset() {
        let ports: Vec<Value> = (1..=60_000).map(|port| json!({ "port": port })).collect();
        let mut service = json!({ "spec": { "type": "NodePort", "ports": ports } });
        allocate_missing_ports(&mut service, &BTreeSet::from([30_001]));
        let ports = service["spec"]["ports"].as_array().unwrap();
        let allocated: Vec<i64> = ports.iter().map_while(|port| port["nodePort"].as_i64()).collect();
        assert_eq!((allocated.len(), &allocated[..2]), (2_767, &[30_000, 30_002][..]));
    }
}
