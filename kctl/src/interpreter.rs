//! Resource interpreters: how a multi-cluster control plane reads and changes a kind that it does
//! not know.
//!
//! [Karmada](https://karmada.io) distributes objects of any kind to member clusters. To divide
//! replicas, collect status or decide about health it asks a *resource interpreter*.
//! [`#[interpreter(op = …)]`](macro@crate::interpreter) makes one of a function. The same functions
//! can be used in two ways:
//!
//! * `App::interpreter` serves them to Karmada as a webhook (feature `webhook`).
//! * [`function::Functions`] makes them a layer of a [`chain::Chain`], in a control plane that you
//!   write.
//!
//! A chain asks its layers in Karmada's order: the customizations of the control plane, webhooks,
//! third-party scripts, and the built-in rules for native kinds. The first layer that has a rule
//! answers.
//!
//! ```
//! use kctl::{
//!     interpreter::{chain::{Chain, Place}, function::Functions, operation},
//!     prelude::*,
//! };
//!
//! /// Returns one replica for a Deployment that names no number.
//! #[interpreter(op = InterpretReplica)]
//! fn replicas(deployment: &Deployment) -> Result<Replicas> {
//!     Ok(Replicas { replicas: deployment.spec.replicas.unwrap_or(1), requirements: None })
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> kctl::Result<()> {
//! // In process, before the built-in rules:
//! let chain = Chain::native().with(Place::Configurable, Functions::of::<replicas>()?);
//! let object = kctl::json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": {} });
//! let answer = chain.interpret::<operation::InterpretReplica>(operation::Object(object)).await?;
//! assert_eq!(answer.replicas, 1);
//! # Ok(())
//! # }
//! ```

pub use kctl_interpreter::*;

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::{result::Result::Ok, vec::Vec};

    pub use kctl_runtime::__private::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_interpreter::{
        function::{
            About, InProcess, Interpreter, IsComponents, IsDependencies, IsHealth, IsReplicas, IsStatus, IsUnit,
            OnTheWire, Rule,
        },
        operation::Operation,
    };
    pub use kctl_runtime::reconcile::HasStatus;

    /// Returns an error of a function as the error of its layer: its message, because a webhook
    /// response carries text.
    pub fn failed(error: impl Into<kctl_runtime::reconcile::Error>) -> kctl_interpreter::chain::LayerError {
        error.into().to_string().into()
    }
}
