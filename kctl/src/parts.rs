//! The parts of the loop that programs name, by module. Each item is listed, so that additions to
//! `kctl_runtime` do not become a part of this crate's API.

/// Reads, writes and results inside a reconcile function.
///
/// [`Context`](reconcile::Context) reads the caches and sends writes, and [`Action`](reconcile::Action) sets when it
/// runs again. Traits such as [`Caches`](reconcile::Caches) and [`Writes`](reconcile::Writes) are bounds for helpers
/// that work with several controllers; [`bounds`](reconcile::bounds) has those that few programs name.
pub mod reconcile {
    #[doc(inline)]
    pub use kctl_runtime::reconcile::{
        Action, ApiRequest, Caches, Cluster, Conditions, Context, Controller, Converged, CreateRequest, Creates,
        DeleteRequest, Deletes, Error, Events, Finalize, HasRules, HasStatus, Live, Objects, OnCluster, Owned, Owns,
        Patches, Reads, ReadsLive, Reconcile, ReconcileReason, Result, ResultExt, UnreadableObject, Writes,
        WritesStatus,
    };

    /// Bounds for single verbs, for kinds on other clusters, and for what `#[controller]` implements.
    ///
    /// A helper that creates a kind which is not owned is bounded by `Writes<K, Verbs: MayCreate<C, K>>`; one that reads a
    /// kind on another cluster by `CachesOn<M, K>`. Most programs do with the traits of the prelude, such as
    /// [`Creates`].
    pub mod bounds {
        #[doc(inline)]
        pub use kctl_runtime::reconcile::{
            BuiltIn, CachesOn, Declares, Derived, FunctionController, HasRulesOn, MayApply, MayBind, MayCreate,
            MayDelete, MayDeleteCollection, MayDeletePrimary, MayEvict, MayGetPrimary, MayPatch, MayPatchPrimary,
            MayPatchStatus, MayScale, MayScalePrimary, MayToken, MayUpdate, ReadsLiveOn, WritableBy, WritesOn,
        };
    }
}

/// CRDs as values: for tests of what the `generate-…` commands print. The other manifests, such as roles,
/// Deployments and alerts, are in [`kctl_runtime::manifest`].
pub mod manifest {
    #[doc(inline)]
    pub use kctl_runtime::manifest::{Descriptions, KindSpec, crds, definitions};
}

/// The manager that [`App::manager`](crate::App::manager) returns, for programs that parse
/// their command line themselves.
pub mod manager {
    #[doc(inline)]
    pub use kctl_runtime::manager::{Manager, ManagerError, View};

    /// Leader election.
    pub mod lease {
        #[doc(inline)]
        pub use kctl_runtime::manager::lease::ElectionConfig;
    }

    /// Shards of a controller ring: see [`App::manager_in_ring`](crate::App::manager_in_ring).
    pub mod ring {
        #[doc(inline)]
        pub use kctl_runtime::manager::ring::RingConfig;
    }

    /// The certificate of the metrics: see [`Manager::serve_metrics_securely`].
    pub mod serve {
        #[doc(inline)]
        pub use kctl_runtime::manager::serve::Certificate;
    }

    /// Slots that replicas share: see [`Manager::shard`].
    pub mod shards {
        #[doc(inline)]
        pub use kctl_runtime::manager::shards::ShardConfig;
    }
}

/// Watches of kinds that are named at run time: see [`Env::watches`](crate::app::Env::watches).
pub mod watches {
    #[doc(inline)]
    pub use kctl_runtime::{
        source::{Health, Presence, WatchConfig},
        watches::{Projection, Watch, WatchError, Watches},
    };
}

/// Objects as they are cached, and objects of kinds without a Rust type.
pub mod object {
    #[doc(inline)]
    pub use kctl_runtime::object::{DecodeError, Kind, Meta, Object, Stored, Time, View};
}

/// Keys of objects.
pub mod key {
    #[doc(inline)]
    pub use kctl_runtime::key::{Key, ObjectKey};
}

/// Reads of the caches.
pub mod store {
    #[doc(inline)]
    pub use kctl_runtime::store::{Change, Store};
}

/// Predicates: which changes enqueue a key.
pub mod predicate {
    #[doc(inline)]
    pub use kctl_runtime::handler::predicate::{annotations_changed, generation_changed, labels_changed};
}

/// The declaration of a controller as data, as [`App::specs`](crate::App::specs) returns it.
pub mod spec {
    #[doc(inline)]
    pub use kctl_runtime::spec::{ControllerSpec, ExtraRule, RelationKind, RelationSpec};
}
