//! `POST` of a new object.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, body, escalation, judge, ownership, plugins, strategy};
use crate::{
    admission::{self, Attributes},
    admit, apply, autoscaling,
    controllers::definitions,
    conversion, crd,
    kinds::{self, core::pod},
    registry::{Resource, kind::Review},
    request::{Call, Operation, Verb},
    state::State,
    status::Refusal,
    store::{DEFINITIONS, Key},
    ways::set,
};

/// Generated names are tried as often as the real server does (`maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS_MAX: usize = 8;
/// Longest part of a generated name that the user chooses.
const NAME_BASE_LEN_MAX: usize = 58;

pub(super) fn create(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let object = body::read(call)?;
    if call.resource.rules.review == Some(Review::Binding) {
        let mut binding = object;
        wipe(call, &mut binding)?;
        return super::subresources::bind_named(state, call, binding);
    }
    if super::reviews::is_of(call) {
        let mut asked = object;
        wipe(call, &mut asked)?;
        return Ok(Answer::created(super::reviews::review(state, call, asked)?));
    }
    Ok(Answer::created(store(state, call, object, own_all)?))
}

/// Takes away what only the server says of an object, also of one that is not stored (`rest.WipeObjectMetaSystemFields`).
fn wipe(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    set_namespace(call, object)?;
    let fields =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"];
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| !fields.contains(&field.as_str()));
    }
    Ok(())
}

/// All that a new object has is its creator's.
#[allow(clippy::unnecessary_wraps, reason = "as `store` takes it: an apply may be refused")]
pub(super) fn own_all(call: &Call, state: &State, object: &mut Value) -> Result<(), Refusal> {
    apply::update(&Writing::of(call, state).request(), None, object);
    call.session.settled()
}

/// Who writes, for managedFields.
pub(super) struct Writing<'a> {
    call: &'a Call,
    manager: String,
    api_version: String,
    versions: conversion::FieldVersions<'a>,
    now: String,
}

impl<'a> Writing<'a> {
    pub(super) fn of(call: &'a Call, state: &'a State) -> Self {
        let (manager, api_version) = (call.field_manager(), call.resource.api_version());
        Self {
            call,
            manager,
            api_version,
            versions: conversion::FieldVersions { state, call },
            now: state.clock.seconds(),
        }
    }

    pub(super) fn request(&self) -> apply::Request<'_> {
        apply::Request {
            schema: self.call.resource.schema(),
            manager: &self.manager,
            subresource: &self.call.subresource,
            api_version: &self.api_version,
            versions: &self.versions,
            now: &self.now,
            has_status: self.call.resource.has_status(),
            resets: super::strategy::reset_fields(&self.call.resource, &self.call.subresource),
            force: self.call.params.flag("force"),
        }
    }
}

/// What a new object is before anybody has changed it.
fn prepared(state: &mut State, call: &Call, sent: &Value) -> Value {
    let mut object = sent.clone();
    autoscaling::within(&mut object, |object| strategy::prepare_create(state, &call.resource, object));
    default(call, &mut object, None);
    (call.resource.rules.set_times)(state, &mut object);
    object
}

/// Fills in what the kind says of fields that were left out; what is as in the stored object has that already.
pub(super) fn default(call: &Call, object: &mut Value, stored: Option<&Value>) {
    let resource = &call.resource;
    match resource.schema() {
        Some(schema) if resource.custom.is_some() && call.applies() => crd::default_with_nulls(schema, object),
        Some(schema) if resource.custom.is_some() => crd::default(schema, object),
        _ => {
            if let Some(stored) = stored {
                (resource.rules.keep_before_default)(stored, object);
                keep_set_once(resource, object, |object| default_built_in(resource, object, Some(stored)));
            } else {
                default_built_in(resource, object, None);
            }
        }
    }
    if resource.rules.is_autoscaler {
        autoscaling::settled(object);
    }
}

