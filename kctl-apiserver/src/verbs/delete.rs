//! `DELETE` of one object and of many: grace, finalizers, propagation, preconditions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, body, list, strategy};
use crate::{
    kinds::Resource,
    request::Call,
    status::{Cause, GroupResource, Refusal},
    store::{Key, State},
};

/// What happens to dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How long an object may go on living.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// What the object says.
    Default,
    Seconds(i64),
}

/// Finalizers by which the garbage collector holds an object until its dependents are dealt with.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

pub(super) fn delete(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let options = options(call)?;
    let of = &call.resource.of;
    let object = state.get(of, &call.key()).ok_or_else(|| Refusal::not_found(of, &call.name))?;
    check_preconditions(&call.resource, &object, &options)?;
    if call.dry_run() {
        return Ok(answer(&call.resource, &object, true));
    }
    let (last, gone) =
        remove_object(state, &call.resource, &call.key(), &object, propagation(&options)?, grace(call, &options)?);
    Ok(answer(&call.resource, &last, gone))
}

fn answer(resource: &Resource, object: &Arc<Value>, gone: bool) -> Answer {
    if !gone || strategy::answers_deleted(resource) {
        return Answer::ok(object.clone());
    }
    let meta = &object["metadata"];
    let mut details = json!({ "name": meta["name"], "kind": resource.of.resource, "uid": meta["uid"] });
    if !resource.of.group.is_empty() {
        details["group"] = resource.of.group.clone().into();
    }
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
    Answer::ok(status)
}

pub(super) fn delete_collection(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let options = options(call)?;
    let (propagation, grace) = (propagation(&options)?, grace(call, &options)?);
    let selector = list::selector(call)?;
    let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let revision = state.revision;
    let table = state.table(&call.resource.of);
    let matching = table.range(namespace, None).filter(|(_, object)| selector.matches(object));
    let doomed: Vec<(Key, Arc<Value>)> = matching.map(|(key, object)| (key.clone(), object.clone())).collect();
    if !call.dry_run() {
        for (key, object) in &doomed {
            remove_object(state, &call.resource, key, object, propagation, grace);
        }
    }
    let items: Vec<Value> = doomed.iter().map(|(_, object)| list::item(&call.resource, object)).collect();
    Ok(Answer::ok(json!({
        "kind": call.resource.list_kind,
        "apiVersion": call.resource.api_version(),
        "metadata": { "resourceVersion": revision.to_string() },
        "items": items,
    })))
}

fn options(call: &Call) -> Result<Value, Refusal> {
    let mut options = if call.body.is_empty() { json!({}) } else { body::read_built_in(call, "DeleteOptions")? };
    if !call.params.text("propagationPolicy").is_empty() {
        options["propagationPolicy"] = call.params.text("propagationPolicy").into();
    }
    Ok(options)
}

fn propagation(options: &Value) -> Result<Propagation, Refusal> {
    if options["orphanDependents"] == true {
        return Ok(Propagation::Orphan);
    }
    match options["propagationPolicy"].as_str().unwrap_or_default() {
        "" | "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => {
            let cause = Cause {
                reason: "FieldValueNotSupported",
                message: format!(
                    r#"Unsupported value: {other:?}: supported values: "Foreground", "Background", "Orphan", "nil""#
                ),
                field: "propagationPolicy".into(),
            };
            Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", &[cause]))
        }
    }
}

fn grace(call: &Call, options: &Value) -> Result<Grace, Refusal> {
    let given = match call.params.number("gracePeriodSeconds")? {
        Some(seconds) => Some(seconds),
        None => options["gracePeriodSeconds"].as_i64(),
    };
    Ok(given.map_or(Grace::Default, |seconds| Grace::Seconds(seconds.max(0))))
}

fn check_preconditions(resource: &Resource, object: &Value, options: &Value) -> Result<(), Refusal> {
    for (field, shown, hint) in [
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ] {
        let (Some(wanted), Some(known)) =
            (options["preconditions"][field].as_str(), object["metadata"][field].as_str())
        else {
            continue;
        };
        if wanted != known {
            let why = format!(
                "the {shown} in the precondition ({wanted}) does not match the {shown} in record ({known}). {hint}"
            );
            let of = GroupResource::new(&resource.of.group, resource.kind());
            return Err(Refusal::conflict(&of, object["metadata"]["name"].as_str().unwrap_or_default(), &why));
        }
    }
    Ok(())
}

/// Removes an object, or marks it as being deleted when something holds it. Returns its last state and whether it is
/// gone (`k8s.io/apiserver/pkg/registry/generic/registry/store.go`, `Delete`).
pub(crate) fn remove_object(
    state: &mut State,
    resource: &Resource,
    key: &Key,
    object: &Arc<Value>,
    propagation: Propagation,
    grace: Grace,
) -> (Arc<Value>, bool) {
    let mut new = Value::clone(object);
    let seconds = grace_seconds(resource, object, grace);
    set_finalizers(&mut new, propagation);
    let namespace = resource.of.group.is_empty() && resource.of.resource == "namespaces";
    let finalizers = |field: &Value| field.as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let held = finalizers(&new["metadata"]["finalizers"]) || (namespace && finalizers(&new["spec"]["finalizers"]));
    let marked = object["metadata"]["deletionTimestamp"].is_string();
    let shorter = object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_none_or(|left| seconds < left);
    // What goes at once is answered as it was; only pods end gracefully even then.
    let at_once = !held && !marked && seconds == 0 && !is_pod(resource);
    if at_once {
        state.remove(&resource.of, key);
        return (new.into(), true);
    }
    if !marked || (shorter && seconds == 0) {
        mark(state, &mut new, seconds, resource, namespace);
    } else if shorter {
        new["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
    }
    let left = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    if held || left > 0 {
        if new == **object {
            return (object.clone(), false);
        }
        return (state.put(&resource.of, key.clone(), new), false);
    }
    state.remove(&resource.of, key);
    new["metadata"]["resourceVersion"] = state.revision.to_string().into();
    (new.into(), true)
}

fn is_pod(resource: &Resource) -> bool {
    resource.of.group.is_empty() && resource.of.resource == "pods"
}

/// Pods that a kubelet may be running end gracefully; everything else at once.
fn grace_seconds(resource: &Resource, object: &Value, grace: Grace) -> i64 {
    let runs = object["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = ["Succeeded", "Failed"].iter().any(|phase| object["status"]["phase"] == *phase);
    if !is_pod(resource) || !runs || ended {
        return 0;
    }
    match grace {
        Grace::Seconds(seconds) => seconds,
        Grace::Default => object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30),
    }
}

fn set_finalizers(object: &mut Value, propagation: Propagation) {
    let known = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let mut finalizers: Vec<Value> =
        known.iter().filter(|name| *name != FOREGROUND && *name != ORPHAN).cloned().collect();
    match propagation {
        Propagation::Foreground => finalizers.push(FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(ORPHAN.into()),
        // A second, plain delete does not take back what the first has asked for.
        Propagation::Background if object["metadata"]["deletionTimestamp"].is_string() => finalizers = known,
        Propagation::Background => {}
    }
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), finalizers.into());
    }
}

fn mark(state: &State, object: &mut Value, seconds: i64, resource: &Resource, namespace: bool) {
    let now = state.clock.now();
    let due = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    object["metadata"]["deletionTimestamp"] = crate::clock::seconds(due).into();
    if namespace {
        object["status"]["phase"] = "Terminating".into();
        return;
    }
    object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
    if strategy::counts_generations(resource) {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        object["metadata"]["generation"] = (generation + 1).into();
    }
}
