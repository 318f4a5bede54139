//! Kinds of `admissionregistration.k8s.io`.

mod defaults;
pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
pub(crate) mod policies;
mod table;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;
pub(crate) mod webhooks;
