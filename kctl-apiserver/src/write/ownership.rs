//! `metadata.managedFields` of a write: the fields that its field manager owns.
//!
//! A client owns the fields that it sends or changes, not those that the server fills in afterwards. [`choose_source`]
//! and `prepare` keep the state of the object from which the fields are computed, and [`set`] computes them. If
//! webhooks or policies may mutate the object, [`managed_fields_before_admission`] computes them earlier, because
//! admission sees them, and [`set`] stores the fields that admission has left.
//!
//! There are three states of an object: as the client sent it, with defaults, and as it is stored. The compared state
//! decides about the ownership of defaulted fields, and it differs by kind. These types choose the state:
//!
//! | type | from | chooses |
//! |---|---|---|
//! | [`Ownership`] | the verb | if owners are computed from a state at all, or are given |
//! | [`OwnedState`] | the kind, or a part of it | the state of an updated object |
//! | [`OwnershipSource`] | `choose_source` | the state of this update, after rules and exceptions; `Stored` on create |
//! | [`OwnershipSource`] | `mutating_admission` | the fields that admission has left, of a new or updated object |
//! | [`NewObjectStates`] | `prepare` | both states of a new object; [`set`] needs them only if its source is `Stored` |
//!
//! The steps read these fields of `Kind::managed_fields`:
//!
//! | step | of | reads |
//! |---|---|---|
//! | `choose_source` | update | `owned_state`; then `complete_owned`, which changes the chosen state |
//! | `omits_filled_in` | update | `filled_in_by_update`: the state is the client's if it left one of them out |
//! | `remove_unowned` | create | `unowned`: fields that are removed from the state |
//! | `remove_filled_in` | both | `filled_in`: fields that are removed from the state unless the client sent them |
//! | `reset_fields` | both | `reset_fields`: fields that the manager never owns |
//! | `managed_fields_before_admission` | both | calls the steps above, if webhooks or policies may mutate the object |
//!
//! `remove_filled_in` compares with the sent object after `complete_sent`. For a list in `extended_lists`, the sent
//! items replace the stored ones, here and in `omits_filled_in`; an empty list in `absent_when_empty` counts as left
//! out.

use serde_json::Value;

use super::{
    Write,
    prepare::{self, NewObjectStates},
    validate,
};
use crate::{
    apply::{self, Resets},
    conversion,
    json_path::set_at,
    registry::{
        Resource,
        kind::{Kind, ManagedFields, OwnedState, Subresource},
    },
    request::RequestInfo,
    state::State,
    status::StatusError,
};

/// The way in which a write changes the owners of fields.
pub(crate) enum Ownership {
    /// The field manager of the request owns the fields that it sets or changes.
    Written,
    /// Apply has computed the `managedFields` that the object has.
    Applied,
    /// The object gets these `managedFields`. Computed by the verb, such as the owners after a write of a `Scale`.
    Given(Value),
}

impl Ownership {
    /// Sets `managedFields` of the object. `old` is `None` for a new object.
    fn set_owners(
        &self,
        state: &State,
        info: &RequestInfo,
        old: Option<&Value>,
        object: &mut Value,
    ) -> Result<(), StatusError> {
        match self {
            Self::Written => update_managers(state, info, old, object),
            Self::Applied => Ok(()),
            Self::Given(managed) => {
                set_managed_fields(object, managed.clone());
                Ok(())
            }
        }
    }
}

/// Makes the field manager of a request the owner of the fields that the request has changed, or of all fields of a new
/// object. Entries of other managers lose fields whose values changed.
///
/// # Errors
/// [`StatusError::waiting`] if older entries have to be converted by a webhook first.
pub(crate) fn update_managers(
    state: &State,
    info: &RequestInfo,
    old: Option<&Value>,
    object: &mut Value,
) -> Result<(), StatusError> {
    apply::update(&FieldManager::from_request(info, state).request(), old, object);
    info.round.check_complete()
}

/// The field manager of a request.
pub(crate) struct FieldManager<'a> {
    /// The request: provides the subresource, and the parameter `force`.
    info: &'a RequestInfo,
    /// The name of the manager in `managedFields`. It is the parameter `fieldManager`, or else the part of `User-Agent`
    /// before the slash.
    name: String,
    /// The version of the request, whose fields the manager owns.
    api_version: String,
    /// Converts objects to the versions of other managers.
    versions: conversion::FieldVersions<'a>,
    /// The time of new entries, in whole seconds.
    now: String,
}

