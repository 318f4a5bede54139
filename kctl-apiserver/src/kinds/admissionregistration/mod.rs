//! Kinds of `admissionregistration.k8s.io`.
//!
//! The objects configure admission: webhooks, and policies with their bindings in CEL. The module `admission` evaluates
//! them; the files here complete, validate and print them. All of them are cluster-scoped and need a `resourceVersion`
//! in an update.

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

use crate::registry::kind::{Kind, Metadata, Requests, Strategy, Validation};

/// The common part of all kinds of the group.
const CONFIGURATION: Kind = Kind {
    group: "admissionregistration.k8s.io",
    metadata: Metadata { finalizers_without_domain: true, ..Metadata::COUNTED },
    strategy: Strategy::CONDITIONAL,
    validation: VALIDATION,
    ..Kind::DEFAULT
};

/// The common part of the validation: reserved names.
const VALIDATION: Validation =
    Validation { validate_create: reserved::name, warn: reserved::warn_of_name, ..Validation::DEFAULT };

/// The common part of policies and their bindings.
const POLICY: Kind =
    Kind { requests: Requests { is_exempt_from_policies: true, ..Requests::DEFAULT }, ..CONFIGURATION };
