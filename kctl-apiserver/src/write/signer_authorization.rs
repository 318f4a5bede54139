//! Permissions on signers of certificates, resources that exist only for authorization.
//!
//! Upstream: `IsAuthorizedForSignerName` in `pkg/certauthorization/certauthorization.go`. The admission plugins that call
//! it are in `plugin/pkg/admission/certificates`, in `approval`, `signing` and `ctbattest`.

use serde_json::Value;

use super::Write;
use crate::{
    admission::Attributes,
    authorizer,
    field_errors::text,
    kinds::certificates::{certificate_signing_request, cluster_trust_bundle},
    metadata::is_about_its_end,
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
        write.old().and_then(|old| (info.resource.kind.validation.signer)(&info.subresource, old, &write.object));
    let Some(why) = signer.and_then(|signer| not_permitted(state, info, "sign", signer)) else { return Ok(()) };
    let error = FieldError::forbidden("spec.signerName", &why);
    Err(StatusError::invalid(&info.resource.id.group, info.resource.kind_name(), name, &[error]))
}

/// `CertificateApproval`: only users who may `approve` for a signer approve or deny its requests.
///
/// The signer is that of the stored request, which the write cannot change.
pub(super) fn certificate_approval(
    state: &State,
    attributes: &Attributes<'_>,
    _object: &Value,
) -> Result<(), StatusError> {
    match old_request(attributes, "approval") {
        Some(old) => require(state, attributes, "approve", text(&old["spec"]["signerName"])),
        None => Ok(()),
    }
}

/// `CertificateSigning`: only users who may `sign` for a signer change the certificate or the conditions of a request.
pub(super) fn certificate_signing(
    state: &State,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    let Some(old) = old_request(attributes, "status") else { return Ok(()) };
    let is_changed = |field: &str| old["status"][field] != object["status"][field];
    if is_changed("certificate") || is_changed("conditions") {
        return require(state, attributes, "sign", text(&old["spec"]["signerName"]));
    }
    Ok(())
}

/// `ClusterTrustBundleAttest`: only users who may `attest` for a signer write its bundles.
///
/// A change of only owner references or finalizers needs no permission, so that garbage collection works.
pub(super) fn cluster_trust_bundle_attest(
    state: &State,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<(), StatusError> {
    let signer = text(&object["spec"]["signerName"]);
    let is_about_its_end = attributes.old.as_deref().is_some_and(|old| is_about_its_end(old, object));
    if !attributes.info.resource.is(&cluster_trust_bundle::KIND) || signer.is_empty() || is_about_its_end {
        return Ok(());
    }
    require(state, attributes, "attest", signer)
}

/// Returns the stored `CertificateSigningRequest` that the request changes through the subresource.
fn old_request<'a>(attributes: &'a Attributes<'_>, subresource: &str) -> Option<&'a Value> {
    let info = attributes.info;
    let is_it = info.resource.is(&certificate_signing_request::KIND) && info.subresource == subresource;
    attributes.old.as_deref().filter(|_| is_it)
}

/// Rejects the request with `Forbidden` unless its user may do this to the signer.
fn require(state: &State, attributes: &Attributes<'_>, verb: &str, signer: &str) -> Result<(), StatusError> {
    match not_permitted(state, attributes.info, verb, signer) {
        Some(why) => Err(StatusError::forbidden(&attributes.info.resource.id, &attributes.name, &why)),
        None => Ok(()),
    }
}

/// Returns the message for a user who may not do this to the signer, by its name or by `domain/*`.
///
/// Only cluster-wide rules apply: signers have no namespace.
fn not_permitted(state: &State, info: &RequestInfo, verb: &str, signer: &str) -> Option<String> {
    let (user, domain) = (&info.caller.user, signer.split('/').next().unwrap_or_default());
    let of_domain = format!("{domain}/*");
    let (group, resource, subresource, namespace) = ("certificates.k8s.io", "signers", "", "");
    let is_permitted = [signer, of_domain.as_str()].into_iter().any(|name| {
        let attributes = authorizer::Attributes { verb, group, resource, subresource, namespace, name };
        authorizer::allowed(state, user, &attributes)
    });
    (!is_permitted).then(|| format!("user {:?} is not permitted to {verb:?} for signer {signer:?}", user.name))
}
