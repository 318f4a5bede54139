//! `ValidatingWebhookConfiguration` of `admissionregistration.k8s.io`.
//!
//! Its webhooks accept or reject a request after all mutations.
//!
//! - The fields are at the top level: the kind has neither a spec nor a status.
//! - Names of webhooks are unique within one configuration and have at least three segments, as in
//!   `a.example.com`.
//! - `kubectl get` prints name, number of webhooks and age.
//!
//! Upstream: `pkg/registry/admissionregistration/validatingwebhookconfiguration/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Generation, Kind};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    default: super::defaults::validating_webhooks,
    validate: super::webhooks::webhooks,
    validate_create: Some(|object, errors| {
        super::webhooks::webhooks(object, errors);
        super::reserved::name(object, errors);
    }),
    warn: super::reserved::warn_of_webhooks,
    printer: Some(super::table::webhooks),
    ..Kind::DEFAULT
};
