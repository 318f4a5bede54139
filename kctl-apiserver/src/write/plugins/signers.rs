//! Permissions on signers of certificates: the admission plugins `CertificateApproval`, `CertificateSigning` and
//! `CertificateSubjectRestriction`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{Forbid, text};
use crate::{admission::Attributes, authorizer, request::Operation, state::State, status::StatusError};

/// The signer of client certificates, which must not issue administrators.
const OF_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
/// The group of administrators.
const ADMINISTRATORS: &str = "system:masters";

/// Checks a write of a `CertificateSigningRequest`.
///
/// Approval is the subresource `approval`, signing is `status`. The user needs a verb on the
/// virtual resource `signers`.
pub(super) fn check(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let (forbid, old) = (Forbid::of(attributes), attributes.old.as_deref());
    match (attributes.operation, attributes.info.subresource.as_str(), old) {
        (Operation::Create, "", _) => {
            if object["spec"]["signerName"] == OF_CLIENTS && names_administrators(text(&object["spec"]["request"])) {
                let why = format!("use of {OF_CLIENTS} signer with {ADMINISTRATORS} group is not allowed");
                return forbid.reject(&why);
            }
            Ok(())
        }
        (Operation::Update, "approval", Some(old)) => may(state, attributes, &forbid, "approve", old),
        (Operation::Update, "status", Some(old)) => {
            let signs = |part: &str| old["status"][part] != object["status"][part];
            // Only `status.certificate` needs the permission to sign.
            if signs("certificate") || signs("conditions") {
                may(state, attributes, &forbid, "sign", old)
            } else {
                Ok(())
            }
        }
        _ => Ok(()),
    }
}

/// Checks that the user has a verb on the signer, by its name or as `domain/*` (`IsAuthorizedForSignerName`).
///
/// Cluster-wide rules count only: signers have no namespace.
fn may(
    state: &State,
    attributes: &Attributes<'_>,
    forbid: &Forbid<'_>,
    verb: &str,
    old: &Value,
) -> Result<(), StatusError> {
    let signer = text(&old["spec"]["signerName"]);
    let domain = signer.split('/').next().unwrap_or_default();
    let of_domain = format!("{domain}/*");
    let asked = |name| authorizer::Attributes {
        verb,
        group: "certificates.k8s.io",
        resource: "signers",
        subresource: "",
        namespace: "",
        name,
    };
    let user = &attributes.info.caller.user;
    if [signer, of_domain.as_str()].into_iter().any(|name| authorizer::allowed(state, user, &asked(name))) {
        return Ok(());
    }
    forbid.reject(&format!("user not permitted to {verb} requests with signerName {signer:?}"))
}

/// Returns `true` if a PEM request has the organization `system:masters`. Searches for the DER of that attribute: its
/// object identifier comes before its value, wherever the subject is.
///
/// No X.509 parser is needed for this question. A request that does not decode has no organization,
/// and is rejected by validation.
fn names_administrators(request: &str) -> bool {
    /// The DER of the object identifier 2.5.4.10, `organizationName`.
    const ORGANIZATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];
    let pem = STANDARD.decode(request).unwrap_or_default();
    let pem = String::from_utf8_lossy(&pem).into_owned();
    let lines = pem.lines().skip_while(|line| !line.starts_with("-----BEGIN")).skip(1);
    let body: String = lines.take_while(|line| !line.starts_with("-----END")).map(str::trim).collect();
    let der = STANDARD.decode(body).unwrap_or_default();
    // The type and the length of the string follow the identifier.
    let text_at = ORGANIZATION.len() + 2;
    der.windows(text_at + ADMINISTRATORS.len()).any(|bytes| {
        bytes.starts_with(&ORGANIZATION)
            && usize::from(bytes[text_at - 1]) == ADMINISTRATORS.len()
            && bytes.ends_with(ADMINISTRATORS.as_bytes())
    })
}
