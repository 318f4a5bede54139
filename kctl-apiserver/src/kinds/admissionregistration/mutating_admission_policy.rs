//! `MutatingAdmissionPolicy` of `admissionregistration.k8s.io`.
//!
//! A policy changes objects by CEL expressions that return apply configurations or JSON patches, without a webhook.
//!
//! - No admission policy sees policies, because a wrong one could otherwise not be repaired or deleted.
//! - Rules for `DELETE` are rejected: a deletion has no object to change.
//!
//! Upstream: `pkg/registry/admissionregistration/mutatingadmissionpolicy/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Cell, Defaults, Kind, TableColumns, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "mutatingadmissionpolicies",
    kind: "MutatingAdmissionPolicy",
    defaults: Defaults { set: super::defaults::admission_policy, ..Defaults::DEFAULT },
    validation: Validation { validate: super::policies::mutating_policy, ..super::VALIDATION },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Count("/spec/mutations"),
        Cell::Computed(|policy, _| super::table::parameter_kind(policy).into()),
        Cell::Age,
    ]),
    ..super::POLICY
};
