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

/// The common part of the validation of workloads: the selector is immutable, and the Pod template has warnings.
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