impl<'a> FieldManager<'a> {
    /// Reads the manager from the query, or else from `User-Agent`.
    pub(crate) fn from_request(info: &'a RequestInfo, state: &'a State) -> Self {
        let (name, api_version) = (info.field_manager(), info.resource.api_version());
        let versions = conversion::FieldVersions { state, info };
        Self { info, name, api_version, versions, now: state.store.clock.seconds() }
    }

    /// Returns the request of the apply engine. `resets` are the fields that this subresource does not write, which the
    /// manager must not own.
    pub(crate) fn request(&self) -> apply::Request<'_> {
        apply::Request {
            schema: self.info.resource.schema(),
            manager: &self.name,
            subresource: self.info.subresource,
            api_version: &self.api_version,
            versions: &self.versions,
            now: &self.now,
            has_status: self.info.resource.has_status(),
            resets: reset_fields(&self.info.resource, self.info.subresource),
            force: self.info.params.flag("force"),
        }
    }
}

/// Returns the fields that a write through the subresource resets. A manager does not own a field that its write cannot
/// change. Upstream: `GetResetFields`.
fn reset_fields(resource: &Resource, subresource: Subresource) -> Resets {
    const STATUS: Resets = Resets(&[&["status"]]);
    const SPEC: Resets = Resets(&[&["spec"]]);
    let kind = resource.kind;
    let other = kind.managed_fields.reset_fields.iter().find(|(name, _)| *name == subresource);
    match (other, subresource) {
        (Some((_, paths)), _) => Resets(paths),
        (None, Subresource::Status) if kind.strategy.kept_by_status == Kind::CLIENT_METADATA => {
            Resets(ManagedFields::ALL_BUT_STATUS)
        }
        (None, Subresource::Status) => SPEC,
        (None, Subresource::Main) if resource.has_status() => STATUS,
        (None, _) => Resets::NOTHING,
    }
}

/// The source from which `managedFields` are computed.
pub(super) enum OwnershipSource {
    /// These `managedFields`, such as those that webhooks left.
    Fields(Value),
    /// The fields of this state of the object.
    State(Value),
    /// The fields of the object as it is stored.
    Stored,
}

/// Returns the source of `managedFields` for a write, before webhooks, policies, plugins and the strategy change the
/// object.
///
/// Most kinds are compared as they are stored ([`OwnershipSource::Stored`]). Exceptions are kinds whose strategy or
/// plugins fill in fields. A client that omits such a field must not become its owner, so the object is compared as it
/// was sent, with defaults only. `owned_state` and `filled_in_by_update` of the kind define this, and `owned_state` of
/// a part.
///
/// An object of another type changes no owner; most are rejected later.
pub(super) fn choose_source(info: &RequestInfo, write: &Write) -> OwnershipSource {
    let (Some(old), new) = (write.old(), &write.object) else { return OwnershipSource::Stored };
    let (resource, kind) = (&info.resource, info.resource.kind);
    let owned_state = resource.part(info.subresource).map_or(kind.managed_fields.owned_state, |part| part.owned_state);
    // No manager owns the fields that the server fills in or copies within the object, nor those that other clients
    // left out.
    let is_filled_in = owned_state == OwnedState::SentWithoutFilledIn
        || (info.subresource.is_main() && omits_filled_in(resource, old, new));
    // The fields of a custom object of another type are unknown, even if the write resets all of them.
    let is_custom_status = resource.custom.is_some() && info.subresource.is_status();
    if !(is_filled_in || is_custom_status || owned_state == OwnedState::Sent) {
        return OwnershipSource::Stored;
    }
    if validate::type_mismatch_error(resource, new).is_some() {
        return OwnershipSource::Fields(old["metadata"]["managedFields"].clone());
    }
    let mut sent = new.clone();
    prepare::default(info, &mut sent, Some(old));
    (kind.managed_fields.complete_owned)(new, &mut sent);
    if is_filled_in {
        remove_filled_in(resource, new, &mut sent);
        prepare::restore(resource, info.subresource, old, &mut sent);
    }
    OwnershipSource::State(sent)
}

/// Returns the `managedFields` that a write would have without mutating admission, which sees them. The state is
/// unchanged: random values are drawn again later. It prepares a copy of the object, so it runs only if webhooks or
/// policies may mutate the object.
pub(super) fn managed_fields_before_admission(
    state: &mut State,
    info: &RequestInfo,
    write: &Write,
) -> Result<Value, StatusError> {
    let mut object = match choose_source(info, write) {
        OwnershipSource::Fields(managed) => return Ok(managed),
        OwnershipSource::State(sent) => sent,
        OwnershipSource::Stored => {
            // The uid of an object that only webhooks see must not advance the random sequence.
            let random_state = (state.store.rng.clone(), state.store.n_addresses);
            let mut object = write.object.clone();
            prepare::prepare_object(&mut state.store, info, write.old.as_ref(), &mut object);
            (state.store.rng, state.store.n_addresses) = random_state;
            if write.is_new() {
                remove_unowned(&info.resource, &write.object, &mut object);
            }
            object
        }
    };
    write.ownership.set_owners(state, info, write.old(), &mut object)?;
    Ok(object["metadata"]["managedFields"].take())
}

