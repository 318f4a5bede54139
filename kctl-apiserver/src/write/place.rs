//! The place of an object: its namespace, its name, and the version of the stored object that it replaces.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::Write;
use crate::{
    crd, kinds,
    request::{Call, Verb},
    state::State,
    status::{Cause, Refusal},
    store::{DEFINITIONS, Key},
};

/// Generated names are tried as often as the real server does (`maxNameGenerationCreateAttempts`).
const NAME_ATTEMPTS_MAX: usize = 8;
/// Longest part of a generated name that the user chooses.
const NAME_BASE_LEN_MAX: usize = 58;

/// Checks that the namespace and the CRD of an object take it.
pub(super) fn check(state: &State, call: &Call, write: &mut Write) -> Result<(), Refusal> {
    if !write.is_new() {
        // An object may be left over in a namespace that does not exist any more.
        return namespace(state, call).map(drop);
    }
    match_namespace(call, &mut write.object)?;
    check_definition(state, call, write.object["metadata"]["name"].as_str().unwrap_or_default())?;
    check_namespace(state, call, &write.object)
}

/// Rejects new objects of a CRD that is being deleted (upstream, `customresource_handler.go`).
fn check_definition(state: &State, call: &Call, name: &str) -> Result<(), Refusal> {
    let definition = state.get(&DEFINITIONS, &(String::new(), call.resource.of.to_string()));
    if call.resource.custom.is_none() || definition.is_none_or(|definition| !crd::is_ending(&definition)) {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(Refusal::forbidden(&call.resource.of, name, why))
}

/// Returns the namespace of a request, which must exist.
fn namespace(state: &State, call: &Call) -> Result<Option<Arc<Value>>, Refusal> {
    if call.namespace.is_empty() {
        return Ok(None);
    }
    let of = kinds::core::namespace::KIND.group_resource();
    let found = state.get(&of, &(String::new(), call.namespace.clone()));
    found.map(Some).ok_or_else(|| Refusal::not_found(&of, &call.namespace))
}

/// Rejects new objects in a namespace that does not exist or is being deleted (`NamespaceLifecycle`). The error of an object
/// without a name shows its `generateName`.
pub(crate) fn check_namespace(state: &State, call: &Call, object: &Value) -> Result<(), Refusal> {
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

/// Removes the metadata that only the server sets, also from objects that are not stored (`rest.WipeObjectMetaSystemFields`).
pub(crate) fn wipe(call: &Call, object: &mut Value) -> Result<(), Refusal> {
    match_namespace(call, object)?;
    let fields =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"];
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| !fields.contains(&field.as_str()));
    }
    Ok(())
}

/// Checks that name and namespace of an object are those of the path.
pub(crate) fn match_names(call: &Call, object: &mut Value) -> Result<(), Refusal> {
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

/// Sets the namespace of the path. Cluster-scoped objects lose theirs.
pub(crate) fn match_namespace(call: &Call, object: &mut Value) -> Result<(), Refusal> {
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

/// Checks that an update replaces the version that the client has seen (`Store.Update` of
/// `k8s.io/apiserver/pkg/registry/generic/registry`).
pub(super) fn check_version(call: &Call, write: &Write) -> Result<(), Refusal> {
    let resource = &call.resource;
    let version = version(&write.object);
    // A `POST` with a version is rejected when the object is stored.
    let is_read = !write.is_new() || call.verb != Verb::Create;
    if is_read && !version.is_empty() && version.parse::<u64>().is_err() {
        let message = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    let Some(old) = write.old() else { return Ok(()) };
    if !["", "0"].contains(&version) && old["metadata"]["resourceVersion"] != version {
        return Err(Refusal::modified(&resource.of, &call.name));
    }
    // Patches and applies begin with the version of the object, and may have removed it.
    if ["", "0"].contains(&version) && !resource.rules.allows_unconditional_update {
        let message = "Invalid value: 0: must be specified for an update".into();
        let cause = Cause { reason: "FieldValueInvalid", message, field: "metadata.resourceVersion".into() };
        return Err(Refusal::invalid(&resource.of.group, &resource.of.resource, &call.name, &[cause]));
    }
    Ok(())
}

/// Returns the version that an object names.
pub(super) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// Returns the key of an object. A new object without a name gets a generated one; `sent` is the new object as it was sent.
pub(super) fn name(state: &mut State, call: &Call, sent: Option<&Value>, write: &mut Write) -> Key {
    let Some(sent) = sent else { return call.key() };
    let key = generated(state, call, &mut write.object);
    if sent["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        (call.resource.rules.set_generated_name)(sent, &mut write.object);
    }
    key
}

fn generated(state: &mut State, call: &Call, object: &mut Value) -> Key {
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

/// Returns the error of a write that names another uid or version than the stored object has.
pub(crate) fn precondition(call: &Call, field: &str, given: &str, known: &Value) -> Refusal {
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
