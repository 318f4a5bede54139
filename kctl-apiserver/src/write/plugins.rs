//! Runs the admission plugins that are on by default, in the order of kube-apiserver.
//!
//! A kind lists its plugins (`Kind::admission`), so no plugin compares kinds. [`admit`] changes objects and [`validate`]
//! rejects them:
//!
//! | function | new objects | updated objects |
//! |---|---|---|
//! | [`admit`] | before mutating webhooks, and again after defaults (`complete.rs`) | before and after mutating webhooks |
//! | [`validate`] | before validating webhooks | before validating webhooks |
//!
//! Each plugin is idempotent, because [`admit`] may run again after webhooks have changed the object.
//!
//! Some plugins are elsewhere: `NamespaceLifecycle` is the step `namespace.rs`, and `ResourceQuota` is the step
//! `quotas.rs`. The policies and webhooks are in `admission`. `DefaultTolerationSeconds` is one of the defaults of a
//! Pod (`defaulting/pod.rs`). `PodGroupProtection` has nothing to do: its kind is off by default.
//! `NodeDeclaredFeatureValidator` is left out: updates of a bound Pod are not compared with the declared features of
//! its Node.
//!
//! Upstream: `AllOrderedPlugins` and `DefaultOffAdmissionPlugins` in `pkg/kubeapiserver/options/plugins.go`.

#![expect(clippy::unnecessary_wraps, reason = "all plugins return the same type")]

mod certificates;
mod default_class;
mod forbid;
mod limit_ranger;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use serde_json::Value;

use forbid::forbidden;
pub(super) use forbid::rejection;
pub(crate) use pod_topology_labels::topology;

use crate::{
    admission::Attributes,
    registry::kind::{Plugin, Subresource},
    request::RequestInfo,
    state::State,
    status::StatusError,
};

/// A write that plugins may change.
pub(super) struct Mutation<'a> {
    /// The request that writes, with its caller and subresource.
    pub(super) info: &'a RequestInfo,
    /// The stored object; `None` if the write creates the object.
    pub(super) old: Option<&'a Value>,
    /// The object to store.
    pub(super) object: &'a mut Value,
}

impl<'a> Mutation<'a> {
    /// Returns `true` if the write creates an object.
    fn creates(&self) -> bool {
        self.old.is_none()
    }

    /// Returns the stored object if the write updates it through the subresource.
    fn updates(&self, subresource: Subresource) -> Option<&'a Value> {
        self.old.filter(|_| self.info.subresource == subresource)
    }
}

/// Runs the plugins of the kind that change objects.
///
/// # Errors
/// Fails with the first plugin that rejects the write.
pub(super) fn admit(state: &mut State, mut mutation: Mutation<'_>) -> Result<(), StatusError> {
    let plugins = mutation.info.resource.kind.admission;
    plugins.iter().try_for_each(|plugin| admit_by(*plugin, state, &mut mutation))
}

/// Changes the object of a write by one plugin, or rejects it (`MutationInterface.Admit`).
fn admit_by(plugin: Plugin, state: &mut State, mutation: &mut Mutation<'_>) -> Result<(), StatusError> {
    match plugin {
        Plugin::LimitRangerForPods => limit_ranger::admit(&state.store, mutation),
        Plugin::ServiceAccount => service_account::admit(state, mutation),
        Plugin::TaintNodesByCondition => taint_nodes_by_condition::admit(mutation),
        Plugin::PriorityForPods => priority::admit(&state.store, mutation),
        Plugin::DefaultStorageClass => default_class::set_storage_class(&state.store, mutation),
        Plugin::StorageObjectInUseProtection(finalizer) => storage_object_in_use_protection::admit(mutation, finalizer),
        Plugin::RuntimeClass => runtime_class::admit(&state.store, mutation),
        Plugin::DefaultIngressClass => default_class::set_ingress_class(&state.store, mutation),
        Plugin::PodTopologyLabels => pod_topology_labels::admit(&state.store, mutation),
        // These only validate.
        Plugin::LimitRangerForClaims
        | Plugin::PodSecurityForPods
        | Plugin::PodSecurityForNamespaces
        | Plugin::PodSecurityForTemplates(_)
        | Plugin::PriorityForClasses
        | Plugin::PersistentVolumeClaimResize
        | Plugin::CertificateApproval
        | Plugin::CertificateSigning
        | Plugin::ClusterTrustBundleAttest
        | Plugin::CertificateSubjectRestriction
        | Plugin::PodResizeValidator => Ok(()),
    }
}

/// Runs the plugins of the kind that reject objects.
///
/// # Errors
/// Fails with the first plugin that rejects the write.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let Some(object) = &attributes.object else { return Ok(()) };
    let plugins = attributes.info.resource.kind.admission;
    plugins.iter().try_for_each(|plugin| validate_by(*plugin, state, attributes, object))
}

/// Rejects the object of a write if one plugin does (`ValidationInterface.Validate`).
fn validate_by(plugin: Plugin, state: &State, attributes: &Attributes<'_>, object: &Value) -> Result<(), StatusError> {
    match plugin {
        Plugin::LimitRangerForPods => limit_ranger::validate_pod(&state.store, attributes, object),
        Plugin::LimitRangerForClaims => limit_ranger::validate_claim(&state.store, attributes, object),
        Plugin::PodSecurityForPods => pod_security::validate_pod(&state.store, attributes, object),
        Plugin::PodSecurityForNamespaces => pod_security::validate_namespace(&state.store, attributes, object),
        Plugin::PodSecurityForTemplates(pointer) => {
            pod_security::validate_template(&state.store, attributes, object.pointer(pointer))
        }
        Plugin::PriorityForClasses => priority::validate(&state.store, attributes, object),
        Plugin::PersistentVolumeClaimResize => {
            persistent_volume_claim_resize::validate(&state.store, attributes, object)
        }
        Plugin::RuntimeClass => runtime_class::validate(&state.store, attributes, object),
        Plugin::CertificateApproval => certificates::authorize_approval(state, attributes),
        Plugin::CertificateSigning => certificates::authorize_signing(state, attributes, object),
        Plugin::ClusterTrustBundleAttest => certificates::authorize_attest(state, attributes, object),
        Plugin::CertificateSubjectRestriction => certificates::restrict_subject(attributes, object),
        Plugin::PodResizeValidator => pod_resize_validator::validate(&state.store, attributes, object),
        // These only change objects.
        Plugin::ServiceAccount
        | Plugin::TaintNodesByCondition
        | Plugin::PriorityForPods
        | Plugin::DefaultStorageClass
        | Plugin::StorageObjectInUseProtection(_)
        | Plugin::DefaultIngressClass
        | Plugin::PodTopologyLabels => Ok(()),
    }
}
