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
pub use kube::ResourceExt;

#[cfg(feature = "interpreter")]
pub use kctl_interpreter::{
    function::ClusterStatus,
    operation::{AggregatedStatusItem, Component, DependentReference, ReplicaRequirements, Replicas},
};
#[cfg(feature = "interpreter")]
pub use kctl_macros::interpreter;
pub use kctl_macros::{controller, resource, schema};
pub use kctl_runtime::{
    effect::{
        ApiError,
        EventType::{self, Normal, Warning},
    },
    handler::predicate::{annotations_changed, generation_changed, labels_changed},
    key::Key,
    reconcile::{
        Action, Cluster, Conditions, Context, Creates, Deletes, Finalize, Owned, Owns, Patches, Reads, Reconcile,
        Result, ResultExt,
    },
    store::{Change, Store},
};

pub use crate::App;
