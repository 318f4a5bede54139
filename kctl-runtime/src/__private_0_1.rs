//! Items that generated code names. Not a part of the API: it changes without notice.
#![doc(hidden)]

pub use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

pub use k8s_openapi;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use kube;
use kube::CustomResourceExt;
pub use kube::core::PartialObjectMeta;
pub use schemars;
pub use serde;
pub use serde_json;

pub use crate::freezer::{Freezer, ThawOrder};
#[cfg(feature = "planted")]
pub use crate::manager::shards::Planted;
#[cfg(feature = "planted")]
use crate::manager::{
    Manager,
    lease::{ElectionConfig, ElectionError},
    shards::ShardConfig,
};

pub use crate::polled::PolledReconcile;
use crate::writer::WriteGuard;
pub use crate::{
    allows, converged, function, has,
    manifest::{Flattened, Structure},
    markers::Markers,
    object::{FieldPaths, Open, TypedPath, View, ViewOf, ViewReader},
    owns_nothing, permission, primary, reads_a_view, reads_metadata,
    reconcile::missing_bounds::WithoutBounds,
    reconcile::misuse_diagnostics::{K0021EachKindIsDeclaredOnce, PatchedPrimary, WholeByContext},
    reconcile::seal::{NoKind, NoOtherKind, Seal, ValidDeclaration},
    reconcile::{
        Action, Allows, Caches, CachesOn, Cluster, Context, Controller, ConvergedFn, Declares, DeclaresFinalizer,
        Finalize, FinalizeFn, FunctionController, HasRules, HasRulesOn, ReadsLive, ReadsLiveOn, Reconcile, Result,
        Writes, WritesOn, WritesStatus, outcome, verb,
    },
    resource_of,
    spec::{ControllerSpec, PrimaryStatus, Relation, SpecBuilder},
    spec_of, writes_nothing,
};

/// Enables leader election without the permit before each write, so that two processes may write at once.
/// The simulator's tests use it to show what the permit prevents.
///
/// # Errors
/// The configuration contradicts itself.
#[cfg(feature = "planted")]
pub fn elect_unfenced(manager: Manager, config: ElectionConfig) -> core::result::Result<Manager, ElectionError> {
    manager.elect_unfenced(config)
}

/// Returns the response to a write's request, `None` if the time of the write is over before it.
///
/// A process that was frozen sends nothing after that, unlike with [`tokio::time::timeout`].
pub fn in_time<T>(guard: &WriteGuard, request: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
    crate::transport::in_time(guard.deadline().at(), request)
}

/// Shares keys among replicas with a bug in the protocol. The simulator's tests use it to show that the bug is found.
///
/// # Errors
/// The configuration contradicts itself.
#[cfg(feature = "planted")]
pub fn shard_planted(
    manager: Manager,
    client: kube::Client,
    config: ShardConfig,
    bug: Option<Planted>,
) -> core::result::Result<Manager, ElectionError> {
    manager.shard_with(client, config, bug)
}

/// The value of a field that is never read: its type is a compile error elsewhere.
pub fn never<T>() -> T {
    unreachable!("a field of this type is a compile error")
}

/// Implements `Declares` for two placeholders, for controllers that own nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! owns_nothing {
    ($name:ident) => {
        $crate::no_kinds!(Declares, $name, NoKind);
        $crate::no_kinds!(Declares, $name, NoOtherKind);
    };
}

/// Implements `Writes` for two placeholders, for controllers that write no kind they do not own.
#[doc(hidden)]
#[macro_export]
macro_rules! writes_nothing {
    ($name:ident) => {
        $crate::no_kinds!(Writes, $name, NoKind);
        $crate::no_kinds!(Writes, $name, NoOtherKind);
    };
}

/// Explains that a controller that reads only the metadata cannot read the whole object.
///
/// The bound never holds. Its lifetime makes rustc check it only where the code uses it.
#[doc(hidden)]
#[macro_export]
macro_rules! reads_metadata {
    ($name:ident, $kind:ident, $part:ident) => {
        impl<'a> $crate::__private_0_1::Caches<$kind> for $name
        where
            &'a (): $crate::__private_0_1::ReadsMore<$name, $kind, $part>,
        {
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
    };
}

/// Does the same for a view.
#[doc(hidden)]
#[macro_export]
macro_rules! reads_a_view {
    ($name:ident, $kind:ident, $part:ident) => {
        impl<'a> $crate::__private_0_1::Caches<$kind> for $name
        where
            &'a (): $crate::__private_0_1::ReadsMoreThanView<$name, $kind, $part>,
        {
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
    };
}

/// Never implemented: represents the fields that `reads = K(metadata)` leaves out.
#[diagnostic::on_unimplemented(
    message = "`{C}` reads the metadata of `{K}` alone: specification and status are not in its cache",
    label = "not the whole `{K}`",
    note = "help: write `cx.store::<PartialObjectMeta<{K}>>()`, or remove `metadata` from the parentheses of `{K}`",
    note = "code: K0047"
)]
pub trait ReadsMore<C, K, V> {}

