//! `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io`.
//!
//! A policy rejects requests by CEL expressions, without a webhook.
//!
//! - A write of `status`, in which a controller reports type checking, leaves spec and metadata as they are.
//! - No admission policy sees policies, because a wrong one could otherwise not be repaired or deleted.
//!
//! Upstream: `pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Cell, Defaults, Kind, NewStatus, Strategy, TableColumns, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
    defaults: Defaults { set: super::defaults::admission_policy, ..Defaults::DEFAULT },
    strategy: Strategy { new_status: NewStatus::Empty, kept_by_status: Kind::CLIENT_METADATA, ..Strategy::CONDITIONAL },
    validation: Validation {
        validate: super::policies::validating_policy,
        validate_status: |_, new, errors| super::policies::status(new, errors),
        ..super::VALIDATION
    },
    table: TableColumns::cells(&[
        Cell::Name,
        Cell::Count("/spec/validations"),
        Cell::Computed(|policy, _| super::table::parameter_kind(policy).into()),
        Cell::Age,
    ]),
    ..super::POLICY
};
