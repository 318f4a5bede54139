//! `MutatingWebhookConfiguration` of `admissionregistration.k8s.io`.

use crate::registry::kind::{Generation, Kind};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    default: super::defaults::mutating_webhooks,
    validate: super::webhooks::webhooks,
    printer: Some(super::table::webhooks),
    ..Kind::DEFAULT
};
