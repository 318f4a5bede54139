//! What generated code names. Not part of the API: it changes without notice.
#![doc(hidden)]

pub use std::{sync::Arc, time::Duration};

pub use k8s_openapi;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use kube;
use kube::CustomResourceExt;
pub use schemars;
pub use serde;
pub use serde_json;

pub use crate::{
    reconcile::{
        Action, Allows, Caches, Context, Controller, Declares, Finalize, FinalizeFn, FunctionController, ReadsLive,
        Reconcile, Result, Writes, verb,
    },
    spec::{ControllerSpec, Relation, SpecBuilder},
};

/// Stands in every permission, so that only generated code can grant one.
#[derive(Debug)]
pub struct Seal;

/// Finds the definition of a kind that may or may not be a custom resource. Method lookup on `&&CrdProbe` tries
/// `HasSchema`, then `HasCrd`, then `NoCrd`: the first whose bounds hold is called.
pub struct CrdProbe<K>(std::marker::PhantomData<fn() -> K>);
impl<K> CrdProbe<K> {
    pub const NEW: Self = Self(std::marker::PhantomData);
}
pub trait HasSchema {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition>;
    fn schema(&self) -> Option<fn() -> serde_json::Value>;
}
impl<K: CustomResourceExt + schemars::JsonSchema> HasSchema for &CrdProbe<K> {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition> {
        Some(K::crd)
    }
    fn schema(&self) -> Option<fn() -> serde_json::Value> {
        // Not inlined, types keep their names.
        Some(|| schemars::SchemaGenerator::default().into_root_schema_for::<K>().to_value())
    }
}
pub trait HasCrd {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition>;
    fn schema(&self) -> Option<fn() -> serde_json::Value> {
        None
    }
}
impl<K: CustomResourceExt> HasCrd for &&CrdProbe<K> {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition> {
        Some(K::crd)
    }
}
pub trait NoCrd {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition> {
        None
    }
    fn schema(&self) -> Option<fn() -> serde_json::Value> {
        None
    }
}
impl<K> NoCrd for CrdProbe<K> {}

/// Finds whether a kind has a status, in the same way.
pub trait WithStatus {
    fn has_status(&self) -> bool {
        true
    }
}
impl<K: crate::reconcile::HasStatus> WithStatus for &CrdProbe<K> {}
pub trait WithoutStatus {
    fn has_status(&self) -> bool {
        false
    }
}
impl<K> WithoutStatus for CrdProbe<K> {}

pub fn finalize_fn<C: Finalize>() -> FinalizeFn<C> {
    |controller, object, cx| Box::pin(controller.finalize(object, cx))
}
