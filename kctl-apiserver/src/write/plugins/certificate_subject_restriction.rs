//! `CertificateSubjectRestriction`: rejects requests for client certificates of administrators.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/certificates/subjectrestriction/admission.go`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::rejection;
use crate::{
    admission::Attributes,
    field_errors::text,
    kinds::certificates::certificate_signing_request,
    request::Operation,
    state::State,
    status::StatusError,
    x509::{Request, pem},
};

/// The signer of client certificates, which must not issue administrators.
const OF_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
/// The group of administrators.
const ADMINISTRATORS: &str = "system:masters";

/// Checks a new `CertificateSigningRequest`: it must not ask for a certificate of an administrator.
pub(super) fn validate(_: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    let is_new = attributes.operation == Operation::Create && info.subresource.is_empty();
    if is_new
        && info.resource.is(&certificate_signing_request::KIND)
        && object["spec"]["signerName"] == OF_CLIENTS
        && names_administrators(text(&object["spec"]["request"]))
    {
        let why = format!("use of {OF_CLIENTS} signer with {ADMINISTRATORS} group is not allowed");
        return Err(rejection(attributes, &why));
    }
    Ok(())
}

/// Returns `true` if a PEM request has the organization `system:masters`. Returns `false` for a malformed request,
/// which validation rejects.
fn names_administrators(request: &str) -> bool {
    let request = STANDARD.decode(request).unwrap_or_default();
    let block = pem::blocks(&String::from_utf8_lossy(&request)).next();
    let is_theirs = |name: &String| name == ADMINISTRATORS;
    block.is_some_and(|block| {
        Request::read(&block.der)
            .is_some_and(|certificate_request| certificate_request.organizations().iter().any(is_theirs))
    })
}
