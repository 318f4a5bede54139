//! Rejects users without a permission on a signer of certificates, for the plugins of `certificates.k8s.io`.

use super::Forbid;
use crate::{
    admission::Attributes,
    state::State,
    status::StatusError,
    write::signer_right::{is_permitted, not_permitted},
};

/// Rejects the request with `Forbidden` unless its user may do this to the signer.
pub(super) fn require(state: &State, attributes: &Attributes<'_>, verb: &str, signer: &str) -> Result<(), StatusError> {
    let user = &attributes.info.caller.user;
    if is_permitted(state, user, verb, signer) {
        return Ok(());
    }
    Forbid::new(attributes).reject(&not_permitted(user, verb, signer))
}
