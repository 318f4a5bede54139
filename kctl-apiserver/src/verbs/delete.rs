//! `DELETE` of one object and of many: grace, finalizers, propagation, preconditions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, body, list, strategy, versions};
use crate::{
    admission::{self, Attributes},
    bootstrap::is_of_system,
    controllers::definitions,
    decode::{self, Words},
    kinds::Resource,
    request::Call,
    schema::Schema,
    status::{Cause, GroupResource, Refusal},
    store::{DEFINITIONS, Key, State},
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

const KIND: &str = "DeleteOptions";
/// Namespaces that stay.
const LASTING: [&str; 3] = ["default", "kube-public", "kube-system"];

pub(super) fn delete(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let options = options(call)?;
    let (propagation, warning) = propagation(&call.resource, &options.value)?;
    call.session.warn_all(warning);
    let of = &call.resource.of;
    let object = versions::find(state, call)?.ok_or_else(|| Refusal::not_found(of, &call.name))?;
    if of.group.is_empty() && of.resource == "namespaces" && LASTING.contains(&call.name.as_str()) {
        return Err(Refusal::forbidden(of, &call.name, "this namespace may not be deleted"));
    }
    if of.group == "scheduling.k8s.io" && of.resource == "priorityclasses" && is_of_system(&call.name) {
        return Err(Refusal::forbidden(of, &call.name, "this is a system priority class and cannot be deleted"));
    }
    check_preconditions(&call.resource, &object, &options.value)?;
    let grace = options.grace();
    admission::admit_delete(state, Attributes::delete(call, &object, &options.value))?;
    if options.is_dry {
        return Ok(answer(&call.resource, &object, true));
    }
    let kept = state.get(of, &call.key()).unwrap_or_else(|| object.clone());
    let (last, gone) = remove_object(state, &call.resource, &call.key(), &kept, propagation, grace);
    let last = in_version_of(&object, last);
    Ok(answer(&call.resource, &last, gone))
}

/// The last state of an object in the version of what it was before: only its metadata, and the phase of a namespace,
/// are others.
fn in_version_of(before: &Value, last: Arc<Value>) -> Arc<Value> {
    if before["apiVersion"] == last["apiVersion"] {
        return last;
    }
    let mut shown = before.clone();
    shown["metadata"] = last["metadata"].clone();
    shown.into()
}

fn answer(resource: &Resource, object: &Arc<Value>, gone: bool) -> Answer {
    let is_namespace = resource.of.group.is_empty() && resource.of.resource == "namespaces";
    if !gone || is_namespace || strategy::answers_deleted(resource) {
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
    let ((propagation, _), grace) = (propagation(&call.resource, &options.value)?, options.grace());
    let selector = list::selector(call)?;
    let namespace = Some(call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
    let revision = state.revision;
    let table = state.table(&call.resource.of);
    let matching = table.values(namespace).filter(|(_, object)| selector.matches(object));
    let doomed: Vec<(Key, Arc<Value>)> = matching.map(|(key, object)| (key.clone(), object)).collect();
    let shown = versions::all_shown(state, call, doomed.iter().map(|(_, object)| object.clone()).collect())?;
    // One that is refused is the last: those before it are gone. Webhooks are asked about all of them at once.
    let mut refused = None;
    for (index, object) in shown.iter().enumerate() {
        let admitted = check_preconditions(&call.resource, object, &options.value)
            .and_then(|()| admission::admit_delete(state, Attributes::delete(call, object, &options.value)));
        if let Err(refusal) = admitted
            && !call.session.waits()
        {
            refused = Some((index, refusal));
            break;
        }
    }
    if call.session.waits() {
        return Err(Refusal::waiting());
    }
    let n_admitted = refused.as_ref().map_or(doomed.len(), |(index, _)| *index);
    if !options.is_dry {
        for (key, object) in &doomed[..n_admitted] {
            remove_object(state, &call.resource, key, object, propagation, grace);
        }
    }
    if let Some((_, refusal)) = refused {
        return Err(refusal);
    }
    let items: Vec<Value> = shown.iter().map(|object| list::item(&call.resource, object)).collect();
    Ok(Answer::ok(list::all(&call.resource, items, revision)))
}

struct Options {
    value: Value,
    is_dry: bool,
}

impl Options {
    /// A negative time is the shortest.
    fn grace(&self) -> Grace {
        let given = self.value["gracePeriodSeconds"].as_i64();
        given.map_or(Grace::Default, |seconds| Grace::Seconds(if seconds < 0 { 1 } else { seconds }))
    }
}

/// The options in the body, or else those of the query.
fn options(call: &Call) -> Result<Options, Refusal> {
    if call.body.is_empty() {
        let mut value = json!({});
        if !call.params.text("propagationPolicy").is_empty() {
            value["propagationPolicy"] = call.params.text("propagationPolicy").into();
        }
        if call.params.given("orphanDependents") {
            value["orphanDependents"] = call.params.flag("orphanDependents").into();
        }
        if let Some(seconds) = call.params.number("gracePeriodSeconds")? {
            value["gracePeriodSeconds"] = seconds.into();
        }
        return Ok(Options { value, is_dry: call.dry_run() });
    }
    let value = body::read_built_in(call, KIND).map_err(bare)?;
    let (kind, version) = (
        value["kind"].as_str().unwrap_or(KIND),
        value["apiVersion"].as_str().unwrap_or(if call.resource.custom.is_some() { "meta.k8s.io/v1" } else { "v1" }),
    );
    if kind != KIND {
        return Err(Refusal::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if let Some(schema) =
        Schema::named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions").filter(|_| value.is_object())
    {
        decode::typed(schema, KIND, &mut value.clone(), None, Words::OfJson).map_err(Refusal::bad_request)?;
    }
    let runs: Vec<&Value> = value["dryRun"].as_array().into_iter().flatten().collect();
    if runs.iter().any(|run| **run != "All") {
        let message = format!("Unsupported value: {}: supported values: \"All\"", value["dryRun"]);
        let cause = Cause { reason: "FieldValueNotSupported", message, field: "dryRun".into() };
        return Err(Refusal::invalid("meta.k8s.io", KIND, "", &[cause]));
    }
    let is_dry = !runs.is_empty();
    Ok(Options { value, is_dry })
}

/// Here the real server tells the error alone.
fn bare(mut refusal: Refusal) -> Refusal {
    let start = format!("the object provided is unrecognized (must be of type {KIND}): ");
    if let Some((why, _)) = refusal.message.strip_prefix(&start).and_then(|rest| rest.rsplit_once(" (")) {
        let why = why.to_owned();
        refusal.message = why;
    }
    refusal
}

/// What happens to dependents, and what the client is told about that.
fn propagation(resource: &Resource, options: &Value) -> Result<(Propagation, Option<String>), Refusal> {
    let refused = |reason, message| {
        let cause = Cause { reason, message, field: "propagationPolicy".into() };
        Refusal::invalid("meta.k8s.io", KIND, "", &[cause])
    };
    let policy = options["propagationPolicy"].as_str().unwrap_or_default();
    if !options["orphanDependents"].is_null() && !policy.is_empty() {
        let what = "orphanDependents and deletionPropagation cannot be both set";
        return Err(refused("FieldValueInvalid", format!("Invalid value: {policy:?}: {what}")));
    }
    if options["orphanDependents"] == true {
        return Ok((Propagation::Orphan, None));
    }
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let keeps_dependents = [("batch", "jobs"), ("", "replicationcontrollers")].contains(&of);
    match policy {
        "" if keeps_dependents && options["orphanDependents"].is_null() => {
            let text = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                        remove them or set propagationPolicy=Orphan to suppress this warning";
            Ok((Propagation::Orphan, (of.1 == "jobs").then(|| text.into())))
        }
        "" | "Background" => Ok((Propagation::Background, None)),
        "Foreground" => Ok((Propagation::Foreground, None)),
        "Orphan" => Ok((Propagation::Orphan, None)),
        other => {
            let supported = r#"supported values: "Foreground", "Background", "Orphan", "nil""#;
            Err(refused("FieldValueNotSupported", format!("Unsupported value: {other:?}: {supported}")))
        }
    }
}

pub(super) fn check_preconditions(resource: &Resource, object: &Value, options: &Value) -> Result<(), Refusal> {
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
    if resource.of == *DEFINITIONS && object["metadata"]["deletionTimestamp"].is_null() {
        let marked = definitions::mark(state, object);
        return (state.put(&resource.of, key.clone(), marked), false);
    }
    let mut new = Value::clone(object);
    let seconds = grace_seconds(resource, object, grace);
    set_finalizers(&mut new, propagation);
    let namespace = resource.of.group.is_empty() && resource.of.resource == "namespaces";
    let finalizers = |field: &Value| field.as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let held = finalizers(&new["metadata"]["finalizers"]) || (namespace && finalizers(&new["spec"]["finalizers"]));
    let marked = object["metadata"]["deletionTimestamp"].is_string();
    let shorter = object["metadata"]["deletionGracePeriodSeconds"].as_i64().is_none_or(|left| seconds < left);
    // What goes at once is answered as it was; only pods end gracefully even then, and the first delete only marks a namespace.
    let at_once = !held && !marked && seconds == 0 && !is_pod(resource) && !namespace;
    if at_once {
        state.remove(&resource.of, key);
        if strategy::answers_deleted(resource) {
            new["metadata"]["resourceVersion"] = state.revision.to_string().into();
        }
        return (new.into(), true);
    }
    if !marked || (shorter && seconds == 0) {
        mark(state, &mut new, seconds, resource, namespace);
    } else if shorter {
        new["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
    }
    let left = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    if held || left > 0 || (namespace && !marked) {
        if new == **object {
            return (object.clone(), false);
        }
        return (state.put(&resource.of, key.clone(), new), false);
    }
    // It is marked first, which watchers see.
    if !marked {
        new = Value::clone(&state.put(&resource.of, key.clone(), new));
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
    let first = object["metadata"]["deletionTimestamp"].is_null();
    let now = state.clock.now();
    let due = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    object["metadata"]["deletionTimestamp"] = crate::clock::seconds(due).into();
    if namespace {
        object["status"]["phase"] = "Terminating".into();
        return;
    }
    object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
    if strategy::counts_generations(resource) && first {
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        object["metadata"]["generation"] = (generation + 1).into();
    }
}
