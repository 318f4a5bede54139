//! `MutatingAdmissionPolicyBinding` of `admissionregistration.k8s.io`.
//!
//! A binding puts a policy into effect for some resources, with parameters if the policy has a `paramKind`.
//! `spec.policyName` is required. The policy need not exist: the binding takes effect when it is created.
//!
//! Upstream: `pkg/registry/admissionregistration/mutatingadmissionpolicybinding/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Defaults, Kind, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "mutatingadmissionpolicybindings",
    kind: "MutatingAdmissionPolicyBinding",
    defaults: Defaults { set: super::defaults::admission_policy_binding, ..Defaults::DEFAULT },
    validation: Validation { validate: super::policies::mutating_binding, ..super::VALIDATION },
    table: super::table::BINDING,
    ..super::POLICY
};
