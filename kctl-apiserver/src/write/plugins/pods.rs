//! Admission plugins of Pods: `Priority`, `RuntimeClass` and `PodTopologyLabels`.

use serde_json::{Map, Value};

use crate::{
    amounts, field_errors::text, metadata, request::RequestInfo, state::State, status::StatusError,
    validation::warnings, write::plugins::Forbid,
};

/// The preemption policy of a `PriorityClass` that names none, and of a Pod without a class.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";
/// Labels that are copied from a node to its Pods (`PodTopologyLabels`).
const TOPOLOGY: &[&str] = &["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Completes a new Pod.
///
/// Errors are `Forbidden`. Topology labels come from the Node, if the Pod names one at creation.
pub(super) fn fill(state: &State, info: &RequestInfo, pod: &mut Value) -> Result<(), StatusError> {
    give_priority(state, info, pod)?;
    give_runtime(state, info, pod)?;
    for (label, value) in topology(state, text(&pod["spec"]["nodeName"])) {
        pod["metadata"]["labels"][label] = value;
    }
    Ok(())
}

/// Copies `AppArmor` profiles from annotations to the containers (`applyAppArmorVersionSkew`).
///
/// The field takes precedence over the annotation. Invalid annotations are reported with the same warning and otherwise
/// ignored.
pub(super) fn take_profiles(info: &RequestInfo, pod: &mut Value) {
    if pod["spec"]["os"]["name"] == "windows" {
        return;
    }
    let (annotations, of_pod) =
        (pod["metadata"]["annotations"].clone(), pod["spec"]["securityContext"]["appArmorProfile"].clone());
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let key = format!("{}{}", warnings::APP_ARMOR, text(&container["name"]));
            let Some(annotation) = annotations[&key].as_str() else { continue };
            if container["securityContext"]["appArmorProfile"].is_object() {
                continue;
            }
            let profile = warnings::profile_of(annotation);
            if profile.as_ref() == Some(&of_pod) {
                continue;
            }
            if let Some(profile) = profile {
                container["securityContext"]["appArmorProfile"] = profile;
            }
            info.round.warn(&warnings::old_profile(&format!("metadata.annotations[{key}]")));
        }
    }
}

/// Returns the labels that a node gives its Pods. An unknown node gives none.
///
/// They overwrite labels of the same name in the Pod.
pub(crate) fn topology(state: &State, node: &str) -> Map<String, Value> {
    let node = state.object(&crate::kinds::core::node::KIND, "", node);
    let labels = node.iter().flat_map(|node| node["metadata"]["labels"].as_object().into_iter().flatten());
    labels
        .filter(|(label, _)| TOPOLOGY.contains(&label.as_str()))
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}

/// Returns the `Forbidden` error of a Pod.
pub(super) fn forbidden(info: &RequestInfo, pod: &Value, why: &str) -> StatusError {
    StatusError::forbidden(&info.resource.id, metadata::name_in_errors(pod), why)
}

/// Sets the priority of a new Pod: that of its class, or of the global default class (plugin `Priority`).
///
/// If there are several global defaults, the one with the lowest value is used. A priority or policy that the client
/// sent must be equal to the computed one.
fn give_priority(state: &State, info: &RequestInfo, pod: &mut Value) -> Result<(), StatusError> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let kind = &crate::kinds::scheduling::priority_class::KIND;
    let class = if named.is_empty() {
        let of_all = state.objects_of(kind, None).filter(|class| class["globalDefault"] == true);
        of_all.min_by_key(|class| class["value"].as_i64())
    } else {
        let Some(found) = state.object(kind, "", &named) else {
            return Err(forbidden(info, pod, &format!("no PriorityClass with name {named} was found")));
        };
        Some(found)
    };
    let (mut priority, mut policy) = (0, DEFAULT_POLICY.to_owned());
    if let Some(class) = class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
        priority = class["value"].as_i64().unwrap_or(0);
        class["preemptionPolicy"].as_str().unwrap_or(DEFAULT_POLICY).clone_into(&mut policy);
    }
    for (field, computed) in [("priority", Value::from(priority)), ("preemptionPolicy", policy.into())] {
        let value = &pod["spec"][field];
        if !value.is_null() && *value != computed {
            let why = format!("spec.{field}: must be {computed} as the PriorityClass has it, found {value}");
            return Err(forbidden(info, pod, &why));
        }
        pod["spec"][field] = computed;
    }
    Ok(())
}

/// Keeps the priority of an updated Pod: a client that replaces a Pod may omit the fields that the plugin `Priority`
/// set.
///
/// A changed value is reported by validation: both fields are immutable.
pub(super) fn keep_priority(old: &Value, pod: &mut Value) {
    for name in ["priority", "preemptionPolicy"] {
        if pod["spec"][name].is_null() && !old["spec"][name].is_null() {
            pod["spec"][name] = old["spec"][name].clone();
        }
    }
}

