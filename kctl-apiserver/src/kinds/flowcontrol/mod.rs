//! Kinds of `flowcontrol.apiserver.k8s.io`.
//!
//! API priority and fairness: a `FlowSchema` assigns requests to a level, and a `PriorityLevelConfiguration` limits it.

pub(crate) mod flow_schema;
pub(crate) mod priority_level_configuration;
pub(crate) mod validation;
