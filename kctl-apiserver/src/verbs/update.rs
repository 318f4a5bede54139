//! `PUT`, and what every change of an object that exists has in common.

use std::sync::Arc;

use serde_json::Value;

use super::{Answer, access, admission, body, create::Writing, escalation, judge, strategy};
use crate::{
    admit, apply, crd,
    request::{Call, Verb},
    status::{Cause, GroupResource, Refusal},
    store::{Key, State},
};

/// Resources whose objects a `PUT` creates.
const CREATED_BY_UPDATE: &[(&str, &str)] = &[
    ("", "endpoints"),
    ("", "events"),
    ("", "limitranges"),
    ("", "services"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
    ("scheduling.k8s.io", "priorityclasses"),
];

pub(super) fn replace(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body::Decoded { object: mut new, mut warnings } = body::read(call)?;
    let of = &call.resource.of;
    match_names(call, &mut new)?;
    let Some(old) = state.get(of, &call.key()) else {
        if !(CREATED_BY_UPDATE.contains(&(of.group.as_str(), of.resource.as_str())) && call.subresource.is_empty()) {
            return Err(Refusal::not_found(of, &call.name));
        }
        access::authorize_creation(state, call)?;
        let created = super::create::store(state, call, new, super::create::own_all)?;
        return Ok(Answer::created(created).with_warnings(warnings));
    };
    warnings.extend(body::undomained_finalizers(call, Some(&old), &new));
    let (given, known) = (new["metadata"]["uid"].as_str().unwrap_or_default(), &old["metadata"]["uid"]);
    if !given.is_empty() && given != known {
        let (resource, namespace) = (&of.resource, &call.namespace);
        let place = if namespace.is_empty() { call.name.clone() } else { format!("{namespace}/{}", call.name) };
        return Err(Refusal::conflict(
            of,
            &call.name,
            &format!(
                "StorageError: invalid object, Code: 4, Key: /registry/{resource}/{place}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {}",
                known.as_str().unwrap_or_default()
            ),
        ));
    }
    let written = write(state, call, &old, new, |request, old, new| {
        apply::update(request, Some(old), new);
        Ok(())
    })?;
    Ok(Answer::ok(written).with_warnings(warnings))
}

/// Name and namespace of a sent object are those of the path.
pub(super) fn match_names(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if name != call.name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    if call.resource.listed.namespaced {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if !namespace.is_empty() && namespace != call.namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object["metadata"]["namespace"] = call.namespace.clone().into();
    }
    Ok(())
}

/// Stores a changed object; `own` says whose the changed fields are now.
pub(super) fn write(
    state: &mut State,
    call: &Call,
    old: &Arc<Value>,
    mut new: Value,
    own: impl FnOnce(&apply::Request<'_>, &Value, &mut Value) -> Result<(), Refusal>,
) -> Result<Arc<Value>, Refusal> {
    let resource = &call.resource;
    let version = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    if !["", "0"].contains(&version) && old["metadata"]["resourceVersion"] != version {
        return Err(Refusal::modified(&resource.of, &call.name));
    }
    let is_scale = call.subresource == "scale";
    if version.is_empty() && resource.custom.is_some() && call.verb == Verb::Update && !is_scale {
        let message = "Invalid value: 0: must be specified for an update".into();
        let cause = Cause { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion".into() };
        return Err(Refusal::invalid(&resource.of.group, &resource.of.resource, &call.name, &[cause]));
    }
    escalation::check(state, call, &new)?;
    let causes = judge::changes_of_metadata(call, old, &new);
    strategy::prepare_update(resource, &call.subresource, old, &mut new);
    match resource.schema() {
        Some(schema) if resource.custom.is_some() => crd::default(schema, &mut new),
        _ => admit::default_object(&resource.api_version(), resource.kind(), &mut new),
    }
    admission::admit_change(state, call, old, &mut new)?;
    judge::validate(call, Some(old), &new, causes)?;
    own(&Writing::of(call, state).request(), old, &mut new)?;
    if call.dry_run() {
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        return Ok(new.into());
    }
    Ok(settle(state, &resource.of, call.key(), old, new))
}

/// Puts a changed object in its place: nothing is written when nothing changed, and an object that is being deleted
/// goes with its last finalizer.
pub(crate) fn settle(state: &mut State, of: &GroupResource, key: Key, old: &Arc<Value>, mut new: Value) -> Arc<Value> {
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    let meta = &new["metadata"];
    let held = meta["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let over = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0;
    // A namespace also waits for its spec.finalizers, which the namespace controller removes.
    let held =
        held || new["spec"]["finalizers"].as_array().is_some_and(|all| of.resource == "namespaces" && !all.is_empty());
    if meta["deletionTimestamp"].is_string() && over && !held {
        state.remove(of, &key);
        return new.into();
    }
    if same(old, &new) {
        return old.clone();
    }
    state.put(of, key, new)
}

/// Whether two states differ in nothing but who wrote them when.
fn same(old: &Value, new: &Value) -> bool {
    if old == new {
        return true;
    }
    let timeless = |object: &Value| {
        let mut object = object.clone();
        for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
            entry["time"] = Value::Null;
        }
        object
    };
    timeless(old) == timeless(new)
}
