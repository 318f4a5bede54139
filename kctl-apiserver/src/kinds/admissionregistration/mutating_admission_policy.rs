//! `MutatingAdmissionPolicy` of `admissionregistration.k8s.io`.

use crate::registry::kind::{Generation, Kind};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "mutatingadmissionpolicies",
    kind: "MutatingAdmissionPolicy",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    is_exempt_from_policies: true,
    default: super::defaults::admission_policy,
    validate: super::policies::mutating_policy,
    printer: Some(super::table::mutating_policy),
    ..Kind::DEFAULT
};