/// Never implemented: represents the fields that `reads = K(as = V)` leaves out.
#[diagnostic::on_unimplemented(
    message = "`{C}` reads `{K}` as `{V}`: nothing else of it is in its cache",
    label = "not the whole `{K}`",
    note = "help: write `cx.store::<{V}>()`, with a field in `{V}` for each that is read, or remove `as = {V}`",
    note = "code: K0047"
)]
pub trait ReadsMoreThanView<C, K, V> {}

/// Implements `kube::Resource` for a view, with the names of its kind.
#[doc(hidden)]
#[macro_export]
macro_rules! resource_of {
    ($view:ident, $kind:ident) => {
        impl $crate::__private_0_1::kube::Resource for $view {
            type DynamicType = ();
            type Scope = <$kind as $crate::__private_0_1::kube::Resource>::Scope;
            fn kind(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::__private_0_1::kube::Resource>::kind(&())
            }
            fn group(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::__private_0_1::kube::Resource>::group(&())
            }
            fn version(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::__private_0_1::kube::Resource>::version(&())
            }
            fn plural(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$kind as $crate::__private_0_1::kube::Resource>::plural(&())
            }
            fn meta(&self) -> &$crate::__private_0_1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut $crate::__private_0_1::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// Implements `Reconcile` for a controller made from a function.
#[doc(hidden)]
#[macro_export]
macro_rules! function {
    ($name:ident, $primary:ident: |$object:ident, $cx:ident| $call:expr) => {
        impl $crate::__private_0_1::Reconcile for $name {
            async fn reconcile(
                &self,
                $object: $crate::__private_0_1::Arc<$primary>,
                $cx: $crate::__private_0_1::Context<Self>,
            ) -> $crate::__private_0_1::Result<$crate::__private_0_1::Action> {
                $call
            }
        }
        impl $crate::__private_0_1::FunctionController for $name {
            fn instance() -> Self {
                Self {}
            }
        }
    };
}

/// Implements `converged_fn`. The type has the span of the function, so that rustc reports a mismatch there.
#[doc(hidden)]
#[macro_export]
macro_rules! converged {
    ($function:ident: $of:ty = $value:expr) => {
        fn converged_fn() -> ::core::option::Option<$of> {
            let $function: $of = $value;
            ::core::option::Option::Some($function)
        }
    };
}

/// Implements permissions that have no verbs.
#[doc(hidden)]
#[macro_export]
macro_rules! has {
    ($name:ident: $($permission:ident $(<$($of:path),*>)?),*) => { $(
        impl $crate::__private_0_1::$permission $(<$($of),*>)? for $name {
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
    )* };
}

/// Implements the permissions on the primary.
#[doc(hidden)]
#[macro_export]
macro_rules! primary {
    ($public:tt $struct:tt $verbs:ident $end:tt $name:ident, $kind:ident: $($verb:ident)*) => {
        impl $crate::__private_0_1::ValidDeclaration for $name {}
        // The bound never holds; the lifetime keeps rustc from seeing that before the primary is given to `cx.update`.
        impl<'a> $crate::__private_0_1::WholeByContext<$name> for $kind where
            &'a (): $crate::__private_0_1::PatchedPrimary<$name, $kind>
        {
            fn never<T>() -> T {
                ::core::unreachable!()
            }
        }
        #[allow(
            missing_copy_implementations,
            missing_debug_implementations,
            missing_docs,
            unnameable_types,
            unreachable_pub,
            reason = "generated code alone names it; it has the span of the kind"
        )]
        $public $struct $verbs $end
        $crate::has!($name: Caches<$kind>);
        $crate::allows!($verbs, $name, $kind: $($verb)*);
    };
}

/// Implements the permissions on another kind: how it is read, and its verbs.
///
/// The type of the verbs has the span of the kind, where the compiler points for a missing verb.
#[doc(hidden)]
#[macro_export]
macro_rules! permission {
    ($public:tt $struct:tt $verbs:ident $end:tt $name:ident: $reads:ident<$read:ident $(@ $on:ident)?>, $($rest:tt)*) => {
        #[allow(
            missing_copy_implementations,
            missing_debug_implementations,
            missing_docs,
            unnameable_types,
            unreachable_pub,
            reason = "generated code alone names it; it has the span of the kind"
        )]
        $public $struct $verbs $end
        $crate::has!($name: $reads<$($on,)? $read>);
        $crate::permission!($verbs, $name; $($rest)*);
    };
    ($verbs:ident, $name:ident; $writes:ident<$kind:ident $(@ $on:ident)?>: $($verb:ident)*) => {
        impl $crate::__private_0_1::$writes<$($on,)? $kind> for $name {
            type Verbs = $verbs;
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
        $crate::allows!($verbs, $name, $kind: $($verb)*);
    };
}

/// Implements the verbs of a type.
#[doc(hidden)]
#[macro_export]
macro_rules! allows {
    ($verbs:ident, $name:ident, $kind:ident: $($verb:ident)*) => { $(
        impl $crate::__private_0_1::Allows<$crate::__private_0_1::verb::$verb, $name, $kind> for $verbs {
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
    )* };
}

/// Begins a declaration with the CRD, schema and status that the types of the kinds have.
#[doc(hidden)]
#[macro_export]
macro_rules! spec_of {
    ($primary:ident, $name:literal $(; $($kind:ident)*)?) => {{
        #[allow(unused_imports, reason = "which one is used depends on the kind")]
        use $crate::__private_0_1::{
            HasCrd as _, HasSchema as _, NoCrd as _, StatusSubresource as _, WithStatus as _, WithoutStatus as _,
        };
        let probe = $crate::__private_0_1::CrdProbe::<$primary>::NEW;
        $crate::__private_0_1::SpecBuilder::<Self>::new($name, ::core::file!(), ::core::line!())
            .crd((&&probe).crd())
            .status(match ((&&probe).has_status(), <$primary>::KCTL_STATUS_SUBRESOURCE) {
                (false, _) => $crate::__private_0_1::PrimaryStatus::Absent,
                (true, true) => $crate::__private_0_1::PrimaryStatus::Subresource,
                (true, false) => $crate::__private_0_1::PrimaryStatus::WithoutSubresource,
            })
            .schema((&&probe).schema())
            $(.related(::std::vec::Vec::from([$({
                let probe = $crate::__private_0_1::CrdProbe::<$kind>::NEW;
                ((&&probe).crd(), (&&probe).schema())
            }),*])))?
    }};
}

/// Implements a permission for a placeholder.
#[doc(hidden)]
#[macro_export]
macro_rules! no_kinds {
    ($permission:ident, $name:ident, $kind:ident) => {
        impl $crate::__private_0_1::$permission<$crate::__private_0_1::$kind> for $name {
            type Verbs = $crate::__private_0_1::$kind;
            const SEAL: $crate::__private_0_1::Seal = $crate::__private_0_1::Seal;
        }
    };
}

/// Finds the CRD of a type that may or may not be a custom resource.
///
/// Method resolution on `&&CrdProbe` tries `HasSchema`, then `HasCrd`, then `NoCrd`, and calls the first
/// whose bounds hold.
pub struct CrdProbe<K>(std::marker::PhantomData<fn() -> K>);

impl<K> std::fmt::Debug for CrdProbe<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CrdProbe").finish_non_exhaustive()
    }
}
impl<K> CrdProbe<K> {
    pub const NEW: Self = Self(std::marker::PhantomData);
}
/// Types with a CRD and a schema.
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
/// Types with a CRD alone, from kube's derive.
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
/// All other types, such as built-in kinds.
pub trait NoCrd {
    fn crd(&self) -> Option<fn() -> CustomResourceDefinition> {
        None
    }
    fn schema(&self) -> Option<fn() -> serde_json::Value> {
        None
    }
}
impl<K> NoCrd for CrdProbe<K> {}

/// Custom resources with a status. Probed as [`CrdProbe`] does.
pub trait WithStatus {
    fn has_status(&self) -> bool {
        true
    }
}
impl<K: crate::reconcile::HasStatus<crate::reconcile::Derived>> WithStatus for &&CrdProbe<K> {}
/// All other types.
pub trait WithoutStatus {
    fn has_status(&self) -> bool {
        false
    }
}
impl<K> WithoutStatus for CrdProbe<K> {}

/// The status subresource, which the CRD of each type with a status has.
///
/// With `status_subresource = false`, `#[resource]` adds an inherent constant of this name to the kind, which hides this
/// one.
pub trait StatusSubresource {
    const KCTL_STATUS_SUBRESOURCE: bool = true;
}
impl<K> StatusSubresource for K {}

/// Returns a duration. Declarations store durations in milliseconds.
pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Returns the `Finalize` implementation of a controller as function pointers.
pub fn finalize_fn<C: Finalize>() -> FinalizeFn<C> {
    FinalizeFn {
        readable: |controller, object, cx| Box::pin(controller.finalize(object, cx)),
        unreadable: |controller, object, cx| Box::pin(controller.finalize_unreadable(object, cx)),
    }
}
