//! The admission plugin `Priority`: gives a new pod the priority of its class.

use serde_json::Value;

use crate::{
    request::Call,
    status::{GroupResource, Refusal},
    store::State,
};

/// Classes that every cluster has.
const OF_SYSTEM: &[&str] = &["system-cluster-critical", "system-node-critical"];

pub(super) fn admit(state: &State, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    if (call.resource.of.group.as_str(), call.resource.of.resource.as_str()) != ("", "pods") {
        return Ok(());
    }
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
