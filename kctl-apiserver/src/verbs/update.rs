//! `PUT` of an object.

use serde_json::Value;

use super::Answer;
use crate::{
    authorizer, conversion,
    request::Call,
    state::State,
    status::StatusError,
    write::{self, Ownership, Write, body, place, precondition},
};

pub(super) fn replace(state: &mut State, call: &Call) -> Result<Answer, StatusError> {
    let mut new = body::read(call)?;
    place::match_names(call, &mut new)?;
    let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
    let Some(old) = conversion::find(state, call)? else {
        if !is_created_by_update(call) {
            return Err(StatusError::not_found(&call.resource.of, &call.name));
        }
        authorizer::authorize_creation(state, call)?;
        if !uid.is_empty() {
            return Err(precondition::failed(call, "UID", uid, &Value::Null));
        }
        let new = Write::create(new, Ownership::Written);
        return Ok(Answer::created(write::write(state, call, new)?));
    };
    let known = &old["metadata"]["uid"];
    if !uid.is_empty() && uid != known {
        return Err(precondition::failed(call, "UID", uid, known));
    }
    let new = Write::update(&old, new, Ownership::Written);
    Ok(Answer::ok(write::write(state, call, new)?))
}

/// Returns `true` if an update creates an object that does not exist, also through its status.
pub(super) fn is_created_by_update(call: &Call) -> bool {
    call.resource.rules.creates_on_update && ["", "status"].contains(&call.subresource.as_str())
}
