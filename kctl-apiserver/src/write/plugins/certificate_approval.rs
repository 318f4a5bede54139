//! `CertificateApproval`: only users who may `approve` for a signer approve or deny its requests.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/certificates/approval/admission.go`.

use serde_json::Value;

use super::signer_permission::require;
use crate::{
    admission::Attributes, field_errors::text, kinds::certificates::certificate_signing_request, state::State,
    status::StatusError,
};

/// Checks that the user who approves or denies a request may `approve` for its signer.
///
/// The signer is that of the stored request, which the write cannot change.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>, _: &Value) -> Result<(), StatusError> {
    let info = attributes.info;
    let is_approval = info.resource.is(&certificate_signing_request::KIND) && info.subresource == "approval";
    match attributes.old.as_deref().filter(|_| is_approval) {
        Some(old) => require(state, attributes, "approve", text(&old["spec"]["signerName"])),
        None => Ok(()),
    }
}
