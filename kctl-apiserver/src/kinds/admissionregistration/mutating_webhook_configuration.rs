//! `MutatingWebhookConfiguration` of `admissionregistration.k8s.io`.
//!
//! Its webhooks may change an object before validation. They are called one after the other. Admission policies apply
//! to writes of this kind, but not to writes of admission policies.
//!
//! Upstream: `pkg/registry/admissionregistration/mutatingwebhookconfiguration/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Cell, Defaults, Kind, TableColumns};

pub(crate) static KIND: Kind = Kind {
    resource: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    defaults: Defaults { set: super::defaults::mutating_webhooks, ..Defaults::DEFAULT },
    validation: super::webhooks::VALIDATION,
    table: TableColumns::cells(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]),
    ..super::CONFIGURATION
};
