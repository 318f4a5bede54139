//! `PUT`, and what every change of an object that exists has in common.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Answer, body,
    create::Writing,
    escalation, identity, judge,
    plugins::{self, quotas::Charges},
    strategy,
    unread::Unread,
};
use crate::{
    admission::{self, Attributes},
    apply, authorizer, autoscaling,
    controllers::definitions,
    conversion, lifecycle,
    registry::kind::OwnedState,
    request::{Call, Operation},
    state::State,
    status::{Cause, Refusal},
    store::DEFINITIONS,
};

pub(super) fn replace(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let mut new = body::read(call)?;
    let of = &call.resource.of;
    match_names(call, &mut new)?;
    let Some(old) = conversion::find(state, call)? else {
        if !is_created_by_update(call) {
            return Err(Refusal::not_found(of, &call.name));
        }
        authorizer::authorize_creation(state, call)?;
        let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() {
            return Err(precondition(call, "UID", uid, &Value::Null));
        }
        return Ok(Answer::created(super::create::store(state, call, new, super::create::own_all)?));
    };
    let (given, known) = (new["metadata"]["uid"].as_str().unwrap_or_default(), &old["metadata"]["uid"]);
    if !given.is_empty() && given != known {
        return Err(precondition(call, "UID", given, known));
    }
    let written = write(state, call, &old, new, |request, old, new| {
        apply::update(request, Some(old), new);
        call.session.settled()
    })?;
    Ok(Answer::ok(written))
}

/// A field of metadata is not what the client takes it for.
pub(super) fn precondition(call: &Call, field: &str, given: &str, known: &Value) -> Refusal {
    let of = &call.resource.of;
    // A dry run is judged before the storage has put its prefix to the key.
    let prefix = if call.dry_run() { "" } else { "/registry" };
    let group = if call.resource.custom.is_some() { format!("/{}", of.group) } else { String::new() };
    let namespace = if call.namespace.is_empty() { String::new() } else { format!("/{}", call.namespace) };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {prefix}{group}/{}{namespace}/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {field} in precondition: {given}, {field} in object meta: {}",
        call.resource.rules.storage_key.unwrap_or(&of.resource),
        call.name,
        known.as_str().unwrap_or_default()
    );
    Refusal::conflict(of, &call.name, &why)
}

/// Whether what is written and not there is created, also by its status.
pub(super) fn is_created_by_update(call: &Call) -> bool {
    call.resource.rules.creates_on_update && ["", "status"].contains(&call.subresource.as_str())
}

/// Returns the warnings about a changed object. A write of the status has none.
fn warnings(call: &Call, old: &Value, new: &Value) -> Vec<String> {
    if call.subresource == "status" {
        return Vec::new();
    }
    crate::admit::warnings_about(&call.resource, Some(old), new)
}

/// Name and namespace of a sent object are those of the path.
pub(super) fn match_names(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    match_namespace(call, object)?;
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
    Ok(())
}

/// Its namespace is that of the path.
fn match_namespace(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    if call.resource.listed.namespaced {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if !namespace.is_empty() && namespace != call.namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        object["metadata"]["namespace"] = call.namespace.clone().into();
    } else if let Some(meta) = object["metadata"].as_object_mut() {
        // Where there are no namespaces, one that is named is nothing.
        meta.remove("namespace");
    }
    Ok(())
}

