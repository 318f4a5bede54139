//! `ValidatingAdmissionPolicyBinding` of `admissionregistration.k8s.io`.
//!
//! A binding puts a policy into effect for some resources. `validationActions` determines if a failed validation
//! rejects the request (`Deny`), adds a warning to the response (`Warn`), or is recorded in the audit log (`Audit`).
//! The policy need not exist: the binding takes effect when it is created.
//!
//! Upstream: `pkg/registry/admissionregistration/validatingadmissionpolicybinding/strategy.go` and
//! `pkg/apis/admissionregistration/validation/validation.go`.

use crate::registry::kind::{Defaults, Kind, Validation};

pub(crate) static KIND: Kind = Kind {
    resource: "validatingadmissionpolicybindings",
    kind: "ValidatingAdmissionPolicyBinding",
    defaults: Defaults { set: super::defaults::admission_policy_binding, ..Defaults::DEFAULT },
    validation: Validation { validate: super::policies::validating_binding, ..super::VALIDATION },
    table: super::table::BINDING,
    ..super::POLICY
};