fn default_built_in(resource: &Resource, object: &mut Value, stored: Option<&Value>) {
    let api_version = resource.api_version();
    let of = admit::Type { api_version: &api_version, kind: resource.kind(), rules: resource.rules };
    admit::default_object(of, object, stored);
}

/// Sets defaults of an object that exists, but for those of the status that only a new object gets.
pub(super) fn keep_set_once(resource: &Resource, object: &mut Value, default: impl FnOnce(&mut Value)) {
    let Some(field) = resource.rules.set_once else { return default(object) };
    let known = object["status"].get(field).cloned();
    default(object);
    set(&mut object["status"], field, known);
}

/// Fills in what an object has when it is read, which is what webhooks see.
pub(super) fn default_as_read(call: &Call, object: &mut Value) {
    let resource = &call.resource;
    if resource.custom.is_some() || resource.rules.is_autoscaler {
        default(call, object, None);
    } else {
        let api_version = resource.api_version();
        let of = admit::Type { api_version: &api_version, kind: resource.kind(), rules: resource.rules };
        admit::default_decoded(of, object);
    }
}

/// The managedFields of a new object.
fn managed_fields(
    state: &State,
    call: &Call,
    sent: &Value,
    prepared: &Value,
    own: impl Fn(&Call, &State, &mut Value) -> Result<(), Refusal>,
) -> Result<Value, Refusal> {
    let mut owned = prepared.clone();
    ownership::leave_to_server(&call.resource, sent, &mut owned);
    own(call, state, &mut owned)?;
    Ok(owned["metadata"]["managedFields"].take())
}

/// The object as mutating admission leaves it, with its managedFields: what is changed there is nobody's.
fn mutated(
    state: &mut State,
    call: &Call,
    sent: Value,
    own: impl Fn(&Call, &State, &mut Value) -> Result<(), Refusal>,
) -> Result<(Value, Option<Value>), Refusal> {
    if !admission::may_mutate(state, call) {
        return Ok((sent, None));
    }
    // Nothing is drawn for what is only shown.
    let drawn = (state.chance.clone(), state.n_addresses);
    let whole = prepared(state, call, &sent);
    (state.chance, state.n_addresses) = drawn;
    let managed = managed_fields(state, call, &sent, &whole, own)?;
    let mut shown = sent;
    let status = shown.get("status").cloned();
    wipe(call, &mut shown)?;
    default_as_read(call, &mut shown);
    plugins::fill(state, call, &mut shown)?;
    (call.resource.rules.complete_by_plugins)(&mut shown);
    if call.resource.is(&pod::KIND) {
        // The server's view of a new pod comes later.
        shown["status"] = status.unwrap_or_else(|| json!({}));
    }
    if !managed.is_null() {
        shown["metadata"]["managedFields"] = managed;
    }
    let name = shown["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut attributes = Attributes::new(call, Operation::Create, &name, shown);
    admission::mutate(state, &mut attributes)?;
    let mut object = attributes.object.unwrap_or_default();
    let managed = object["metadata"]["managedFields"].take();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
    }
    Ok((object, Some(managed)))
}

