//! The controllers of kube-controller-manager that simulate no workloads: garbage collection, Namespaces and their
//! objects, `ResourceQuotas`, service account tokens and aggregated `ClusterRoles`. Also the controllers of CRDs and
//! `APIServices`, which are part of kube-apiserver.
//!
//! A change is processed in two steps: the store announces it, and [`Controllers`] records which objects may need work.
//! `server/run_controllers.rs` then lets it work on one object at a time under the lock.
//!
//! | controller | file | name in `--controllers` |
//! |---|---|---|
//! | aggregated roles | `roles` | `clusterrole-aggregation-controller` |
//! | garbage collector | `garbage` | `garbage-collector-controller` |
//! | namespaces | `namespaces` | `namespace-controller` |
//! | quotas | `quotas` | `resourcequota-controller` |
//! | root CA and default account | `service_accounts` | `root-ca-certificate-publisher-controller`, `serviceaccount-controller` |
//! | token Secrets | `tokens` | `serviceaccount-token-controller` |
//! | CRDs, `APIServices` | `definitions`, `api_services` | always on |
//!
//! A pass only reads and writes the store: it makes no requests and never waits, so a seed of the simulator gives one
//! order.

mod api_services;
pub(crate) mod definitions;
mod garbage;
mod namespaces;
mod options;
mod quotas;
mod roles;
pub(crate) mod service_accounts;
pub(crate) mod tokens;
mod work;

pub use options::{Controller, ControllerOptions, UnknownControllerError};
pub(crate) use work::Controllers;
