//! `metadata.managedFields` of a write: the fields that its field manager owns.
//!
//! A client owns what it sends or changes, and not what the server fills in afterwards. [`as_sent`] and
//! `prepare` keep the state of the object from which the fields are computed, and [`set`] computes them.

use serde_json::Value;

use super::{
    Write,
    body::identity,
    prepare::{self, New},
};
use crate::{
    apply, conversion,
    registry::{Resource, kind::OwnedState},
    request::RequestInfo,
    state::State,
    status::StatusError,
};

/// Lists of which an empty one is none.
const NONE_WHEN_EMPTY: &[&str] = &["/spec/tolerations", "/spec/clusterIPs", "/spec/ipFamilies"];

/// How a write changes the owners of fields.
pub(crate) enum Ownership {
    /// The field manager of the request owns what it sets or changes.
    Written,
    /// Apply has computed the managedFields that the object has.
    Applied,
    /// These are the managedFields.
    Given(Value),
}

impl Ownership {
    fn own(
        &self,
        state: &State,
        info: &RequestInfo,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), StatusError> {
        match self {
            Self::Written => own_written(state, info, old, object),
            Self::Applied => Ok(()),
            Self::Given(managed) => {
                set_managed(object, managed.clone());
                Ok(())
            }
        }
    }
}

/// Makes the field manager of a request the owner of what it has changed, or of all of a new object.
pub(crate) fn own_written(
    state: &State,
    info: &RequestInfo,
    old: Option<&Value>,
    object: &mut Value,
) -> Result<(), StatusError> {
    apply::update(&FieldManager::of(info, state).request(), old, object);
    info.round.check_complete()
}

/// The field manager of a request.
pub(crate) struct FieldManager<'a> {
    info: &'a RequestInfo,
    name: String,
    api_version: String,
    versions: conversion::FieldVersions<'a>,
    now: String,
}

impl<'a> FieldManager<'a> {
    pub(crate) fn of(info: &'a RequestInfo, state: &'a State) -> Self {
        let (name, api_version) = (info.field_manager(), info.resource.api_version());
        let versions = conversion::FieldVersions { state, info };
        Self { info, name, api_version, versions, now: state.clock.seconds() }
    }

    pub(crate) fn request(&self) -> apply::Request<'_> {
        apply::Request {
            schema: self.info.resource.schema(),
            manager: &self.name,
            subresource: &self.info.subresource,
            api_version: &self.api_version,
            versions: &self.versions,
            now: &self.now,
            has_status: self.info.resource.has_status(),
            resets: prepare::reset_fields(&self.info.resource, &self.info.subresource),
            force: self.info.params.flag("force"),
        }
    }
}

/// The source of an object's managedFields.
pub(super) enum Owned {
    Fields(Value),
    /// This state of the object.
    State(Value),
    /// The object as it is stored.
    Stored,
}

/// Returns the source of managedFields, which for some updates is the object as it was sent.
pub(super) fn as_sent(info: &RequestInfo, write: &Write) -> Owned {
    write.old().map_or(Owned::Stored, |old| changed_as_sent(info, old, &write.object))
}

fn changed_as_sent(info: &RequestInfo, old: &Value, new: &Value) -> Owned {
    let (resource, rules) = (&info.resource, info.resource.rules);
    // No manager owns what the server gives to an object or copies within it, nor what others have left out.
    let is_filled_in = rules.owned_state == OwnedState::SentByClient
        || (info.subresource.is_empty() && leaves_out(resource, old, new));
    // Nothing is known of the fields of a custom object of another type, also if the write resets all of them.
    let is_custom_status = resource.custom.is_some() && info.subresource == "status";
    // A client owns the fields that it has sent, even if they are not stored.
    let is_part = prepare::writes_part(resource, &info.subresource);
    if !(is_filled_in || is_custom_status || is_part || rules.owned_state == OwnedState::Sent) {
        return Owned::Stored;
    }
    if identity::of_another_type(resource, new).is_some() {
        return Owned::Fields(Value::Null);
    }
    let mut sent = new.clone();
    prepare::default(info, &mut sent, Some(old));
    (rules.complete_owned)(new, &mut sent);
    if is_filled_in {
        leave_filled_in(resource, new, &mut sent);
        prepare::reset(resource, &info.subresource, old, &mut sent);
    }
    Owned::State(sent)
}

