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
    allows,
    marks::Marks,
    owns_nothing,
    reconcile::{
        Action, Allows, Caches, CachesOn, Cluster, Context, Controller, Declares, DeclaresFinalizer, Finalize,
        FinalizeFn, FunctionController, ReadsLive, ReadsLiveOn, Reconcile, Result, Writes, WritesOn, WritesStatus,
        verb,
    },
    spec::{ControllerSpec, Relation, SpecBuilder},
    spec_of, writes_nothing,
};

/// Stands in every permission, so that only generated code can grant one.
#[derive(Debug)]
pub struct Seal;

/// A controller whose declaration has no mistake. One that has is given every permission, so that a mistake is one error.
pub trait Whole: Controller {}

/// No kind. Without an implementation of `Declares`, rustc says that `cx.owned` does not exist for this controller; with one,
/// it takes that one's kind for granted; with two, it says which kind is not declared.
pub struct NoKind;
/// The second one.
pub struct NorThis;

/// For controllers that own nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! owns_nothing {
    ($name:ident) => {
        $crate::no_kinds!(Declares, $name, NoKind);
        $crate::no_kinds!(Declares, $name, NorThis);
    };
}

/// For controllers that declare nothing that they do not own.
#[doc(hidden)]
#[macro_export]
macro_rules! writes_nothing {
    ($name:ident) => {
        $crate::no_kinds!(Writes, $name, NoKind);
        $crate::no_kinds!(Writes, $name, NorThis);
    };
}

/// The verbs of a grant.
#[doc(hidden)]
#[macro_export]
macro_rules! allows {
    ($grant:ident, $name:ident, $kind:ident: $($verb:ident)*) => { $(
        impl $crate::__private::Allows<$crate::__private::verb::$verb, $name, $kind> for $grant {
            const SEAL: $crate::__private::Seal = $crate::__private::Seal;
        }
    )* };
}

/// The start of a declaration, with what the primary's type says of itself.
#[doc(hidden)]
#[macro_export]
macro_rules! spec_of {
    ($primary:ident, $name:literal) => {{
        #[allow(unused_imports, reason = "which one is used depends on the kind")]
        use $crate::__private::{HasCrd as _, HasSchema as _, NoCrd as _, WithStatus as _, WithoutStatus as _};
        let probe = $crate::__private::CrdProbe::<$primary>::NEW;
        $crate::__private::SpecBuilder::<Self>::new($name, ::core::file!(), ::core::line!())
            .crd((&&probe).crd(), (&&probe).has_status())
            .schema((&&probe).schema())
    }};
}

/// A permission of nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! no_kinds {
    ($permission:ident, $name:ident, $kind:ident) => {
        impl $crate::__private::$permission<$crate::__private::$kind> for $name {
            type Grant = $crate::__private::$kind;
            const SEAL: $crate::__private::Seal = $crate::__private::Seal;
        }
    };
}

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
        Some(crate::manifest::schema_of::<K>)
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

/// Finds whether a kind is a custom resource with a status, in the same way.
pub trait WithStatus {
    fn has_status(&self) -> bool {
        true
    }
}
impl<K: crate::reconcile::HasStatus<crate::reconcile::Derived>> WithStatus for &&CrdProbe<K> {}
pub trait WithoutStatus {
    fn has_status(&self) -> bool {
        false
    }
}
impl<K> WithoutStatus for CrdProbe<K> {}

pub fn finalize_fn<C: Finalize>() -> FinalizeFn<C> {
    |controller, object, cx| Box::pin(controller.finalize(object, cx))
}
