//! Validating admission: plugins, policies, webhooks and quotas see the object that will be stored.
//!
//! Upstream: `AllOrderedPlugins` of `pkg/kubeapiserver/options/plugins.go` has the order.

use serde_json::Value;

use super::{
    AdmissionStep, Write, plugins,
    quotas::{self, ChargedQuotas},
};
use crate::{admission, request::RequestInfo, state::State, status::StatusError, store::Key};

/// Runs validating admission. Returns the quotas to charge when the object is stored. The object may not be changed any
/// more: validating webhooks can only reject. The order is the same as in kube-apiserver: plugins, then policies and
/// webhooks, and quotas last, so that a rejected write is never charged.
///
/// # Errors
/// Fails with the first plugin, policy, webhook or quota that rejects the object, or with [`StatusError::waiting`] if a
/// webhook has not replied yet.
pub(super) fn run(
    state: &State,
    info: &RequestInfo,
    key: &Key,
    write: &mut Write,
) -> Result<ChargedQuotas, StatusError> {
    if write.admission == AdmissionStep::Done {
        return Ok(ChargedQuotas::default());
    }
    // An update without a `resourceVersion` is shown with the stored one.
    let stored = write.old().map(|old| old["metadata"]["resourceVersion"].clone());
    let version = write.object["metadata"]["resourceVersion"].as_str();
    if let Some(stored) = stored.filter(|_| version.is_none_or(str::is_empty)) {
        write.object["metadata"]["resourceVersion"] = stored;
    }
    let attributes = write.attributes(info, &key.1);
    plugins::validate(state, &attributes)?;
    admission::validate(state, &attributes)?;
    let charges = quotas::check(&state.store, &attributes)?;
    write.object = attributes.object.unwrap_or(Value::Null);
    Ok(charges)
}