/// Returns the managedFields that a write would have without mutating admission, which sees them.
pub(super) fn before_admission(state: &mut State, info: &RequestInfo, write: &Write) -> Result<Value, StatusError> {
    let mut object = match as_sent(info, write) {
        Owned::Fields(managed) => return Ok(managed),
        Owned::State(sent) => sent,
        Owned::Stored => {
            // Nothing is drawn for an object that is only shown.
            let drawn = (state.chance.clone(), state.n_addresses);
            let mut object = write.object.clone();
            prepare::prepare_object(state, info, write.old.as_ref(), &mut object);
            (state.chance, state.n_addresses) = drawn;
            if write.is_new() {
                leave_to_server(&info.resource, &write.object, &mut object);
            }
            object
        }
    };
    write.ownership.own(state, info, write.old(), &mut object)?;
    Ok(object["metadata"]["managedFields"].take())
}

/// Sets the managedFields of an object, and then the metadata that the server fills in and its writer does not own. A new object
/// is owned as it was before plugins completed it.
pub(super) fn set(
    state: &State,
    info: &RequestInfo,
    owned: Owned,
    new: Option<New>,
    write: &mut Write,
) -> Result<(), StatusError> {
    let (ownership, old, object) = (&write.ownership, write.old.as_deref(), &mut write.object);
    match (owned, new) {
        (Owned::Fields(managed), _) => set_managed(object, managed),
        (Owned::State(mut sent), _) => {
            ownership.own(state, info, old, &mut sent)?;
            set_managed(object, sent["metadata"]["managedFields"].take());
        }
        (Owned::Stored, Some(New { sent, mut prepared })) => {
            leave_to_server(&info.resource, &sent, &mut prepared);
            ownership.own(state, info, old, &mut prepared)?;
            set_managed(object, prepared["metadata"]["managedFields"].take());
        }
        (Owned::Stored, None) => ownership.own(state, info, old, object)?,
    }
    if old.is_some() {
        conversion::forget_other_group(&info.resource, object);
        (info.resource.rules.default_metadata)(object);
    }
    Ok(())
}

pub(in crate::write) fn set_managed(object: &mut Value, managed: Value) {
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    match managed {
        Value::Null => drop(meta.remove("managedFields")),
        managed => drop(meta.insert("managedFields".into(), managed)),
    }
}

/// Drops from a new object what the client did not send and the server has filled in.
fn leave_to_server(resource: &Resource, sent: &Value, object: &mut Value) {
    if resource.has_status() {
        remove(object, "/status");
    }
    for field in resource.rules.unowned {
        remove(object, field);
    }
    leave_filled_in(resource, sent, object);
}

/// Whether a client that changes an object has left out what the server has filled in, and will fill in again; of tolerations it
/// may be some.
fn leaves_out(resource: &Resource, old: &Value, sent: &Value) -> bool {
    let is_there = |object: &Value, field: &str| object.pointer(field).is_some_and(|value| !value.is_null());
    let is_changed = |field: &str| field == "/spec/tolerations" && old.pointer(field) != sent.pointer(field);
    resource
        .rules
        .filled_in_by_update
        .iter()
        .any(|field| is_there(old, field) && (!is_there(sent, field) || is_changed(field)))
}

/// Drops from an object what the server has filled in beside what the client sent.
fn leave_filled_in(resource: &Resource, sent: &Value, object: &mut Value) {
    let completed = resource.rules.complete_sent.filter(|_| sent["spec"].is_object()).map(|complete| {
        let mut sent = sent.clone();
        complete(&mut sent);
        sent
    });
    let sent = completed.as_ref().unwrap_or(sent);
    for field in resource.rules.filled_in {
        match sent.pointer(field).cloned() {
            None | Some(Value::Null) => remove(object, field),
            // No toleration, address or family is none that was sent, and no text neither.
            Some(Value::Array(items)) if items.is_empty() && NONE_WHEN_EMPTY.contains(field) => remove(object, field),
            Some(Value::String(text)) if text.is_empty() => remove(object, field),
            // The server adds its own to them.
            Some(given) if *field == "/spec/tolerations" => put(object, field, given),
            // What the client sent of it is the client's, also where the server has dropped it since.
            Some(mut given) if given.is_object() && *field == "/spec/dataSourceRef" => {
                // Where it says no group, it says that it has none.
                given["apiGroup"] = given["apiGroup"].take();
                put(object, field, given);
            }
            Some(given) if given.is_object() || object.pointer(field).is_none_or(Value::is_null) => {
                put(object, field, given);
            }
            Some(_) => {}
        }
    }
}

fn put(object: &mut Value, pointer: &str, value: Value) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(map)) = object.pointer_mut(parent) {
        map.insert(key.to_owned(), value);
    }
}

fn remove(object: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    if let Some(Value::Object(map)) = object.pointer_mut(parent) {
        map.remove(key);
    }
}
