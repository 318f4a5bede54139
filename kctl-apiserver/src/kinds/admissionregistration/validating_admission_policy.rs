//! `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io`.

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
    validate_status: |_, new, errors| super::policies::status(new, errors),
    printer: Some(super::table::validating_policy),
    ..Kind::DEFAULT
};
