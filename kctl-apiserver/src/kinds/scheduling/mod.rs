//! Kinds of `scheduling.k8s.io`.
//!
//! The only kind is `PriorityClass`. The admission plugin `Priority` copies its value into Pods.

pub(crate) mod priority_class;
