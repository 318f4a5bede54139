//! `DELETE` of an object or a collection: preconditions, grace period, propagation and finalizers.
//!
//! The effect is decided in `lifecycle`, which garbage collection and controllers use as well.

mod options;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

pub(super) use self::options::Options;
use super::{VerbResponse, list};
use crate::{
    admission::{self, Attributes},
    conversion,
    deletion::{Grace, Propagation, is_being_deleted},
    lifecycle::{self, DeleteOutcome, Deletion},
    registry::{Resource, kind::DeleteResponse},
    request::RequestInfo,
    state::State,
    status::{GroupResource, StatusError},
    store::Key,
    write::precondition::{self, Subject},
};

/// Deletes one object.
///
/// Decides the effect first ([`Deletion::decide`]), then runs admission, then writes. [`Deletion::Pending`] skips
/// admission. The response has the object, or a `Status` for kinds that return one (`DeleteResponse`).
///
/// Preconditions are checked against the object in the version of the request, before admission. Deleting an object
/// with finalizers or a grace period returns 200 with the object. Removing an object at once returns 200 with a
/// `Status` for most kinds. 202 is for the deprecated `orphanDependents: false`.
///
/// # Errors
/// `NotFound`, `Conflict` for a failed precondition, `Forbidden` for objects that cannot be deleted, and errors of
/// admission.
pub(super) fn delete(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let (group_resource, resource) = (&info.resource.id, &info.resource);
    let options = Options::from_request(info)?;
    warn(info, &options);
    let object = conversion::get(state, info)?.ok_or_else(|| StatusError::not_found(group_resource, &info.name))?;
    check_preconditions(resource, &object, &options.value)?;
    let current = state.store.get(group_resource, &info.key()).unwrap_or_else(|| object.clone());
    let deletion = Deletion::decide(&state.store, resource, &current, options.propagation, options.grace);
    if deletion != Deletion::Pending {
        if let Some(why) = (resource.kind.delete.undeletable)(&info.name) {
            return Err(StatusError::forbidden(group_resource, &info.name, why));
        }
        let attributes = Attributes::delete(info, &object, &options_for_admission(resource, &object, &options));
        admission::admit(state, attributes)?;
    }
    let (mut response, is_removed) = if options.is_dry {
        dry_run_response(resource, &object, deletion)
    } else {
        match deletion.write(&mut state.store, resource, &info.key(), &current) {
            DeleteOutcome::Kept(present) => (VerbResponse::ok(in_version_of(&object, present)), false),
            DeleteOutcome::Gone(last) => (gone_response(resource, &in_version_of(&object, last)), true),
        }
    };
    // The response to `orphanDependents: false` says that dependents may still exist.
    if !is_removed && options.value["orphanDependents"] == false {
        response.code = StatusCode::ACCEPTED;
    }
    Ok(response)
}

/// Returns the response to a dry run, and `true` if the object would be removed.
fn dry_run_response(resource: &Resource, object: &Arc<Value>, deletion: Deletion) -> (VerbResponse, bool) {
    match deletion {
        Deletion::Pending => (VerbResponse::ok(object.clone()), false),
        Deletion::Marked(new) => (VerbResponse::ok(in_version_of(object, new.into())), false),
        Deletion::Ended(new) => (VerbResponse::ok(in_version_of(object, new.into())), true),
        // Upstream removes an object that needs a last update in two steps. A dry run does not find the update, and
        // returns an empty object.
        Deletion::Gone { changes: true } => {
            let empty = json!({ "kind": object["kind"], "apiVersion": object["apiVersion"], "metadata": {} });
            (VerbResponse::ok(empty), true)
        }
        Deletion::Gone { changes: false } => (gone_response(resource, object), true),
    }
}

/// Warns about a delete with the default propagation, if the kind has such a warning. Jobs have one, since their
/// default leaves the Pods behind.
fn warn(info: &RequestInfo, options: &Options) {
    let warning = info.resource.kind.delete.warning;
    if let Some(warning) = warning.filter(|_| options.propagation == Propagation::Default) {
        info.round.warn(warning);
    }
}

/// Returns the options that admission sees: with the grace period and the uid of the object. Upstream's storage fills
/// in these fields before it calls admission (`BeforeDelete` in `k8s.io/apiserver/pkg/registry/rest/delete.go`), so
/// webhooks see them in `options`.
fn options_for_admission(resource: &Resource, object: &Value, options: &Options) -> Value {
    let mut value = options.value.clone();
    let is_new = !is_being_deleted(object);
    if resource.kind.delete.mark.is_some() && value["preconditions"]["uid"].is_null() {
        value["preconditions"]["uid"] = object["metadata"]["uid"].clone();
    }
    match (resource.kind.delete.grace_seconds, options.grace) {
        (Some(grace_seconds), grace) if is_new => {
            value["gracePeriodSeconds"] = grace_seconds(object, grace).into();
        }
        (_, Grace::Seconds(seconds)) if !(resource.kind.delete.mark.is_some() && is_new) => {
            value["gracePeriodSeconds"] = seconds.into();
        }
        _ => {}
    }
    value
}

