//! `DefaultStorageClass` and `DefaultIngressClass`: a new object without a class gets the default class.
//!
//! Upstream: `claimDefaulterPlugin.Admit` in `plugin/pkg/admission/storage/storageclass/setdefault/admission.go` and
//! `classDefaulterPlugin.Admit` in `plugin/pkg/admission/network/defaultingressclass/admission.go`.

use std::sync::Arc;

use serde_json::Value;

use super::Mutation;
use crate::{
    field_errors::text,
    kinds::{core::persistent_volume::CLASS_ANNOTATION, networking::ingress_class, storage::storage_class},
    registry::kind::Kind,
    status::StatusError,
    store::Store,
};

/// Sets the `StorageClass` of a new `PersistentVolumeClaim` without one. The beta annotation still marks a default.
pub(super) fn set_storage_class(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let marks = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if mutation.creates() && !has_class(mutation, CLASS_ANNOTATION, "storageClassName") {
        set_default(store, mutation, "storageClassName", &storage_class::KIND, &marks);
    }
    Ok(())
}

/// Sets the `IngressClass` of a new Ingress without one.
pub(super) fn set_ingress_class(store: &Store, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    let (annotation, mark) = ("kubernetes.io/ingress.class", "ingressclass.kubernetes.io/is-default-class");
    if mutation.creates() && !has_class(mutation, annotation, "ingressClassName") {
        set_default(store, mutation, "ingressClassName", &ingress_class::KIND, &[mark]);
    }
    Ok(())
}

/// Returns `true` if the object names a class in the field or in the deprecated annotation. The empty string is a
/// class.
fn has_class(mutation: &Mutation<'_>, annotation: &str, field: &str) -> bool {
    let object = &*mutation.object;
    object["metadata"]["annotations"].get(annotation).is_some() || !object["spec"][field].is_null()
}

/// Sets a field of the spec to the name of the default class. A class is a default if it has one of the annotations
/// `marks`. Of several, the newest is used, and the first by name among equally old ones. Timestamps have whole
/// seconds, so equal ages are common in tests.
fn set_default(store: &Store, mutation: &mut Mutation<'_>, field: &str, class_kind: &Kind, marks: &[&str]) {
    let is_default = |class: &Arc<Value>| marks.iter().any(|mark| class["metadata"]["annotations"][mark] == "true");
    let created = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    // The objects are ordered by name.
    let newest = store
        .objects_of(class_kind, None)
        .filter(is_default)
        .reduce(|newest_so_far, other| if created(&other) > created(&newest_so_far) { other } else { newest_so_far });
    if let Some(class) = newest {
        mutation.object["spec"][field] = class["metadata"]["name"].clone();
    }
}
