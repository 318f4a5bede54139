//! `ValidatingWebhookConfiguration` of `admissionregistration.k8s.io`.

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
    printer: Some(super::table::webhooks),
    ..Kind::DEFAULT
};