/// Returns the name of the Pod's `RuntimeClass`, and the class if it exists.
///
/// `None` if the Pod names no class.
fn runtime_class(state: &State, pod: &Value) -> Option<(String, Option<std::sync::Arc<Value>>)> {
    let named = pod["spec"]["runtimeClassName"].as_str()?.to_owned();
    let class = state.object(&crate::kinds::node::runtime_class::KIND, "", &named);
    Some((named, class))
}

/// Sets the overhead, node selector and tolerations of the Pod's `RuntimeClass` (plugin `RuntimeClass`).
///
/// Conflicts between Pod and class are `Forbidden`. Tolerations are merged, those of the Pod first.
fn give_runtime(state: &State, info: &RequestInfo, pod: &mut Value) -> Result<(), StatusError> {
    let Some((named, class)) = runtime_class(state, pod) else { return Ok(()) };
    let Some(class) = class else {
        return Err(forbidden(info, pod, &format!("spec.runtimeClassName: there is no RuntimeClass {named:?}")));
    };
    let (fixed, overhead) = (&class["overhead"]["podFixed"], &pod["spec"]["overhead"]);
    if fixed.is_object() {
        let is_given = overhead.as_object().is_some_and(|overhead| !overhead.is_empty());
        if is_given && amounts::read(fixed) != amounts::read(overhead) {
            return Err(forbidden(info, pod, OTHER_OVERHEAD));
        }
        pod["spec"]["overhead"] = fixed.clone();
    }
    for (label, value) in class["scheduling"]["nodeSelector"].as_object().into_iter().flatten() {
        let current = &pod["spec"]["nodeSelector"][label];
        if !current.is_null() && current != value {
            let why =
                format!("spec.nodeSelector[{label}]: must be {value} as the RuntimeClass has it, found {current}");
            return Err(forbidden(info, pod, &why));
        }
        pod["spec"]["nodeSelector"][label] = value.clone();
    }
    if class["scheduling"].is_object() {
        let list = |object: &Value| object["tolerations"].as_array().cloned().unwrap_or_default();
        let merged = merged(&[list(&pod["spec"]), list(&class["scheduling"])].concat());
        if !merged.is_empty() {
            pod["spec"]["tolerations"] = merged.into();
        }
    }
    Ok(())
}

/// Returns tolerations without those that another one covers (`MergeTolerations`).
///
/// The order of the remaining ones is kept.
fn merged(all: &[Value]) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_known = merged.iter().any(|existing| covers(existing, toleration));
        let comes = all[index + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !is_known && !comes {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns `true` if a toleration tolerates all that another one does.
///
/// A toleration with fewer seconds is covered by one with more or without a limit.
fn covers(whole: &Value, part: &Value) -> bool {
    let same = |field: &str| text(&whole[field]) == text(&part[field]);
    let is = |toleration: &Value, operator: &str| text(&toleration["operator"]) == operator;
    let seconds = |toleration: &Value| toleration["tolerationSeconds"].as_i64();
    let lasts = seconds(whole).is_none_or(|most| seconds(part).is_some_and(|seconds| seconds <= most));
    whole == part
        || ((same("key") || (text(&whole["key"]).is_empty() && is(whole, "Exists")))
            && (same("effect") || text(&whole["effect"]).is_empty())
            && (whole["effect"] != "NoExecute" || lasts)
            && (is(whole, "Exists")
                || (["", "Equal"].contains(&text(&whole["operator"])) && is(part, "Equal") && same("value"))))
}

/// The message about an overhead that differs from the `RuntimeClass`.
const OTHER_OVERHEAD: &str = "spec.overhead: must be that of the RuntimeClass";

/// Checks that the overhead of a Pod is that of its `RuntimeClass`.
///
/// Runs after webhooks, which may have changed the overhead.
pub(super) fn check_overhead(state: &State, forbid: &Forbid<'_>, pod: &Value) -> Result<(), StatusError> {
    let class = match runtime_class(state, pod) {
        Some((named, None)) => {
            return forbid.reject(&format!("spec.runtimeClassName: there is no RuntimeClass {named:?}"));
        }
        Some((_, class)) => class,
        None => None,
    };
    let overhead = &pod["spec"]["overhead"];
    let fixed = class.as_ref().map(|class| &class["overhead"]["podFixed"]).filter(|fixed| fixed.is_object());
    let is_other = fixed.map_or(overhead.is_object(), |fixed| amounts::read(fixed) != amounts::read(overhead));
    if is_other { forbid.reject(OTHER_OVERHEAD) } else { Ok(()) }
}

/// Checks that at most one `PriorityClass` is the global default (plugin `Priority`).
pub(super) fn one_default(state: &State, info: &RequestInfo, class: &Value) -> Result<(), StatusError> {
    let name = &class["metadata"]["name"];
    let is_other = |other: &Value| other["globalDefault"] == true && other["metadata"]["name"] != *name;
    let Some(other) = state.objects(&info.resource.id, None).find(|other| is_other(other)) else { return Ok(()) };
    if class["globalDefault"] != true {
        return Ok(());
    }
    let other = other["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(StatusError::forbidden(&info.resource.id, name.as_str().unwrap_or_default(), &why))
}
