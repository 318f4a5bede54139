//! `ClusterTrustBundleAttest`: only users who may `attest` for a signer write its bundles.
//!
//! Upstream: `Plugin.Validate` in `plugin/pkg/admission/certificates/ctbattest/admission.go`.

use serde_json::Value;

use super::signer_permission::require;
use crate::{
    admission::Attributes, field_errors::text, kinds::certificates::cluster_trust_bundle, metadata::is_about_its_end,
    state::State, status::StatusError,
};

/// Checks the writer of a signer's bundle.
///
/// A change of only owner references or finalizers needs no permission, so that garbage collection works.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    let signer = text(&object["spec"]["signerName"]);
    let is_about_its_end = attributes.old.as_deref().is_some_and(|old| is_about_its_end(old, object));
    if !attributes.info.resource.is(&cluster_trust_bundle::KIND) || signer.is_empty() || is_about_its_end {
        return Ok(());
    }
    require(state, attributes, "attest", signer)
}
