//! Permissions on signers of certificates, resources that exist only for authorization.
//!
//! Upstream: `IsAuthorizedForSignerName` in `pkg/certauthorization/certauthorization.go`.

use super::Write;
use crate::{
    authorizer::{self, Attributes},
    request::{RequestInfo, User},
    state::State,
    status::{FieldError, StatusError},
};

/// Checks that the writer of a `PodCertificateRequest` may `sign` for its signer (`signer` of the kind;
/// `StatusStrategy.ValidateUpdate` in `pkg/registry/certificates/podcertificaterequest/strategy.go`).
///
/// # Errors
/// `Invalid` with `FieldValueForbidden` at `spec.signerName`: upstream's strategy checks the permission.
pub(super) fn check(state: &State, info: &RequestInfo, name: &str, write: &Write) -> Result<(), StatusError> {
    let user = &info.caller.user;
    let signer =
        write.old().and_then(|old| (info.resource.kind.validation.signer)(&info.subresource, old, &write.object));
    let Some(signer) = signer.filter(|signer| !is_permitted(state, user, "sign", signer)) else { return Ok(()) };
    let error = FieldError::forbidden("spec.signerName", &not_permitted(user, "sign", signer));
    Err(StatusError::invalid(&info.resource.id.group, info.resource.kind_name(), name, &[error]))
}

/// Returns `true` if a user may do something to a signer, by its name or by `domain/*`.
///
/// Only cluster-wide rules apply: signers have no namespace.
pub(super) fn is_permitted(state: &State, user: &User, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let of_domain = format!("{domain}/*");
    let (group, resource, subresource, namespace) = ("certificates.k8s.io", "signers", "", "");
    [signer, of_domain.as_str()].into_iter().any(|name| {
        authorizer::allowed(state, user, &Attributes { verb, group, resource, subresource, namespace, name })
    })
}

/// Returns the message about a missing permission.
pub(super) fn not_permitted(user: &User, verb: &str, signer: &str) -> String {
    format!("user {:?} is not permitted to {verb:?} for signer {signer:?}", user.name)
}
