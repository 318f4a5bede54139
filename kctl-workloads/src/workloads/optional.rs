//! Fields that the types of some versions of Kubernetes require and others don't.
//!
//! `k8s_openapi` 0.29 has `Deployment.spec: Option<DeploymentSpec>` up to 1.36 and
//! `Deployment.spec: DeploymentSpec` from 1.37 on, and the reverse for the type and the status of
//! conditions. This crate compiles with each of them.

use std::sync::LazyLock;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};

/// A field of type `T` or `Option<T>`.
pub(super) trait MaybeField<T> {
    fn value(&self) -> Option<&T>;
}

impl<T> MaybeField<T> for T {
    fn value(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> MaybeField<T> for Option<T> {
    fn value(&self) -> Option<&T> {
        self.as_ref()
    }
}

static NO_DEPLOYMENT: LazyLock<DeploymentSpec> = LazyLock::new(DeploymentSpec::default);
static NO_REPLICA_SET: LazyLock<ReplicaSetSpec> = LazyLock::new(ReplicaSetSpec::default);

/// Returns the spec of a Deployment; the default one if it has none.
pub(super) fn deployment(object: &Deployment) -> &DeploymentSpec {
    object.spec.value().unwrap_or(&NO_DEPLOYMENT)
}

/// Returns the spec of a `ReplicaSet`; the default one if it has none.
pub(super) fn replica_set(object: &ReplicaSet) -> &ReplicaSetSpec {
    object.spec.value().unwrap_or(&NO_REPLICA_SET)
}

/// Returns a value as a field of type `T` or `Option<T>`.
pub(super) fn into_field<T, F: From<T>>(value: T) -> F {
    value.into()
}

pub(super) fn string(field: &impl MaybeField<String>) -> Option<&str> {
    field.value().map(String::as_str)
}
