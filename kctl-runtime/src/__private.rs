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
        Action, Allows, Caches, Context, Controller, Declares, Finalize, FinalizeFn, FunctionController, Reconcile,
        Result, verb,
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
    fn crd(&self) -> Option<CustomResourceDefinition>;
}
impl<K: CustomResourceExt + schemars::JsonSchema> HasSchema for &CrdProbe<K> {
    fn crd(&self) -> Option<CustomResourceDefinition> {
        let mut crd = K::crd();
        crate::manifest::without_built_in_descriptions::<K>(&mut crd);
        Some(crd)
    }
}
pub trait HasCrd {
    fn crd(&self) -> Option<CustomResourceDefinition>;
}
impl<K: CustomResourceExt> HasCrd for &&CrdProbe<K> {
    fn crd(&self) -> Option<CustomResourceDefinition> {
        Some(K::crd())
    }
}
pub trait NoCrd {
    fn crd(&self) -> Option<CustomResourceDefinition>;
}
impl<K> NoCrd for CrdProbe<K> {
    fn crd(&self) -> Option<CustomResourceDefinition> {
        None
    }
}

pub fn finalize_fn<C: Finalize>() -> FinalizeFn<C> {
    |controller, object, cx| Box::pin(controller.finalize(object, cx))
}
