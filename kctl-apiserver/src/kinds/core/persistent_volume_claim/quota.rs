//! Usage of quotas by `PersistentVolumeClaim` objects.
//!
//! Upstream: `pkg/quota/v1/evaluator/core/persistent_volume_claims.go`.
//!
//! ```text
//! persistentvolumeclaims: 10
//! requests.storage: 100Gi
//! fast.storageclass.storage.k8s.io/requests.storage: 20Gi
//! ```

use serde_json::Value;

use crate::{
    amounts::{self, Amounts, ResourceMap},
    kinds::core::{is_selected, persistent_volume_claim::class_of_claim},
    quantity,
};

/// Separates the name of a storage class from the counted name, as in
/// `fast.storageclass.storage.k8s.io/requests.storage`.
const STORAGE_CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
/// Names in quotas that claims use, with or without a storage class before them.
const COUNTED: &[&str] = &["persistentvolumeclaims", "requests.storage"];

/// Returns `true` if a name in a quota is about claims. The name of the class is not checked: a quota may be about a
/// class that does not exist yet.
pub(super) fn counts(name: &str) -> bool {
    let plain = name.split_once(STORAGE_CLASS_SUFFIX).map_or(name, |(_, plain)| plain);
    COUNTED.contains(&plain)
}

/// Returns one claim and its requested storage, or the allocated storage if that is more. Both also count for the
/// storage class of the claim.
pub(super) fn usage(claim: &Value) -> Amounts {
    let requested = ResourceMap::Requests.amounts(&claim["spec"]).get("storage").map(|amount| amount.rounded_up(0));
    let given = amounts::read(&claim["status"]["allocatedResources"]).get("storage").copied();
    let size = requested.map(|requested| given.filter(|given| *given > requested).unwrap_or(requested));
    let class = class_of_claim(claim);
    let mut usage = Amounts::new();
    for (name, amount) in [("persistentvolumeclaims", Some(quantity::count(1))), ("requests.storage", size)] {
        let Some(amount) = amount else { continue };
        usage.insert(name.into(), amount);
        if !class.is_empty() {
            usage.insert(format!("{class}{STORAGE_CLASS_SUFFIX}{name}"), amount);
        }
    }
    usage
}

/// Returns `true` if a claim is in the scope. The only scope of claims is `VolumeAttributesClass`.
pub(super) fn is_in_scope(claim: &Value, scope: &str, operator: &str, values: &Value) -> bool {
    scope == "VolumeAttributesClass" && is_selected(&classes(claim), operator, values)
}

/// Returns the names of the classes that a claim has, had or gets. While a volume is modified, both the current and the
/// wanted class count, so that a quota is not exceeded during the change.
fn classes(claim: &Value) -> Vec<&str> {
    let pointers = [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ];
    let named = pointers.iter().filter_map(|pointer| claim.pointer(pointer)?.as_str());
    named.filter(|name| !name.is_empty()).collect()
}
