//! Resource interpreters: how a multi-cluster control plane reads and changes a kind that it does not know.
//!
//! ```
//! use kctl::{
//!     interpreter::{chain::{Chain, Place}, function::Functions, operation},
//!     prelude::*,
//! };
//!
//! /// A Deployment without a number of replicas has one.
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
//!
//! With the feature `webhook`, `App::interpreter::<replicas>()` serves them to Karmada instead.

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

    /// The error of a function as the error of its layer: in words, since that is what travels.
    pub fn failed(error: impl Into<kctl_runtime::reconcile::Error>) -> kctl_interpreter::chain::LayerError {
        error.into().to_string().into()
    }
}
