//! Kinds of `apps`.
//!
//! The workloads share the validation of selector, template and strategy (`validation`), and of the numbers in a status
//! (`crate::validation::status`). Simulated controllers run them.

pub(crate) mod controller_revision;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod replica_set;
pub(crate) mod stateful_set;
pub(crate) mod validation;

use crate::{field::Field, registry::kind::Validation, validation::warnings};

/// The common part of the validation of workloads. A Deployment, `DaemonSet` and `ReplicaSet` have an immutable
/// selector, and warnings about the Pod template. A `StatefulSet` replaces both functions: a tag of the API makes its
/// selector immutable, and it has warnings about its claims, too.
const VALIDATION: Validation = Validation {
    validates_spec_only: true,
    // Another selector would orphan the Pods that the old one selects.
    validate_update: |old, new, errors| {
        let selector = Field::new(&new["spec"]["selector"], "spec.selector", errors);
        selector.immutable(&old["spec"]["selector"]);
    },
    warn: warnings::warn_about_template,
    warns_once_per_generation: true,
    ..Validation::DEFAULT
};
