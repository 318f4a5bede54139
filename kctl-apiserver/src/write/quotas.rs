//! The admission plugin `ResourceQuota`: rejects writes that exceed a quota of the namespace, and charges the others.
//!
//! Upstream: `QuotaAdmission.Validate` of `k8s.io/apiserver/pkg/admission/plugin/resourcequota/admission.go`.

use std::sync::Arc;

use serde_json::Value;

use super::plugins::rejection;
use crate::{
    admission::Attributes,
    key, kinds,
    lifecycle::Writer,
    quota::{Counter, QuotaChange, amounts_json, charge},
    registry::kind::Subresource,
    status::StatusError,
    store::Store,
};

/// The field manager of the usage in the status of quotas.
const WRITER: Writer = Writer { manager: "kube-apiserver", subresource: Subresource::Status };

/// The quotas with the usage that they have once the object is stored.
#[derive(Default)]
#[must_use = "the quotas are charged when the object is stored"]
pub(super) struct ChargedQuotas(Vec<(Arc<Value>, Value)>);

/// Checks all quotas of the namespace. Runs last, so that rejected writes are not charged. Quotas without a matching
/// scope or resource are skipped. A dry run is checked, and its charges are dropped by `store`.
///
/// # Errors
/// `Forbidden` if a quota is exceeded, or if the object lacks a value that the quota counts.
pub(super) fn check(store: &Store, attributes: &Attributes<'_>) -> Result<ChargedQuotas, StatusError> {
    let info = attributes.info;
    let mut charges = Vec::new();
    let (Some(counter), Some(new)) = (Counter::for_resource(&info.resource), &attributes.object) else {
        return Ok(ChargedQuotas(charges));
    };
    let old = attributes.old.as_deref();
    if info.namespace.is_empty() || !counter.handles(attributes.operation, info.subresource, old, new) {
        return Ok(ChargedQuotas(charges));
    }
    let is_status = info.subresource.is_status();
    let change = QuotaChange { counter: &counter, old, new, is_status, now: store.clock.now() };
    for quota in store.objects_of(&kinds::core::resource_quota::KIND, Some(&info.namespace)) {
        let after = charge(&quota, &change).map_err(|why| rejection(attributes, &why))?;
        charges.extend(after.map(|after| (quota, amounts_json(&after))));
    }
    Ok(ChargedQuotas(charges))
}

impl ChargedQuotas {
    /// Writes the usage into the quotas.
    pub(super) fn write(self, store: &mut Store) {
        let resource = kinds::core::resource_quota::KIND.group_resource();
        for (quota, used) in self.0 {
            let mut new = Value::clone(&quota);
            new["status"]["used"] = used;
            WRITER.write(store, &resource, &key::object_key(&quota), &quota, new);
        }
    }
}
