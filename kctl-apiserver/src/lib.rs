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
