//! `POST` of a new object.

use super::Answer;
use crate::{
    registry::kind::Review,
    request::Call,
    state::State,
    status::StatusError,
    write::{self, Ownership, Write, body, place},
};

pub(super) fn create(state: &mut State, call: &Call) -> Result<Answer, StatusError> {
    let mut object = body::read(call)?;
    match call.resource.rules.review {
        None => {
            let new = Write::create(object, Ownership::Written);
            Ok(Answer::created(write::write(state, call, new)?))
        }
        Some(Review::Binding) => {
            place::wipe(call, &mut object)?;
            super::subresources::bind_named(state, call, object)
        }
        Some(_) => {
            place::wipe(call, &mut object)?;
            Ok(Answer::created(super::reviews::review(state, call, object)?))
        }
    }
}
