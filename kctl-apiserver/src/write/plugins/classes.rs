//! The admission plugins `DefaultStorageClass` and `DefaultIngressClass`.
//!
//! Both plugins run only on creation.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    field_errors::text, kinds::core::persistent_volume_claim::CLASS_OF_CLAIM, registry::kind::Kind, state::State,
};

/// Annotations that mark the default `StorageClass`.
///
/// The beta annotation is still accepted.
const OF_STORAGE: &[&str] =
    &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The annotation that marks the default `IngressClass`.
const OF_INGRESSES: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];

/// Returns the name of the default class. The newest of several is used, and the first by name among equally old ones.
///
/// `None` without a default class. Timestamps have whole seconds, so equal ages are common in tests.
fn default(state: &State, kind: &Kind, annotations: &[&str]) -> Option<Value> {
    let says = |class: &Arc<Value>| {
        annotations.iter().any(|annotation| class["metadata"]["annotations"][annotation] == "true")
    };
    let created = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    // The objects are ordered by name.
    let newest = state
        .objects_of(kind, None)
        .filter(says)
        .reduce(|newest_so_far, other| if created(&other) > created(&newest_so_far) { other } else { newest_so_far })?;
    Some(newest["metadata"]["name"].clone())
}

/// Sets the class of a `PersistentVolumeClaim` without one. The empty string is a class.
///
/// The deprecated annotation counts as a class.
pub(super) fn fill_claim(state: &State, claim: &mut Value) {
    let by_annotation = claim["metadata"]["annotations"].get(CLASS_OF_CLAIM);
    if by_annotation.is_some() || !claim["spec"]["storageClassName"].is_null() {
        return;
    }
    if let Some(name) = default(state, &crate::kinds::storage::storage_class::KIND, OF_STORAGE) {
        claim["spec"]["storageClassName"] = name;
    }
}

/// Sets the class of an Ingress without one.
///
/// A class that does not exist is not an error.
pub(super) fn fill_ingress(state: &State, ingress: &mut Value) {
    let by_annotation = ingress["metadata"]["annotations"].get("kubernetes.io/ingress.class");
    if by_annotation.is_some() || !ingress["spec"]["ingressClassName"].is_null() {
        return;
    }
    if let Some(name) = default(state, &crate::kinds::networking::ingress_class::KIND, OF_INGRESSES) {
        ingress["spec"]["ingressClassName"] = name;
    }
}
