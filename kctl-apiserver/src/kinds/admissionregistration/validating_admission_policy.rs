//! `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io`.
//!
//! A policy rejects requests by CEL expressions, without a webhook.
//!
//! - The generation counts changes of the spec. A new object has an empty status.
//! - A write of `status`, in which a controller reports type checking, leaves spec and metadata as
//!   they are.
//! - No admission policy sees policies, because a wrong one could otherwise not be repaired or
//!   deleted.
//! - `kubectl get` prints name, number of validations, kind of the parameters and age.
//!
//! Upstream: `pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Generation, Kind, NewStatus};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicies",
    kind: "ValidatingAdmissionPolicy",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    is_exempt_from_policies: true,
    new_status: NewStatus::Empty,
    kept_by_status: Kind::CLIENT_METADATA,
    reset_fields: &[("status", Kind::ALL_BUT_STATUS)],
    default: super::defaults::admission_policy,
    validate: super::policies::validating_policy,
    validate_create: Some(|object, errors| {
        super::policies::validating_policy(object, errors);
        super::reserved::name(object, errors);
    }),
    warn: super::reserved::warn_of_name,
    validate_status: |_, new, errors| super::policies::status(new, errors),
    printer: Some(super::table::validating_policy),
    ..Kind::DEFAULT
};
