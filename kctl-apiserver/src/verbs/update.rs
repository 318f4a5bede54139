//! `PUT` of an object.

use serde_json::Value;

use super::VerbResponse;
use crate::{
    authorizer, conversion,
    registry::kind::Subresource,
    request::RequestInfo,
    state::State,
    status::StatusError,
    write::{
        self, Ownership, Write, body, namespace,
        precondition::{Subject, check_uid},
    },
};

/// Replaces an object or a part of it, by the steps of `write/mod.rs`. If the object does not exist, kinds with
/// `creates_on_update` create it. The caller must then be allowed to create. `resourceVersion` in the body is checked
/// by the write; without one the update is unconditional, if the kind allows that.
///
/// # Errors
/// `NotFound`, `Conflict` if the uid of the body differs from the stored object's, and the errors of the write.
pub(super) fn replace(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let mut new = body::read(info)?;
    namespace::match_names(info, &mut new)?;
    let subject = Subject::from_request(info);
    let Some(old) = conversion::find(state, info)? else {
        if !is_created_by_update(info) {
            return Err(StatusError::not_found(&info.resource.id, &info.name));
        }
        authorizer::authorize_creation(state, info)?;
        check_uid(subject, &new["metadata"]["uid"], &Value::Null)?;
        let new = Write::create(new, Ownership::Written);
        return Ok(VerbResponse::created(write::write(state, info, new)?));
    };
    check_uid(subject, &new["metadata"]["uid"], &old["metadata"]["uid"])?;
    let new = Write::update(&old, new, Ownership::Written);
    Ok(VerbResponse::ok(write::write(state, info, new)?))
}

/// Returns `true` if an update creates an object that does not exist, even through its status. `Lease`s, `Endpoints`
/// and roles are such kinds; most other kinds return 404.
pub(super) fn is_created_by_update(info: &RequestInfo) -> bool {
    info.resource.kind.strategy.creates_on_update && matches!(info.subresource, Subresource::Main | Subresource::Status)
}
