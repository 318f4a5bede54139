//! What a file that declares controllers needs: `use kctl::prelude::*`.

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

#[cfg(feature = "interpreter")]
pub use kctl_interpreter::{
    function::ClusterStatus,
    operation::{AggregatedStatusItem, Component, DependentReference, ReplicaRequirements, Replicas},
};
#[cfg(feature = "interpreter")]
pub use kctl_macros::interpreter;
#[cfg(feature = "webhook")]
pub use kctl_macros::{admission, conversion};
#[doc(hidden)]
pub use kctl_runtime::__private::WithoutBounds as _;
pub use kctl_runtime::{
    effect::{
        ApiError,
        EventType::{self, Normal, Warning},
    },
    handler::predicate::{annotations_changed, generation_changed, labels_changed},
    key::Key,
    reconcile::{
        Action, Cluster, Conditions, Context, Controller, Creates, Deletes, HasRules, Owned, Owns, Patches, Reads,
        ReadsLive, Result, ResultExt,
    },
    store::{Change, Store},
};

#[cfg(feature = "webhook")]
pub use kctl_webhook::admission::{Admission, Denial, Invalid};

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
/// ```
/// use kctl::prelude::*;
///
/// /// Creates a bucket outside the cluster for each claim, and deletes it with the claim.
/// #[controller(of = ConfigMap, finalizer = "example.com/bucket")]
/// struct Buckets {}
///
/// impl Reconcile for Buckets {
///     async fn reconcile(&self, claim: Arc<ConfigMap>, _cx: Context<Self>) -> Result<Action> {
///         println!("bucket {} is there", claim.name_any());
///         Ok(Action::requeue(Duration::from_secs(600)))
///     }
/// }
///
/// impl Finalize for Buckets {
///     async fn finalize(&self, claim: Arc<ConfigMap>, _cx: Context<Self>) -> Result<()> {
///         println!("bucket {} is gone", claim.name_any());
///         Ok(()) // now the finalizer goes
///     }
/// }
/// ```
#[doc(inline)]
pub use kctl_runtime::reconcile::{Finalize, UnreadableObject};

pub use crate::{App, controller, resource, schema, view};
