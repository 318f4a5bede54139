//! Permissions on signers of certificates: the admission plugins `CertificateApproval`, `CertificateSigning`,
//! `CertificateSubjectRestriction` and `ClusterTrustBundleAttest`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::Forbid;
use crate::{
    admission::Attributes,
    authorizer,
    field_errors::text,
    registry::kind::{Lacking, SignerRight},
    state::State,
    status::{FieldError, StatusError},
    x509::{Request, pem},
};

/// The signer of client certificates, which must not issue administrators.
const OF_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
/// The group of administrators.
const ADMINISTRATORS: &str = "system:masters";

/// Checks a new `CertificateSigningRequest`: it must not ask for a certificate of an administrator.
pub(super) fn check_subject(attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    if object["spec"]["signerName"] == OF_CLIENTS && names_administrators(text(&object["spec"]["request"])) {
        let why = format!("use of {OF_CLIENTS} signer with {ADMINISTRATORS} group is not allowed");
        return Forbid::new(attributes).reject(&why);
    }
    Ok(())
}

/// Checks that the user has the permission on a signer that the kind of the object requires for the write. The
/// permission is for the signer by its name, or for `domain/*` (`IsAuthorizedForSignerName`).
///
/// Only cluster-wide rules apply: signers have no namespace.
pub(super) fn check_right(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    let right = (info.resource.kind.signer_right)(&info.subresource, attributes.old.as_deref(), object);
    let Some(SignerRight { verb, signer, otherwise }) = right else { return Ok(()) };
    let domain = signer.split('/').next().unwrap_or_default();
    let of_domain = format!("{domain}/*");
    let attributes_of = |name| authorizer::Attributes {
        verb,
        group: "certificates.k8s.io",
        resource: "signers",
        subresource: "",
        namespace: "",
        name,
    };
    let user = &info.caller.user;
    if [signer, of_domain.as_str()].into_iter().any(|name| authorizer::allowed(state, user, &attributes_of(name))) {
        return Ok(());
    }
    let why = format!("user {:?} is not permitted to {verb:?} for signer {signer:?}", user.name);
    match otherwise {
        Lacking::Forbidden => Forbid::new(attributes).reject(&why),
        Lacking::Invalid => {
            let error = FieldError::forbidden("spec.signerName", &why);
            Err(StatusError::invalid(&info.resource.id.group, info.resource.kind_name(), &attributes.name, &[error]))
        }
    }
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
