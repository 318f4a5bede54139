//! `POST` of a new object.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, admission, body, escalation, judge, ownership, strategy};
use crate::{
    admit, apply, crd,
    request::Call,
    status::{GroupResource, Refusal},
    store::{Key, State},
};

/// Generated names are tried as often as the real server does (`maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS_MAX: usize = 8;
/// Longest part of a generated name that the user chooses.
const NAME_BASE_LEN_MAX: usize = 58;

pub(super) fn create(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let body::Decoded { object, mut warnings } = body::read(call)?;
    warnings.extend(body::undomained_finalizers(call, None, &object));
    if let Some(reviewed) = super::reviews::review(state, call, &object)? {
        return Ok(Answer::created(reviewed));
    }
    let object = store(state, call, object, own_all)?;
    Ok(Answer::created(object).with_warnings(warnings))
}

/// All that a new object has is its creator's.
#[allow(clippy::unnecessary_wraps, reason = "as `store` takes it: an apply may be refused")]
pub(super) fn own_all(call: &Call, state: &State, object: &mut Value) -> Result<(), Refusal> {
    apply::update(&Writing::of(call, state).request(), None, object);
    Ok(())
}

/// Who writes, for managedFields.
pub(super) struct Writing<'a> {
    call: &'a Call,
    manager: String,
    api_version: String,
    now: String,
}

impl<'a> Writing<'a> {
    pub(super) fn of(call: &'a Call, state: &State) -> Self {
        let api_version = call.resource.api_version();
        Self { call, manager: call.field_manager(), api_version, now: state.clock.seconds() }
    }

    pub(super) fn request(&self) -> apply::Request<'_> {
        apply::Request {
            schema: self.call.resource.schema(),
            manager: &self.manager,
            subresource: &self.call.subresource,
            api_version: &self.api_version,
            now: &self.now,
            force: self.call.params.flag("force"),
        }
    }
}

/// Stores a new object; `own` says whose fields these are.
pub(super) fn store(
    state: &mut State,
    call: &Call,
    mut object: Value,
    own: impl FnOnce(&Call, &State, &mut Value) -> Result<(), Refusal>,
) -> Result<std::sync::Arc<Value>, Refusal> {
    let resource = &call.resource;
    set_namespace(call, &mut object)?;
    escalation::check(state, call, &object)?;
    check_namespace(state, call, object["metadata"]["name"].as_str().unwrap_or_default())?;
    let version = object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse::<u64>().ok());
    if version.is_some_and(|version| version > 0) {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let sent = object.clone();
    strategy::prepare_create(state, resource, &mut object);
    match resource.schema() {
        Some(schema) if resource.custom.is_some() => crd::default(schema, &mut object),
        _ => admit::default_object(&resource.api_version(), resource.kind(), &mut object),
    }
    let mut owned = object.clone();
    ownership::leave_to_server(resource, &sent, &mut owned);
    own(call, state, &mut owned)?;
    match owned["metadata"]["managedFields"].take() {
        Value::Null => {}
        managed => object["metadata"]["managedFields"] = managed,
    }
    admission::admit(state, call, &mut object)?;
    let key = name(state, call, &mut object);
    judge::validate(call, None, &object, Vec::new())?;
    if state.get(&resource.of, &key).is_some() {
        return Err(Refusal::already_exists(&resource.of, &key.1));
    }
    if call.dry_run() {
        return Ok(object.into());
    }
    Ok(state.put(&resource.of, key, object))
}

fn set_namespace(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    if !call.resource.listed.namespaced {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("namespace");
        }
        return Ok(());
    }
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !given.is_empty() && given != call.namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object["metadata"]["namespace"] = call.namespace.clone().into();
    Ok(())
}

fn name(state: &mut State, call: &Call, object: &mut Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (given, base) = (text("name"), text("generateName"));
    if !given.is_empty() || base.is_empty() {
        return (call.namespace.clone(), given);
    }
    let base: String = base.chars().take(NAME_BASE_LEN_MAX).collect();
    let mut key = Key::default();
    for _ in 0..NAME_ATTEMPTS_MAX {
        key = (call.namespace.clone(), format!("{base}{}", state.chance.suffix()));
        if state.get(&call.resource.of, &key).is_none() {
            break;
        }
    }
    object["metadata"]["name"] = key.1.clone().into();
    key
}

fn check_namespace(state: &State, call: &Call, name: &str) -> Result<(), Refusal> {
    if call.namespace.is_empty() {
        return Ok(());
    }
    let (of, namespace) = (GroupResource::new("", "namespaces"), &call.namespace);
    let Some(found) = state.get(&of, &(String::new(), namespace.clone())) else {
        return Err(Refusal::not_found(&of, namespace));
    };
    if found["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut refusal = Refusal::forbidden(&call.resource.of, name, &why);
    refusal.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(refusal)
}
