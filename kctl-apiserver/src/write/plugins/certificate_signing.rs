//! `CertificateSigning`: only users who may `sign` for a signer issue its certificates.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/certificates/signing/admission.go`.

use serde_json::Value;

use super::signer_permission::require;
use crate::{
    admission::Attributes, field_errors::text, kinds::certificates::certificate_signing_request, state::State,
    status::StatusError,
};

/// Checks that the user who changes the certificate or the conditions of a request may `sign` for its signer.
///
/// The signer is that of the stored request, which the write cannot change.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    let is_status = info.resource.is(&certificate_signing_request::KIND) && info.subresource == "status";
    let Some(old) = attributes.old.as_deref().filter(|_| is_status) else { return Ok(()) };
    let is_changed = |field: &str| old["status"][field] != object["status"][field];
    if is_changed("certificate") || is_changed("conditions") {
        return require(state, attributes, "sign", text(&old["spec"]["signerName"]));
    }
    Ok(())
}
