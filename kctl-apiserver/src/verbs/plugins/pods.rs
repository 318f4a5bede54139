//! The admission plugins of pods: their priority, and what the class of their runtime adds.

use serde_json::Value;

use crate::{
    request::Call,
    status::{GroupResource, Refusal},
    store::State,
};

/// What pods do whose class says nothing.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";

pub(super) fn admit(state: &State, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    give_priority(state, call, pod)?;
    give_runtime(state, call, pod)
}

fn forbidden(call: &Call, pod: &Value, why: &str) -> Refusal {
    Refusal::forbidden(&call.resource.of, pod["metadata"]["name"].as_str().unwrap_or_default(), why)
}

/// The admission plugin `Priority`: a new pod has the priority of its class, or of the one for pods without. Webhooks are
/// shown it.
pub(in crate::verbs) fn give_priority(state: &State, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let of = GroupResource::new("scheduling.k8s.io", "priorityclasses");
    let class = if named.is_empty() {
        let of_all = state.objects(&of, None).filter(|class| class["globalDefault"] == true);
        of_all.min_by_key(|class| class["value"].as_i64())
    } else {
        let Some(found) = state.get(&of, &(String::new(), named.clone())) else {
            return Err(forbidden(call, pod, &format!("no PriorityClass with name {named} was found")));
        };
        Some(found)
    };
    let (mut priority, mut policy) = (0, DEFAULT_POLICY.to_owned());
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        priority = class["value"].as_i64().unwrap_or(0);
        class["preemptionPolicy"].as_str().unwrap_or(DEFAULT_POLICY).clone_into(&mut policy);
    }
    let spec = &pod["spec"];
    if let Some(given) = spec["priority"].as_i64().filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(forbidden(call, pod, &why));
    }
    if let Some(given) = spec["preemptionPolicy"].as_str().filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(call, pod, &why));
    }
    pod["spec"]["priority"] = priority.into();
    pod["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

/// The admission plugin `RuntimeClass`: overhead and place of a pod are those that its class says.
fn give_runtime(state: &State, call: &Call, pod: &mut Value) -> Result<(), Refusal> {
    let Some(named) = pod["spec"]["runtimeClassName"].as_str().map(str::to_owned) else {
        if pod["spec"]["overhead"].as_object().is_none_or(serde_json::Map::is_empty) {
            return Ok(());
        }
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(forbidden(call, pod, why));
    };
    let of = GroupResource::new("node.k8s.io", "runtimeclasses");
    let Some(class) = state.get(&of, &(String::new(), named.clone())) else {
        return Err(forbidden(call, pod, &format!("pod rejected: RuntimeClass {named:?} not found")));
    };
    let (fixed, given) = (&class["overhead"]["podFixed"], &pod["spec"]["overhead"]);
    if fixed.is_object() && given.is_object() && fixed != given {
        let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        return Err(forbidden(call, pod, why));
    }
    if fixed.is_object() {
        pod["spec"]["overhead"] = fixed.clone();
    }
    for (label, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let known = &pod["spec"]["nodeSelector"][label];
        if !known.is_null() && known != value {
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{label}] = {}; \
                 pod.spec.nodeSelector[{label}] = {}",
                value.as_str().unwrap_or_default(),
                known.as_str().unwrap_or_default()
            );
            return Err(forbidden(call, pod, &why));
        }
        pod["spec"]["nodeSelector"][label] = value.clone();
    }
    for toleration in class["scheduling"]["tolerations"].as_array().into_iter().flatten() {
        match &mut pod["spec"]["tolerations"] {
            Value::Array(list) if list.contains(toleration) => {}
            Value::Array(list) => list.push(toleration.clone()),
            none => *none = Value::Array(vec![toleration.clone()]),
        }
    }
    Ok(())
}
