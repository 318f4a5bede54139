//! Runs the admission plugins that are on by default, in the order of kube-apiserver.
//!
//! Each plugin decides itself which requests it handles. [`admit`] changes objects and [`validate`] rejects them:
//!
//! | function | new objects | updated objects |
//! |---|---|---|
//! | [`admit`] | before mutating webhooks, and again after defaults (`complete.rs`) | before and after mutating webhooks |
//! | [`validate`] | before validating webhooks | before validating webhooks |
//!
//! Each plugin is idempotent, because [`admit`] may run again after webhooks have changed the object.
//!
//! Some plugins are elsewhere: `NamespaceLifecycle` is the step `namespace.rs`, `ResourceQuota` is the step
//! `quotas.rs`, the policies and webhooks are in `admission`, and `DefaultTolerationSeconds` is one of the defaults of
//! a Pod (`defaulting/pod.rs`). `PodGroupProtection` has nothing to do: its kind is off by default.
//! `NodeDeclaredFeatureValidator` is left out: updates of a bound Pod are not compared with the declared features of
//! its Node.
//!
//! Upstream: `AllOrderedPlugins` and `DefaultOffAdmissionPlugins` in `pkg/kubeapiserver/options/plugins.go`.

#![expect(clippy::unnecessary_wraps, reason = "all plugins have the signature of `Admit`")]

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

use crate::{admission::Attributes, registry::kind::Kind, request::RequestInfo, state::State, status::StatusError};

/// Changes the object of a write, or rejects it (`MutationInterface.Admit`).
type Admit = fn(&mut State, &mut Mutation<'_>) -> Result<(), StatusError>;
/// Rejects the object of a write (`ValidationInterface.Validate`).
type Validate = fn(&State, &Attributes<'_>, &Value) -> Result<(), StatusError>;

/// The plugins that change objects, in the order of `AllOrderedPlugins`.
const ADMIT: &[Admit] = &[
    limit_ranger::admit,
    service_account::admit,
    taint_nodes_by_condition::admit,
    priority::admit,
    default_class::set_storage_class,
    storage_object_in_use_protection::admit,
    runtime_class::admit,
    default_class::set_ingress_class,
    pod_topology_labels::admit,
];

/// The plugins that reject objects, in the order of `AllOrderedPlugins`.
const VALIDATE: &[Validate] = &[
    limit_ranger::validate,
    pod_security::validate,
    priority::validate,
    persistent_volume_claim_resize::validate,
    runtime_class::validate,
    certificates::authorize_approval,
    certificates::authorize_signing,
    certificates::authorize_attest,
    certificates::restrict_subject,
    pod_resize_validator::validate,
];

/// A write that plugins may change.
pub(super) struct Mutation<'a> {
    /// The request.
    pub(super) info: &'a RequestInfo,
    /// The stored object; `None` if the write creates the object.
    pub(super) old: Option<&'a Value>,
    /// The object to store.
    pub(super) object: &'a mut Value,
}

impl<'a> Mutation<'a> {
    /// Returns `true` if the write creates an object of the kind.
    fn creates(&self, kind: &'static Kind) -> bool {
        self.old.is_none() && self.info.resource.is(kind)
    }

    /// Returns the stored object if the write updates an object of the kind through the subresource.
    fn updates(&self, kind: &'static Kind, subresource: &str) -> Option<&'a Value> {
        self.old.filter(|_| self.info.resource.is(kind) && self.info.subresource == subresource)
    }
}

/// Runs the plugins that change objects.
///
/// # Errors
/// Fails with the first plugin that rejects the write.
pub(super) fn admit(state: &mut State, mut mutation: Mutation<'_>) -> Result<(), StatusError> {
    ADMIT.iter().try_for_each(|admit| admit(state, &mut mutation))
}

/// Runs the plugins that reject objects. `DELETE` and `CONNECT` have no object here.
///
/// # Errors
/// Fails with the first plugin that rejects the write.
pub(super) fn validate(state: &State, attributes: &Attributes<'_>) -> Result<(), StatusError> {
    let Some(object) = &attributes.object else { return Ok(()) };
    VALIDATE.iter().try_for_each(|validate| validate(state, attributes, object))
}
