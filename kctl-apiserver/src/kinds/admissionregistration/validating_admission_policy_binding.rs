//! `ValidatingAdmissionPolicyBinding` of `admissionregistration.k8s.io`.

use crate::{
    admit::defaults,
    registry::kind::{Generation, Kind},
};

pub(crate) static KIND: Kind = Kind {
    group: "admissionregistration.k8s.io",
    resource: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    finalizers_without_domain: true,
    generation: Generation::Counted,
    allows_unconditional_update: false,
    is_exempt_from_policies: true,
    default: defaults::api::admission_policy_binding,
    validate: super::policies::validating_binding,
    printer: Some(super::table::policy_binding),
    ..Kind::DEFAULT
};