/// Stores a new object; `own` says whose fields these are.
pub(super) fn store(
    state: &mut State,
    call: &Call,
    mut object: Value,
    own: impl Fn(&Call, &State, &mut Value) -> Result<(), Refusal>,
) -> Result<Arc<Value>, Refusal> {
    let resource = &call.resource;
    set_namespace(call, &mut object)?;
    check_definition(state, call, object["metadata"]["name"].as_str().unwrap_or_default())?;
    check_namespace(state, call, &object)?;
    let (mut sent, managed) = mutated(state, call, object, &own)?;
    if managed.is_some() {
        set_namespace(call, &mut sent)?;
    }
    escalation::check(state, call, None, &sent)?;
    let version = version_of(call, &sent)?;
    plugins::look(state, call, &sent)?;
    let mut object = prepared(state, call, &sent);
    let managed = managed.map_or_else(|| managed_fields(state, call, &sent, &object, &own), Ok)?;
    super::update::set_managed(&mut object, managed);
    plugins::admit(state, call, &mut object)?;
    let key = name(state, call, &mut object);
    if sent["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        (resource.rules.set_generated_name)(&sent, &mut object);
    }
    judge::validate(call, None, &object, super::admin_access::causes(state, call, None, &object))?;
    call.session.warn_all(admit::warnings_about(&call.resource, None, &object));
    body::warn_of_finalizers(call, None, &object);
    let attributes = Attributes::new(call, Operation::Create, &key.1, object);
    plugins::validate(state, &attributes)?;
    admission::validate(state, &attributes)?;
    let charges = plugins::quotas::check(state, &attributes)?;
    let mut object = attributes.object.unwrap_or_default();
    strategy::read_again(call, &mut object);
    // A dry run does not come as far as the storage, which says so.
    if version > 0 && !call.dry_run() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    if let Some(known) = state.get(&resource.of, &key) {
        let generated = object["metadata"]["generateName"].as_str().is_some_and(|base| !base.is_empty());
        let mut refusal = Refusal::already_exists(&resource.of, &key.1);
        if known["metadata"]["deletionTimestamp"].is_string() {
            refusal.message.insert_str(0, "object is being deleted: ");
        }
        return Err(if generated { refusal.of_a_generated_name() } else { refusal });
    }
    let mut kept = conversion::stored(state, call, object)?;
    if call.dry_run() {
        return Ok(kept.unstored());
    }
    super::sizes::check(state, call, &key, &kept.stored)?;
    charges.write(state);
    let put = state.put(&resource.of, key.clone(), std::mem::take(&mut kept.stored));
    if resource.of == *DEFINITIONS {
        // What is answered has no names yet, as on the real server; the next request finds it served.
        definitions::name(state, &key);
    }
    Ok(kept.answer(put))
}

/// The version that an object names, which a new one has not; zero for none. Who creates by an update need not know that, but
/// has to name one that could be.
fn version_of(call: &Call, object: &Value) -> Result<u64, Refusal> {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    match version.parse() {
        Ok(version) if call.verb == Verb::Create => Ok(version),
        Err(_) if call.verb != Verb::Create && !version.is_empty() => {
            let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message))
        }
        _ => Ok(0),
    }
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

/// Nothing new comes to a definition while its objects go (upstream, `customresource_handler.go`).
fn check_definition(state: &State, call: &Call, name: &str) -> Result<(), Refusal> {
    let definition = state.get(&DEFINITIONS, &(String::new(), call.resource.of.to_string()));
    if call.resource.custom.is_none() || definition.is_none_or(|definition| !crd::is_ending(&definition)) {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(Refusal::forbidden(&call.resource.of, name, why))
}

/// The namespace that a request is about, which has to be there.
pub(super) fn namespace(state: &State, call: &Call) -> Result<Option<Arc<Value>>, Refusal> {
    if call.namespace.is_empty() {
        return Ok(None);
    }
    let of = kinds::core::namespace::KIND.group_resource();
    let found = state.get(&of, &(String::new(), call.namespace.clone()));
    found.map(Some).ok_or_else(|| Refusal::not_found(&of, &call.namespace))
}

/// Nothing new comes to a namespace that is not there or goes; an object that has no name yet is told by what its name
/// begins with (`NamespaceLifecycle`).
pub(super) fn check_namespace(state: &State, call: &Call, object: &Value) -> Result<(), Refusal> {
    let Some(found) = namespace(state, call)? else { return Ok(()) };
    if found["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let namespace = &call.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let of_path = Some(call.name.as_str()).filter(|name| !name.is_empty());
    let name = of_path.or_else(|| text("name")).or_else(|| text("generateName")).unwrap_or("Unknown");
    let mut refusal = Refusal::forbidden(&call.resource.of, name, &why);
    refusal.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(refusal)
}
