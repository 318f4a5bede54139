//! `ValidatingAdmissionPolicyBinding` of `admissionregistration.k8s.io`.

use crate::registry::kind::{Generation, Kind};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    is_exempt_from_policies: true,
    default: super::defaults::admission_policy_binding,
    validate: super::policies::validating_binding,
    printer: Some(super::table::policy_binding),
    ..Kind::DEFAULT
};
