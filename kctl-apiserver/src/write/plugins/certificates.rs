//! The plugins about certificates: permissions on their signers, and a restriction of their subjects.
//!
//! Upstream: `approval`, `signing` and `ctbattest` in `plugin/pkg/admission/certificates`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::rejection;
use crate::{
    admission::Attributes,
    field_errors::text,
    metadata::only_mutates_gc_fields,
    registry::kind::Subresource,
    request::{ADMINISTRATORS, Operation},
    state::State,
    status::StatusError,
    write::signer_authorization::not_permitted,
    x509::{Request, pem},
};

/// The signer of client certificates, which must not issue administrators.
const OF_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";

/// `CertificateApproval`: only users who may `approve` for a signer approve or deny its requests. The signer is the
/// stored request's, which the write cannot change.
pub(super) fn authorize_approval(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let Some(old) = old_request(attributes, Subresource::Approval) else { return Ok(()) };
    require(state, attributes, "approve", text(&old["spec"]["signerName"]))
}

/// `CertificateSigning`: only users who may `sign` for a signer change the certificate or the conditions of a request.
pub(super) fn authorize_signing(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let Some(old) = old_request(attributes, Subresource::Status) else { return Ok(()) };
    let is_changed = |field: &str| old["status"][field] != object["status"][field];
    if is_changed("certificate") || is_changed("conditions") {
        return require(state, attributes, "sign", text(&old["spec"]["signerName"]));
    }
    Ok(())
}

/// `ClusterTrustBundleAttest`: only users who may `attest` for a signer write its bundles. A change of only owner
/// references or finalizers needs no permission, so that garbage collection works.
pub(super) fn authorize_attest(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let signer = text(&object["spec"]["signerName"]);
    let only_mutates_gc_fields = attributes.old.as_deref().is_some_and(|old| only_mutates_gc_fields(old, object));
    if signer.is_empty() || only_mutates_gc_fields {
        return Ok(());
    }
    require(state, attributes, "attest", signer)
}

/// `CertificateSubjectRestriction`: rejects a new request for a client certificate of an administrator. Upstream:
/// `Plugin.Validate` in `plugin/pkg/admission/certificates/subjectrestriction/admission.go`.
pub(super) fn restrict_subject(attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    let is_new = attributes.operation == Operation::Create && info.subresource.is_main();
    if is_new && object["spec"]["signerName"] == OF_CLIENTS && names_administrators(text(&object["spec"]["request"])) {
        let why = format!("use of {OF_CLIENTS} signer with {ADMINISTRATORS} group is not allowed");
        return Err(rejection(attributes, &why));
    }
    Ok(())
}

/// Returns the stored `CertificateSigningRequest` that the request changes through the subresource.
fn old_request<'a>(attributes: &'a Attributes<'_>, subresource: Subresource) -> Option<&'a Value> {
    attributes.old.as_deref().filter(|_| attributes.info.subresource == subresource)
}

/// Rejects the request with `Forbidden` unless its user may do this to the signer.
fn require(state: &State, attributes: &Attributes<'_>, verb: &str, signer: &str) -> Result<(), StatusError> {
    not_permitted(state, attributes.info, verb, signer).map_or(Ok(()), |why| Err(rejection(attributes, &why)))
}

/// Returns `true` if a PEM request has the organization `system:masters`. Returns `false` for a malformed request,
/// which validation rejects.
fn names_administrators(request: &str) -> bool {
    let request = STANDARD.decode(request).unwrap_or_default();
    let block = pem::blocks(&String::from_utf8_lossy(&request)).next();
    let sent = block.as_ref().and_then(|block| Request::read(&block.der));
    sent.is_some_and(|sent| sent.organizations().iter().any(|name| name == ADMINISTRATORS))
}
