//! The imports of a file that declares controllers: `use kctl::prelude::*`.
//!
//! It has the attribute macros, and the types that signatures of reconcile functions name. It also
//! has the built-in kinds that most operators use, and the extension traits whose methods are
//! called on objects and results. Other kinds are in [`kctl::k8s`](crate::k8s).
//!
//! | for | names |
//! |---|---|
//! | the program | [`App`], [`controller`], [`resource`], [`schema`], [`view`] |
//! | a signature | [`Arc`], [`Context`], [`Action`], [`Result`] |
//! | a struct with state | [`Reconcile`], [`Finalize`], [`UnreadableObject`] |
//! | functions of a declaration | [`Key`], [`Store`], [`Change`], [`generation_changed`], [`labels_changed`], [`annotations_changed`] |
//! | events | [`Normal`], [`Warning`] |
//! | errors | [`ResultExt`], [`ApiError`] |
//! | helpers that are generic over controllers | [`Controller`], [`Owned`], [`Owns`], [`Creates`], [`Deletes`], [`Patches`], [`Reads`], [`ReadsLive`] |
//! | objects | [`ResourceExt`], [`ObjectMeta`], [`Condition`], [`PartialObjectMeta`] and common kinds |
//!
//! ```
//! use kctl::prelude::*;
//!
//! /// Deletes the Jobs of a `ConfigMap` that have the label `done`.
//! #[controller(owns = Job(delete, when = labels_changed))]
//! async fn sweeper(config: Arc<ConfigMap>, cx: Context<sweeper>) -> Result<Action> {
//!     let jobs = cx.owned::<Job>();
//!     for job in jobs.iter().filter(|job| job.labels().contains_key("done")) {
//!         jobs.delete(&job).await?;
//!         cx.event(Normal, "Swept", format!("{} is done", job.name_any()));
//!     }
//!     println!("{} has {} jobs", config.name_any(), jobs.len());
//!     Ok(Action::requeue(Duration::from_secs(60)))
//! }
//!
//! let app = App::new("sweeper").controller::<sweeper>();
//! ```
//!
//! A helper can be written once for several controllers. Its bounds name what the controller must
//! declare:
//!
//! ```
//! use kctl::prelude::*;
//!
//! /// Deletes all Pods that the primary owns.
//! async fn delete_pods<C: Deletes<Pod>>(cx: &Context<C>) -> Result<()> {
//!     for pod in cx.owned::<Pod>().iter() {
//!         cx.owned::<Pod>().delete(&pod).await?;
//!     }
//!     Ok(())
//! }
//!
//! #[controller(owns = Pod(delete))]
//! async fn drained(_config: Arc<ConfigMap>, cx: Context<drained>) -> Result<Action> {
//!     delete_pods(&cx).await?;
//!     Ok(Action::await_change())
//! }
//! # let _app = App::new("drained").controller::<drained>();
//! ```
//!
//! If a name of the prelude collides with one of yours, such as `Result`, an explicit `use` of
//! yours wins.

pub use std::{sync::Arc, time::Duration};

pub use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{
            ConfigMap, Container, Namespace, Node, Pod, PodSpec, PodTemplateSpec, Secret, Service, ServiceAccount,
        },
    },
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta},
};
pub use kube::{ResourceExt, core::PartialObjectMeta};

#[cfg(feature = "webhook")]
pub use kctl_macros::{admission, conversion};
#[doc(hidden)]
pub use kctl_runtime::__private_0_1::WithoutBounds as _;
pub use kctl_runtime::{
    handler::predicate::{annotations_changed, generation_changed, labels_changed},
    key::Key,
    reconcile::{
        Action, Cluster, Conditions, Context, Controller, Creates, Deletes, HasRules, Owned, Owns, Patches, Reads,
        ReadsLive, Result, ResultExt,
    },
    store::{Change, Store},
    writer::{
        ApiError,
        EventType::{self, Normal, Warning},
    },
};

#[cfg(feature = "webhook")]
pub use kctl_webhook::admission::{Admission, Denial, Invalid, Operation};

/// The reconcile function of a controller that is a struct: use it when a reconcile needs a client,
/// a database or settings.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Counts reconciles in a field; the function form has no state.
/// #[controller(of = ConfigMap)]
/// struct Counter {
///     seen: std::sync::atomic::AtomicU64,
/// }
///
/// impl Reconcile for Counter {
///     async fn reconcile(&self, _config: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
///         self.seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         Ok(Action::await_change())
///     }
/// }
/// ```
#[doc(inline)]
pub use kctl_runtime::reconcile::Reconcile;
/// The cleanup of a controller with a `finalizer`: it runs before a deleted object disappears.
///
/// ```
/// use kctl::prelude::*;
///
/// /// Creates a bucket outside the cluster for each claim, and deletes it with the claim.
/// #[controller(of = ConfigMap, finalizer = "example.com/bucket")]
/// struct Buckets {}
///
/// impl Reconcile for Buckets {
///     async fn reconcile(&self, claim: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
///         println!("bucket {} exists", claim.name_any());
///         Ok(Action::requeue(Duration::from_secs(600)))
///     }
/// }
///
/// impl Finalize for Buckets {
///     async fn finalize(&self, claim: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
///         println!("bucket {} is gone", claim.name_any());
///         Ok(()) // now the finalizer is removed
///     }
/// }
/// ```
#[doc(inline)]
pub use kctl_runtime::reconcile::{Finalize, UnreadableObject};

pub use crate::{App, controller, resource, schema, view};