/// Returns the last state of an object in the requested version. Since `before`, only its metadata and the phase of a
/// Namespace have changed. Avoids a call of the conversion webhook for a state that the client has just read.
fn in_version_of(before: &Value, last: Arc<Value>) -> Arc<Value> {
    if before["apiVersion"] == last["apiVersion"] {
        return last;
    }
    let mut converted = before.clone();
    converted["metadata"] = last["metadata"].clone();
    converted.into()
}

/// Returns the response to the delete of an object that is gone: a `Status` of success, or its last state.
fn gone_response(resource: &Resource, object: &Arc<Value>) -> VerbResponse {
    if resource.kind.delete.response != DeleteResponse::Status {
        return VerbResponse::ok(object.clone());
    }
    let meta = &object["metadata"];
    let mut details = json!({ "name": meta["name"], "kind": resource.id.resource, "uid": meta["uid"] });
    if !resource.id.group.is_empty() {
        details["group"] = resource.id.group.clone().into();
    }
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
    VerbResponse::ok(status)
}

/// Deletes the objects that a list with the same options returns, one after the other in the order of their keys.
///
/// Objects that were deleted before an error remain deleted, as upstream (`DeleteCollection` of
/// `k8s.io/apiserver/pkg/registry/generic/registry/store.go`). A dry run runs admission for all of them and deletes
/// none.
///
/// `limit` and `continue` restrict the deletion as they restrict a list. The response is the list of the objects before
/// their deletion.
pub(super) fn delete_collection(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let query = list::ListQuery::read(info)?;
    let mut options = Options::from_request(info)?;
    // `resourceVersion` in the query is also a precondition on each object.
    if !info.params.text("resourceVersion").is_empty() {
        options.value["preconditions"]["resourceVersion"] = info.params.text("resourceVersion").into();
    }
    warn(info, &options);
    let collection = list::CollectionToDelete::select(state, info, &query)?;
    let listed =
        conversion::convert_list(state, info, collection.objects.iter().map(|(_, object)| object.clone()).collect())?;
    // A list of an older version may contain objects that are gone or replaced.
    let current = |(key, _): &(Key, Arc<Value>)| Some((key.clone(), state.store.get(&info.resource.id, key)?));
    let existing: Vec<(Key, Arc<Value>)> = collection.objects.iter().filter_map(current).collect();
    let converted = conversion::convert_list(state, info, existing.iter().map(|(_, object)| object.clone()).collect())?;
    // The first rejected object ends the request; earlier objects remain deleted.
    let (n_admitted, error) = admit_all(state, info, &options, &converted);
    if info.round.is_waiting() {
        return Err(StatusError::waiting());
    }
    if !options.is_dry {
        for (key, object) in &existing[..n_admitted] {
            lifecycle::delete(&mut state.store, &info.resource, key, object, options.propagation, options.grace);
        }
    }
    error.map_or_else(|| Ok(VerbResponse::ok(collection.list(info, &query, &listed))), Err)
}

/// Returns the number of objects, from the first on, that admission accepts, and the error of the next one. Webhooks
/// are called for one object first, then for as many as were accepted: a webhook that denies everything is called for a
/// single object. While webhooks have not replied, at most as many further objects are visited as were already
/// accepted.
fn admit_all(state: &State, info: &RequestInfo, options: &Options, all: &[Arc<Value>]) -> (usize, Option<StatusError>) {
    let (mut n_admitted, mut n_waiting) = (0, 0);
    for object in all {
        let deletion = Deletion::decide(&state.store, &info.resource, object, options.propagation, options.grace);
        let admitted = check_preconditions(&info.resource, object, &options.value).and_then(|()| {
            if deletion == Deletion::Pending {
                return Ok(());
            }
            admission::admit(state, Attributes::delete(info, object, &options.value)).map(|_| ())
        });
        match admitted {
            Ok(()) => n_admitted += 1,
            Err(_) if info.round.is_waiting() && n_waiting < n_admitted => n_waiting += 1,
            Err(error) => return (n_admitted, Some(error)),
        }
    }
    (n_admitted, None)
}

/// Checks `preconditions.uid` and `preconditions.resourceVersion` (`Preconditions.Check` of
/// `k8s.io/apiserver/pkg/storage`). A field that the stored object lacks is not compared. Upstream reports the kind in
/// place of the resource for most kinds.
///
/// # Errors
/// `Conflict` with the expected and the stored value.
pub(super) fn check_preconditions(resource: &Resource, object: &Value, options: &Value) -> Result<(), StatusError> {
    let group = resource.kind.requests.error_group.unwrap_or(&resource.id.group);
    let by_kind = GroupResource::new(group, resource.kind_name());
    let resource = if resource.kind.delete.mark.is_some() { &resource.id } else { &by_kind };
    let subject = Subject { resource, name: object["metadata"]["name"].as_str().unwrap_or_default() };
    for (field, label) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (required, stored) = (options["preconditions"][field].as_str(), &object["metadata"][field]);
        precondition::check_field(subject, label, required.filter(|_| stored.is_string()), stored)?;
    }
    Ok(())
}