/// Sets `managedFields` of an object, and then the metadata that the server fills in and no writer owns. A new object
/// is owned as it was before plugins completed it. `new` is `None` for an update.
///
/// # Errors
/// [`StatusError::waiting`] if older entries have to be converted by a webhook first.
pub(super) fn set(
    state: &State,
    info: &RequestInfo,
    source: OwnershipSource,
    new: Option<NewObjectStates>,
    write: &mut Write,
) -> Result<(), StatusError> {
    let (ownership, old, object) = (&write.ownership, write.old.as_deref(), &mut write.object);
    match (source, new) {
        (OwnershipSource::Fields(managed), _) => set_managed_fields(object, managed),
        (OwnershipSource::State(mut sent), _) => {
            ownership.set_owners(state, info, old, &mut sent)?;
            set_managed_fields(object, sent["metadata"]["managedFields"].take());
        }
        (OwnershipSource::Stored, Some(NewObjectStates { sent, mut prepared })) => {
            remove_unowned(&info.resource, &sent, &mut prepared);
            ownership.set_owners(state, info, old, &mut prepared)?;
            set_managed_fields(object, prepared["metadata"]["managedFields"].take());
        }
        (OwnershipSource::Stored, None) => ownership.set_owners(state, info, old, object)?,
    }
    if old.is_some() {
        conversion::forget_other_group(&info.resource, object);
        (info.resource.kind.metadata.default)(object);
    }
    Ok(())
}

/// Sets or removes `metadata.managedFields`. `null` removes the field.
pub(in crate::write) fn set_managed_fields(object: &mut Value, managed: Value) {
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    match managed {
        Value::Null => drop(meta.remove("managedFields")),
        managed => drop(meta.insert("managedFields".into(), managed)),
    }
}

/// Removes the fields of a new object that the client did not send and the server filled in. The status of a new object
/// is reset, so its sender does not own it.
fn remove_unowned(resource: &Resource, sent: &Value, object: &mut Value) {
    if resource.has_status() {
        set_at(object, "/status", None);
    }
    for field in resource.kind.managed_fields.unowned {
        set_at(object, field, None);
    }
    remove_filled_in(resource, sent, object);
}

/// Returns `true` if a client that updates an object has left out fields that the server fills in again. A list to
/// which the server adds items counts as left out if it differs from the stored one. Such a client would take over the
/// ownership of values that it never sent.
fn omits_filled_in(resource: &Resource, old: &Value, sent: &Value) -> bool {
    let has_value = |object: &Value, field: &str| object.pointer(field).is_some_and(|value| !value.is_null());
    let kind = resource.kind;
    let is_changed =
        |field: &&str| kind.managed_fields.extended_lists.contains(field) && old.pointer(field) != sent.pointer(field);
    kind.managed_fields
        .filled_in_by_update
        .iter()
        .any(|field| has_value(old, field) && (!has_value(sent, field) || is_changed(field)))
}

/// Removes the fields of an object that the server has filled in and the client has not sent. `filled_in` of the kind
/// lists the pointers. A field that the client did send keeps the client's value here, even if the server stores
/// another value.
fn remove_filled_in(resource: &Resource, sent: &Value, object: &mut Value) {
    let kind = resource.kind;
    let completed = kind.managed_fields.complete_sent.filter(|_| sent["spec"].is_object()).map(|complete| {
        let mut sent = sent.clone();
        complete(&mut sent);
        sent
    });
    let sent = completed.as_ref().unwrap_or(sent);
    for field in kind.managed_fields.filled_in {
        match sent.pointer(field).cloned() {
            None | Some(Value::Null) => set_at(object, field, None),
            // An empty list or string counts as absent.
            Some(Value::Array(items)) if items.is_empty() && kind.managed_fields.absent_when_empty.contains(field) => {
                set_at(object, field, None);
            }
            Some(Value::String(text)) if text.is_empty() => set_at(object, field, None),
            Some(value) if kind.managed_fields.extended_lists.contains(field) => set_at(object, field, Some(value)),
            // The client owns the items that it sent, even if the server has dropped them since.
            Some(value) if value.is_object() || object.pointer(field).is_none_or(Value::is_null) => {
                set_at(object, field, Some(value));
            }
            Some(_) => {}
        }
    }
}
