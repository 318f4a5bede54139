//! Karmada's Resource Interpreter Framework: operations on objects of any kind, answered by the first layer that has a rule.
//!
//! A multi-cluster control plane distributes objects whose kinds it does not know. It asks an interpreter how many
//! replicas an object wants, and how to write another number. It also asks whether the object is healthy, and which
//! other objects must follow it. [`operation`] defines the questions, [`chain`] finds the layer that answers, and the
//! layers are:
//!
//! | layer | module | answers come from |
//! |---|---|---|
//! | configurable | `lua` (feature `lua`) | Lua scripts of `ResourceInterpreterCustomization`s |
//! | webhook | `webhook_client` (feature `webhook-client`) | HTTPS servers of `ResourceInterpreterWebhookConfiguration`s |
//! | third-party | `thirdparty` (feature `thirdparty`) | Lua scripts for widely used kinds, which come with the crate |
//! | native | [`native`] | rules for the built-in kinds of Kubernetes, and for two operations on every kind |
//!
//! The order is Karmada's (`pkg/resourceinterpreter/interpreter.go`). Two modules are for the other side: `function` makes a layer
//! of Rust functions, and `webhook` serves them to a Karmada control plane.
//!
//! ```
//! use kctl_interpreter::{chain::Chain, operation::{InterpretReplica, Object}};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 3 } });
//! let wanted = Chain::native().interpret::<InterpretReplica>(Object(deployment)).await?;
//! assert_eq!(wanted.replicas, 3);
//! # Ok::<_, kctl_interpreter::chain::ChainError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(feature = "function", feature = "lua", feature = "webhook-client"))]
#[cfg_attr(
    all(not(feature = "lua"), not(test)),
    expect(dead_code, reason = "scripts alone have field names in any case, and dependencies to sort")
)]
mod canonical;
pub mod chain;
pub mod dependency;
pub mod division;
#[cfg(feature = "function")]
pub mod function;
pub mod kind;
#[cfg(feature = "lua")]
pub mod lua;
pub mod native;
pub mod operation;
#[cfg(feature = "registry")]
pub mod registry;
#[cfg(feature = "thirdparty")]
pub mod thirdparty;
mod typed;
#[cfg(feature = "webhook")]
pub mod webhook;
#[cfg(feature = "webhook-client")]
pub mod webhook_client;

pub use kctl_apimachinery::quantity;
