//! `ValidatingWebhookConfiguration` of `admissionregistration.k8s.io`.
//!
//! Its webhooks accept or reject a request after all mutations.
//!
//! Upstream: `pkg/registry/admissionregistration/validatingwebhookconfiguration/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Cell, Defaults, Kind, TableColumns};

pub(crate) static KIND: Kind = Kind {
    resource: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
    defaults: Defaults { set: super::defaults::validating_webhooks, ..Defaults::DEFAULT },
    validation: super::webhooks::VALIDATION,
    table: TableColumns::cells(&[Cell::Name, Cell::Count("/webhooks"), Cell::Age]),
    ..super::CONFIGURATION
};