/// Whether a changed object is the one that is there, after admission has had its say (`Store.Update` of
/// `k8s.io/apiserver/pkg/registry/generic/registry`).
fn check_version(call: &Call, old: &Value, new: &Value) -> Result<(), Refusal> {
    let resource = &call.resource;
    let version = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && version.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    if !["", "0"].contains(&version) && old["metadata"]["resourceVersion"] != version {
        return Err(Refusal::modified(&resource.of, &call.name));
    }
    // Patches and applies begin with the version of the object, and may have taken it away.
    if ["", "0"].contains(&version) && !resource.rules.allows_unconditional_update && call.subresource != "scale" {
        let message = "Invalid value: 0: must be specified for an update".into();
        let cause = Cause { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion".into() };
        return Err(Refusal::invalid(&resource.of.group, &resource.of.resource, &call.name, &[cause]));
    }
    Ok(())
}

/// Stores a changed object; `own` says whose the changed fields are now.
pub(super) fn write(
    state: &mut State,
    call: &Call,
    old: &Arc<Value>,
    new: Value,
    own: impl Fn(&apply::Request<'_>, &Value, &mut Value) -> Result<(), Refusal>,
) -> Result<Arc<Value>, Refusal> {
    write_unread(state, call, old, new, Unread::Nothing, own)
}

/// The same of an object that a real server stores with more than it reads of it.
pub(super) fn write_unread(
    state: &mut State,
    call: &Call,
    old: &Arc<Value>,
    mut new: Value,
    unread: Unread,
    own: impl Fn(&apply::Request<'_>, &Value, &mut Value) -> Result<(), Refusal>,
) -> Result<Arc<Value>, Refusal> {
    let resource = &call.resource;
    // An object may be left over in a namespace that is not there any more.
    super::create::namespace(state, call)?;
    let is_scale = call.subresource == "scale";
    let mut managed;
    (new, managed) = mutated(state, call, old, new, &own)?;
    escalation::check(state, call, Some(old), &new)?;
    check_version(call, old, &new)?;
    if managed.is_some() {
        match_namespace(call, &mut new)?;
    }
    if managed.is_none() {
        managed = managed_as_sent(state, call, old, &new, &own)?;
    }
    let mut causes = super::admin_access::causes(state, call, Some(old), &new);
    // A status of a custom kind comes without metadata.
    if resource.custom.is_none() || call.subresource != "status" {
        causes.extend(judge::changes_of_metadata(call, old, &new));
    }
    plugins::fill_change(state, call, old, &mut new);
    prepare(state, call, old, &mut new);
    if unread == Unread::Counted {
        new["metadata"]["generation"] = (old["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
    }
    (resource.rules.allocate)(state, &mut new);
    plugins::admit_change(state, call, old, &mut new)?;
    judge::validate(call, Some(old), &new, causes)?;
    call.session.warn_all(warnings(call, old, &new));
    body::warn_of_finalizers(call, Some(old), &new);
    match managed {
        Some(managed) => set_managed(&mut new, managed),
        None => own(&Writing::of(call, state).request(), old, &mut new)?,
    }
    conversion::forget_other_group(resource, &mut new);
    strategy::default_stored(call, &mut new);
    let (new, charges) = if is_scale { (new, Charges::default()) } else { validated(state, call, old, new)? };
    let mut kept = conversion::stored(state, call, new)?;
    if call.dry_run() {
        let mut new = Arc::unwrap_or_clone(kept.unstored());
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
        return Ok(new.into());
    }
    super::sizes::check(state, call, &call.key(), &kept.stored)?;
    charges.write(state);
    let before = state.get(&resource.of, &call.key()).unwrap_or_else(|| old.clone());
    let stored = std::mem::take(&mut kept.stored);
    let written = match unread {
        Unread::Nothing => lifecycle::update(state, &resource.of, &call.key(), &before, stored),
        Unread::Something | Unread::Counted => {
            lifecycle::update_with_unread_fields(state, &resource.of, &call.key(), &before, stored)
        }
    };
    if resource.of == *DEFINITIONS {
        definitions::name(state, &call.key());
    }
    Ok(kept.answer(written))
}

/// The managedFields where they are those of the object as it was sent, before the server makes of it what it stores.
fn managed_as_sent(
    state: &State,
    call: &Call,
    old: &Arc<Value>,
    new: &Value,
    own: impl Fn(&apply::Request<'_>, &Value, &mut Value) -> Result<(), Refusal>,
) -> Result<Option<Value>, Refusal> {
    let (resource, rules) = (&call.resource, call.resource.rules);
    // No manager owns what the server gives to an object or copies within it, nor what others have left out.
    let is_filled_in = rules.owned_state == OwnedState::SentByClient
        || (call.subresource.is_empty() && super::ownership::leaves_out(resource, old, new));
    // Nothing is known of the fields of a custom object that is none of its type, also where all of that is reset.
    let is_custom_status = resource.custom.is_some() && call.subresource == "status";
    // Who sends a field has it from then on, even where it is not taken.
    let is_part = strategy::writes_part(resource, &call.subresource);
    if !(is_filled_in || is_custom_status || is_part || rules.owned_state == OwnedState::Sent) {
        return Ok(None);
    }
    if identity::of_another_type(resource, new).is_some() {
        return Ok(Some(Value::Null));
    }
    let mut sent = new.clone();
    super::create::default(call, &mut sent, Some(old));
    (rules.complete_owned)(new, &mut sent);
    if is_filled_in {
        super::ownership::leave_filled_in(resource, new, &mut sent);
        strategy::reset(resource, &call.subresource, old, &mut sent);
    }
    own(&Writing::of(call, state).request(), old, &mut sent)?;
    Ok(Some(sent["metadata"]["managedFields"].take()))
}

fn prepare(state: &State, call: &Call, old: &Arc<Value>, new: &mut Value) {
    // What is filled in is no change.
    super::create::default(call, new, Some(old));
    let rules = call.resource.rules;
    (rules.default_metadata)(new);
    (rules.set_times)(state, new);
    strategy::set_status_times(state, call, old, new);
    if new["apiVersion"] == autoscaling::FIRST {
        let stored = state.get(&call.resource.of, &call.key()).unwrap_or_else(|| old.clone());
        let prepare = |new: &mut Value| strategy::prepare_update(&call.resource, &call.subresource, &stored, new);
        return autoscaling::within(new, prepare);
    }
    strategy::prepare_update(&call.resource, &call.subresource, old, new);
    if rules.defaults_after_update && call.subresource.is_empty() {
        super::create::default(call, new, None);
    }
}

pub(super) fn set_managed(object: &mut Value, managed: Value) {
    let Some(meta) = object["metadata"].as_object_mut() else { return };
    match managed {
        Value::Null => drop(meta.remove("managedFields")),
        managed => drop(meta.insert("managedFields".into(), managed)),
    }
}

/// The object as mutating admission leaves it, with its managedFields: what is changed there is nobody's.
fn mutated(
    state: &State,
    call: &Call,
    old: &Arc<Value>,
    new: Value,
    own: impl Fn(&apply::Request<'_>, &Value, &mut Value) -> Result<(), Refusal>,
) -> Result<(Value, Option<Value>), Refusal> {
    // A scale is admitted as such.
    if !admission::may_mutate(state, call) || call.subresource == "scale" {
        return Ok((new, None));
    }
    let managed = if let Some(managed) = managed_as_sent(state, call, old, &new, &own)? {
        managed
    } else {
        let mut owned = new.clone();
        prepare(state, call, old, &mut owned);
        own(&Writing::of(call, state).request(), old, &mut owned)?;
        owned["metadata"]["managedFields"].take()
    };
    let mut shown = new;
    super::create::keep_set_once(&call.resource, &mut shown, |shown| super::create::default_as_read(call, shown));
    plugins::fill_change(state, call, old, &mut shown);
    set_managed(&mut shown, managed);
    let mut attributes = Attributes::new(call, Operation::Update, &call.name, shown).with_old(old);
    admission::mutate(state, &mut attributes)?;
    let object = attributes.object.unwrap_or_default();
    let managed = object["metadata"]["managedFields"].clone();
    Ok((object, Some(managed)))
}

fn validated(state: &State, call: &Call, old: &Arc<Value>, mut new: Value) -> Result<(Value, Charges), Refusal> {
    // An update that names no version is one of the stored version.
    if new["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty) {
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    }
    let attributes = Attributes::new(call, Operation::Update, &call.name, new).with_old(old);
    plugins::validate(state, &attributes)?;
    admission::validate(state, &attributes)?;
    let charges = plugins::quotas::check(state, &attributes)?;
    Ok((attributes.object.unwrap_or_default(), charges))
}
