//! Checks and sets the namespace and the name of an object according to the path.
//!
//! Checks that depend on the namespace object come from the admission plugin `NamespaceLifecycle`; the others from the
//! request handlers.

use serde_json::{Value, json};

use super::Write;
use crate::{
    crd,
    deletion::is_being_deleted,
    kinds::{apiextensions::custom_resource_definition::DEFINITIONS, core::namespace},
    metadata,
    request::RequestInfo,
    status::StatusError,
    store::Store,
};

/// Checks that a new object may be created in its namespace, and that an existing one has the name and the namespace of
/// the path. An update is allowed in a namespace that is being deleted or gone: finalizers must be removable.
///
/// # Errors
/// 400 if name or namespace differ from the path. For new objects also `NotFound` without the namespace, and
/// `Forbidden` if the namespace or the CRD is being deleted.
pub(super) fn check(store: &Store, info: &RequestInfo, write: &mut Write) -> Result<(), StatusError> {
    if !write.is_new() {
        // The namespace may be gone: an object may remain after it was deleted.
        return match_names(info, &mut write.object);
    }
    match_namespace(info, &mut write.object)?;
    check_definition(store, info, write.object["metadata"]["name"].as_str().unwrap_or_default())?;
    check_namespace(store, info, &write.object)
}

/// Rejects new objects of a CRD that is being deleted (upstream, `customresource_handler.go`). `Forbidden`. Existing
/// objects can still be updated and deleted.
fn check_definition(store: &Store, info: &RequestInfo, name: &str) -> Result<(), StatusError> {
    let resource = &info.resource.id;
    let definition = || store.get(&DEFINITIONS, &(String::new(), resource.to_string()));
    if info.resource.custom.is_none() || definition().is_none_or(|definition| !crd::rejects_creates(&definition)) {
        return Ok(());
    }
    Err(StatusError::forbidden(resource, name, "create not allowed while custom resource definition is terminating"))
}

/// Rejects new objects in a namespace that does not exist or is being deleted (`NamespaceLifecycle`). If the object has
/// no name, the error shows its `generateName`. Also used for objects that are not stored, such as evictions.
///
/// # Errors
/// `NotFound` without the namespace, and `Forbidden` with the cause `NamespaceTerminating` while it is deleted. Clients
/// rely on that cause to stop retrying.
pub(crate) fn check_namespace(store: &Store, info: &RequestInfo, object: &Value) -> Result<(), StatusError> {
    if info.namespace.is_empty() {
        return Ok(());
    }
    let kind = &namespace::KIND;
    let found = store.object(kind, "", &info.namespace);
    let found = found.ok_or_else(|| StatusError::not_found(&kind.group_resource(), &info.namespace))?;
    if !is_being_deleted(&found) {
        return Ok(());
    }
    let namespace = &info.namespace;
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let name = if info.name.is_empty() { metadata::name_in_errors(object) } else { &info.name };
    let mut error = StatusError::forbidden(&info.resource.id, name, &why);
    error.details["causes"] = json!([{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]);
    Err(error)
}

/// Removes the metadata that only the server sets, also from objects that are not stored
/// (`rest.WipeObjectMetaSystemFields`). Upstream wipes new objects only; an update keeps the stored values of these
/// fields.
///
/// # Errors
/// Fails like [`match_namespace`], which runs first.
pub(crate) fn wipe(info: &RequestInfo, object: &mut Value) -> Result<(), StatusError> {
    match_namespace(info, object)?;
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| field != "managedFields" && !metadata::SYSTEM_FIELDS.contains(&field.as_str()));
    }
    Ok(())
}

/// Checks that name and namespace of an object match the path.
///
/// # Errors
/// Fails with 400 if they differ, or if the object has no name.
pub(crate) fn match_names(info: &RequestInfo, object: &mut Value) -> Result<(), StatusError> {
    match_namespace(info, object)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() || name != info.name {
        let why = format!("the name of the object must be {:?}, as in the URL, found {name:?}", info.name);
        return Err(StatusError::bad_request(why));
    }
    Ok(())
}

/// Sets the namespace of the path. Cluster-scoped objects lose theirs.
///
/// # Errors
/// Fails with 400 if the object names another namespace.
pub(crate) fn match_namespace(info: &RequestInfo, object: &mut Value) -> Result<(), StatusError> {
    if !info.resource.listed.namespaced {
        if let Some(meta) = object["metadata"].as_object_mut() {
            meta.remove("namespace");
        }
        return Ok(());
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && namespace != info.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object["metadata"]["namespace"] = info.namespace.clone().into();
    Ok(())
}
