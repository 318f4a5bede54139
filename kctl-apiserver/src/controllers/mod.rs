//! The controllers of kube-controller-manager that do not simulate workloads: garbage collection by owner references, namespaces and their
//! objects, quotas, tokens of accounts, aggregated roles; and the end of `CustomResourceDefinitions`, which is the API server's own.

pub(crate) mod accounts;
mod api_services;
pub(crate) mod definitions;
mod garbage;
mod namespaces;
mod options;
mod quotas;
mod roles;
pub(crate) mod tokens;
mod work;

pub use options::{Controller, ControllerOptions, UnknownController};
pub(crate) use roles::aggregated;
pub(crate) use work::Controllers;
