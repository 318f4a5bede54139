//! What depends on other objects when one is written: the priority of pods, ports of nodes, the growth of claims.

use serde_json::Value;

use crate::{
    request::Call,
    status::{Cause, GroupResource, Refusal},
    store::State,
};

/// Classes that every cluster has.
const OF_SYSTEM: &[&str] = &["system-cluster-critical", "system-node-critical"];

/// Ports that nodes have for services: `--service-node-port-range`.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Completes a new object, or refuses it.
pub(super) fn admit(state: &State, call: &Call, object: &mut Value) -> Result<(), Refusal> {
    match (call.resource.of.group.as_str(), call.resource.of.resource.as_str()) {
        ("", "pods") => give_priority(state, call, object),
        ("", "services") => give_ports(state, call, object),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            object["spec"]["username"] = call.user.name.clone().into();
            object["spec"]["groups"] = call.user.groups.clone().into();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Completes a changed object, or refuses it.
pub(super) fn admit_change(state: &State, call: &Call, old: &Value, new: &mut Value) -> Result<(), Refusal> {
    match (call.resource.of.group.as_str(), call.resource.of.resource.as_str()) {
        ("", "services") if call.subresource.is_empty() => give_ports(state, call, new),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            stamp_conditions(old, new, &state.clock.seconds());
            Ok(())
        }
        ("", "persistentvolumeclaims") if call.subresource.is_empty() => may_grow(state, call, old, new),
        _ => Ok(()),
    }
}

/// Conditions of a certificate signing request have their times (`populateConditionTimestamps`).
fn stamp_conditions(old: &Value, new: &mut Value, now: &str) {
    let known = old["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in new["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let before = known.iter().find(|one| one["type"] == condition["type"] && one["status"] == condition["status"]);
        let times = [("lastUpdateTime", None), ("lastTransitionTime", before)];
        for (field, before) in times {
            if condition[field].is_null() {
                condition[field] = before.map_or_else(|| now.into(), |before| before[field].clone());
            }
        }
    }
}

/// A bound claim grows when its class allows that (`PersistentVolumeClaimResize`).
fn may_grow(state: &State, call: &Call, old: &Value, new: &Value) -> Result<(), Refusal> {
    let size = |claim: &Value| claim["spec"]["resources"]["requests"]["storage"].clone();
    if old["status"]["phase"] != "Bound" || size(old) == size(new) {
        return Ok(());
    }
    let class = new["spec"]["storageClassName"].as_str().unwrap_or_default();
    let of = GroupResource::new("storage.k8s.io", "storageclasses");
    let found = state.get(&of, &(String::new(), class.into()));
    if found.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(Refusal::forbidden(&call.resource.of, &call.name, why))
}

/// Services that nodes serve have ports there, each its own.
fn give_ports(state: &State, call: &Call, service: &mut Value) -> Result<(), Refusal> {
    if !["NodePort", "LoadBalancer"].contains(&service["spec"]["type"].as_str().unwrap_or_default())
        || service["spec"]["allocateLoadBalancerNodePorts"] == false
    {
        return Ok(());
    }
    let name = service["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let others = state.objects(&call.resource.of, None).filter(|other| {
        other["metadata"]["name"] != name.as_str() || other["metadata"]["namespace"] != call.namespace.as_str()
    });
    let ports = |service: &Value| -> Vec<i64> {
        let list = service["spec"]["ports"].as_array().into_iter().flatten();
        list.filter_map(|port| port["nodePort"].as_i64()).filter(|port| *port != 0).collect()
    };
    let mut taken: Vec<i64> = others.flat_map(|other| ports(other)).collect();
    for (index, port) in ports(service).into_iter().enumerate() {
        let why = if !NODE_PORTS.contains(&port) {
            let (least, most) = (NODE_PORTS.start(), NODE_PORTS.end());
            format!("provided port is not in the valid range. The range of valid ports is {least}-{most}")
        } else if taken.contains(&port) {
            "provided port is already allocated".to_owned()
        } else {
            continue;
        };
        let message = format!("Invalid value: {port}: {why}");
        let field = format!("spec.ports[{index}].nodePort");
        let cause = Cause { reason: "FieldValueInvalid", message, field };
        return Err(Refusal::invalid("", "Service", &name, &[cause]));
    }
    taken.extend(ports(service));
    for port in service["spec"]["ports"].as_array_mut().into_iter().flatten() {
        if port["nodePort"].as_i64().unwrap_or(0) == 0
            && let Some(free) = NODE_PORTS.into_iter().find(|free| !taken.contains(free))
        {
            taken.push(free);
            port["nodePort"] = free.into();
        }
    }
    Ok(())
}

/// The admission plugin `Priority`: a new pod has the priority of its class.
fn give_priority(state: &State, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let forbidden = |why: String| Refusal::forbidden(&call.resource.of, &name, &why);
    let (mut value, mut policy) = (None, "PreemptLowerPriority".to_owned());
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    if !class.is_empty() && !OF_SYSTEM.contains(&class.as_str()) {
        let of = GroupResource::new("scheduling.k8s.io", "priorityclasses");
        let Some(found) = state.get(&of, &(String::new(), class.clone())) else {
            return Err(forbidden(format!("no PriorityClass with name {class} was found")));
        };
        value = found["value"].as_i64();
        if let Some(given) = found["preemptionPolicy"].as_str() {
            given.clone_into(&mut policy);
        }
    }
    let spec = &mut pod["spec"];
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != policy) {
        return Err(forbidden(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    if let Some(value) = value {
        spec["priority"] = value.into();
        spec["preemptionPolicy"] = policy.into();
    }
    Ok(())
}
