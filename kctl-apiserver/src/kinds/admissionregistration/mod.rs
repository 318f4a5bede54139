//! Kinds of `admissionregistration.k8s.io`.
//!
//! The objects configure admission: webhooks, and policies with their bindings in CEL. The module
//! `admission` evaluates them; the files here complete, validate and print them. All of them are
//! cluster-scoped and need a `resourceVersion` in an update.

mod defaults;
pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
pub(crate) mod policies;
mod reserved;
mod table;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;
pub(crate) mod webhooks;
