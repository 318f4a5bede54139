//! `POST` of a new object.

use super::VerbResponse;
use crate::{
    registry::kind::Review,
    request::RequestInfo,
    state::State,
    status::StatusError,
    write::{self, Ownership, Write, body, namespace},
};

/// Creates an object, by the steps of `write/mod.rs`. A review, such as a `SubjectAccessReview`, is evaluated and not
/// stored. A `Binding` sets the node of its Pod.
///
/// # Errors
/// Fails if the body does not decode, or with the errors of the write. `AlreadyExists` comes last, after validation and
/// admission.
pub(super) fn create(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let mut object = body::read(info)?;
    match info.resource.kind.requests.review {
        None => {
            let new = Write::create(object, Ownership::Written);
            Ok(VerbResponse::created(write::write(state, info, new)?))
        }
        Some(Review::Binding) => {
            namespace::wipe(info, &mut object)?;
            super::subresources::bind_named(state, info, object)
        }
        Some(_) => {
            namespace::wipe(info, &mut object)?;
            Ok(VerbResponse::created(super::reviews::review(state, info, object)?))
        }
    }
}
