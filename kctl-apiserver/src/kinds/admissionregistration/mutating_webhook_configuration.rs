//! `MutatingWebhookConfiguration` of `admissionregistration.k8s.io`.
//!
//! Its webhooks may change an object before validation. They are called one after the other. Admission policies apply
//! to writes of this kind, but not to writes of admission policies.
//! Upstream: `pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Cell, Defaults, Kind, TableColumns, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    defaults: Defaults { set: super::defaults::mutating_webhooks, ..Defaults::DEFAULT },
    validation: Validation {
        validate: super::webhooks::webhooks,
        validate_create: super::reserved::name,
        warn: super::reserved::warn_of_webhooks,
        ..Validation::DEFAULT
    },
    table: TableColumns::cells(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]),
    ..super::CONFIGURATION
};
