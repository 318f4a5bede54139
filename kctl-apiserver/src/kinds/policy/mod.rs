//! Kinds of `policy`.
//!
//! The only kind with a resource is `PodDisruptionBudget`. `Eviction`, of the same group, is the body of a request to
//! the subresource `eviction` of a Pod.

pub(crate) mod pod_disruption_budget;
