//! An embedded Kubernetes API server: in-process, in memory, for tests and development.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use k8s_openapi::api::core::v1::Namespace;
//!
//! let server = kctl_apiserver::ApiServer::new();
//! let client = kube::Client::new(server.service(), "default");
//! let namespaces = kube::Api::<Namespace>::all(client).list(&Default::default()).await.unwrap();
//! assert_eq!(namespaces.items.len(), 4);
//! # });
//! ```
//!
//! Use it to test a client of any library against the behaviour of kube-apiserver 1.37: defaults, validation, watches,
//! server-side apply, CRDs with CEL, admission and RBAC. Its [promises] are compared with recorded responses of
//! kube-apiserver. Tests of a kctl program begin with `kctl::testing` instead.
//!
//! | to | use |
//! |---|---|
//! | send requests as a user that RBAC restricts | [`ApiServer::service_as`] |
//! | serve other programs over HTTPS | `ApiServer::listen` (feature `serve`) |
//! | run the garbage collector, and delete the objects of deleted namespaces | [`ApiServer::controllers`], a future to spawn |
//! | run Pods | the crate `kctl-workloads`, a client |
//! | assert which requests and writes were made | [`ApiServer::requests`], [`ApiServer::observe`], [`ApiServer::observe_changes`] |
//! | start many tests from one state | [`ApiServer::fork`] |
//! | make requests and watches fail | [`faults`] |
//! | keep the objects across restarts | [`ApiServer::persist_in`] |
//!
//! A bare server writes nothing by itself: without its controllers, owner references have no effect. Its clock is
//! simulated and advances with tokio's, so that tests with a paused clock get the same times in each run.
//!
//! [promises]: https://github.com/kctl-rs/kctl/blob/main/docs/decisions/promises-of-the-embedded-server.md

#![cfg_attr(docsrs, feature(doc_cfg))]

mod admission;
mod amounts;
mod apply;
mod authorizer;
mod bootstrap;
mod cel;
mod client_config;
mod clock;
mod conditions;
mod controllers;
mod conversion;
mod crd;
mod decode;
mod defaulting;
mod deletion;
mod evaluate;
pub mod faults;
mod feature_gates;
mod field;
mod field_error;
mod field_errors;
mod go;
mod impersonation;
mod json_path;
mod key;
mod kinds;
mod lifecycle;
mod limits;
mod metadata;
mod metrics;
mod names;
mod nonresource;
mod openapi;
mod patch;
mod pattern;
mod pod_security;
mod proto;
mod quantity;
mod quota;
mod registry;
mod request;
mod request_log;
mod response;
mod schema;
mod selector;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod stale;
mod state;
mod status;
mod store;
mod table;
#[cfg(test)]
mod test_folder;
mod tokens;
mod transport;
mod validation;
mod verbs;
mod version;
mod webhook_client;
mod webhook_round;
mod write;
mod x509;

pub use controllers::{Controller, ControllerOptions, UnknownControllerError};
pub use feature_gates::{FeatureGateError, FeatureGates};
pub use request::User;
pub use request_log::RequestRecord;
pub use response::Body;
#[cfg(feature = "serve")]
pub use serve::{Listening, ServeOptions};
pub use server::{ApiServer, InProcess};
pub use store::Change;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
