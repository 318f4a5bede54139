//! Authorization for signers of certificates: `signers` is a resource that only rules of roles name.
//!
//! Upstream: `IsAuthorizedForSignerName` in `pkg/certauthorization/certauthorization.go`. `plugins::certificates` has
//! the admission plugins that call it.

use super::Write;
use crate::{
    authorizer,
    request::RequestInfo,
    state::State,
    status::{FieldError, StatusError},
};

/// Checks that the writer of a `PodCertificateRequest` may `sign` for its signer (`signer` of the kind;
/// `StatusStrategy.ValidateUpdate` in `pkg/registry/certificates/podcertificaterequest/strategy.go`).
///
/// # Errors
/// `Invalid` with `FieldValueForbidden` at `spec.signerName`: upstream's strategy checks the permission.
pub(super) fn check(state: &State, info: &RequestInfo, name: &str, write: &Write) -> Result<(), StatusError> {
    let signer =
        write.old().and_then(|old| (info.resource.kind.validation.signer)(info.subresource, old, &write.object));
    let Some(why) = signer.and_then(|signer| not_permitted(state, info, "sign", signer)) else { return Ok(()) };
    let error = FieldError::forbidden("spec.signerName", &why);
    Err(StatusError::invalid(&info.resource.id.group, info.resource.kind_name(), name, &[error]))
}

/// Returns the message for a user who may not do this to the signer, by its name or by `domain/*`. Only cluster-wide
/// rules apply: signers have no namespace.
pub(super) fn not_permitted(state: &State, info: &RequestInfo, verb: &str, signer: &str) -> Option<String> {
    let (user, domain) = (&info.caller.user, signer.split('/').next().unwrap_or_default());
    let of_domain = format!("{domain}/*");
    let (group, resource, subresource, namespace) = ("certificates.k8s.io", "signers", "", "");
    let is_permitted = [signer, of_domain.as_str()].into_iter().any(|name| {
        let attributes = authorizer::Attributes { verb, group, resource, subresource, namespace, name };
        authorizer::is_allowed(state, user, &attributes)
    });
    (!is_permitted).then(|| format!("user {:?} cannot {verb} resource \"signers\" named {signer:?}", user.name))
}
