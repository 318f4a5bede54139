//! The place of an object: its namespace, and the name of the path.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Write;
use crate::{crd, kinds, request::Call, state::State, status::StatusError, store::DEFINITIONS};

/// Checks that the namespace and the CRD of an object take it.
pub(super) fn check(state: &State, call: &Call, write: &mut Write) -> Result<(), StatusError> {
    if !write.is_new() {
        // An object may be left over in a namespace that does not exist any more.
        return namespace(state, call).map(drop);
    }
    match_namespace(call, &mut write.object)?;
    check_definition(state, call, write.object["metadata"]["name"].as_str().unwrap_or_default())?;
    check_namespace(state, call, &write.object)
}

/// Rejects new objects of a CRD that is being deleted (upstream, `customresource_handler.go`).
fn check_definition(state: &State, call: &Call, name: &str) -> Result<(), StatusError> {
    let definition = state.get(&DEFINITIONS, &(String::new(), call.resource.of.to_string()));
    if call.resource.custom.is_none() || definition.is_none_or(|definition| !crd::is_ending(&definition)) {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(StatusError::forbidden(&call.resource.of, name, why))
}

/// Returns the namespace of a request, which must exist.
fn namespace(state: &State, call: &Call) -> Result<Option<Arc<Value>>, StatusError> {
    if call.namespace.is_empty() {
        return Ok(None);
    }
    let of = kinds::core::namespace::KIND.group_resource();
    let found = state.get(&of, &(String::new(), call.namespace.clone()));
    found.map(Some).ok_or_else(|| StatusError::not_found(&of, &call.namespace))
}

/// Rejects new objects in a namespace that does not exist or is being deleted (`NamespaceLifecycle`). The error of an object
/// without a name shows its `generateName`.
pub(crate) fn check_namespace(state: &State, call: &Call, object: &Value) -> Result<(), StatusError> {
    let Some(found) = namespace(state, call)? else { return Ok(()) };
    if found["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let namespace = &call.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let text = |field: &str| object["metadata"][field].as_str().filter(|text| !text.is_empty());
    let of_path = Some(call.name.as_str()).filter(|name| !name.is_empty());
    let name = of_path.or_else(|| text("name")).or_else(|| text("generateName")).unwrap_or("Unknown");
    let mut error = StatusError::forbidden(&call.resource.of, name, &why);
    error.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(error)
}

/// Removes the metadata that only the server sets, also from objects that are not stored (`rest.WipeObjectMetaSystemFields`).
pub(crate) fn wipe(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    match_namespace(call, object)?;
    let fields =
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"];
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| !fields.contains(&field.as_str()));
    }
    Ok(())
}

/// Checks that name and namespace of an object are those of the path.
pub(crate) fn match_names(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    match_namespace(call, object)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name
        )));
    }
    if name != call.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    Ok(())
}

/// Sets the namespace of the path. Cluster-scoped objects lose theirs.
pub(crate) fn match_namespace(call: &Call, object: &mut Value) -> Result<(), StatusError> {
    if !call.resource.listed.namespaced {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("namespace");
        }
        return Ok(());
    }
    let given = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !given.is_empty() && given != call.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object["metadata"]["namespace"] = call.namespace.clone().into();
    Ok(())
}
