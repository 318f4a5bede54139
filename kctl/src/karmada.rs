//! Resource interpreters: how a multi-cluster control plane reads and changes a kind that it does
//! not know.
//!
//! [Karmada](https://karmada.io) distributes objects of any kind to member clusters. To divide
//! replicas, collect status or decide about health it calls a *resource interpreter*.
//! [`#[interpreter(op = …)]`](macro@interpreter) turns a function into one. The same functions can
//! be used in two ways:
//!
//! * `App::interpreter` serves them to Karmada as a webhook.
//! * [`function::Functions`] makes them a layer of a [`chain::Chain`], in a control plane that you
//!   write.
//!
//! A chain asks its layers in Karmada's order: the customizations of the control plane, webhooks,
//! third-party scripts, and the built-in rules for native kinds. The first layer that has a rule
//! answers. The first two layers belong to the control plane: with `App::interpreter_chain` the
//! layer of your functions is `LayerKind::ThirdParty`.
//!
//! ```
//! use kctl::{
//!     karmada::{chain::{Chain, LayerKind}, function::Functions, operation, prelude::*},
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
//! let chain = Chain::native().with(LayerKind::ThirdParty, Functions::of::<replicas>()?);
//! let object = kctl::json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": {} });
//! let answer = chain.interpret::<operation::InterpretReplica>(operation::Object(object)).await?;
//! assert_eq!(answer.replicas, 1);
//! # Ok(())
//! # }
//! ```
//!
//! The crate [`kctl_interpreter`](https://docs.rs/kctl-interpreter) has more, for a control plane that is not built with an
//! [`App`](crate::App): the division of replicas, layers of your own, the engine of the scripts, the clients and the server
//! of webhooks, the rules of the built-in kinds, and the types of all errors. Each module lists its items, so that
//! additions to that crate do not become a part of this crate's API.

/// Turns a function into a resource interpreter, which answers one operation of Karmada for a kind.
///
/// `op` names the operation, which decides the signature:
///
/// | `op` | parameters | returns |
/// |---|---|---|
/// | `InterpretReplica` | `&Kind` | [`Replicas`](operation::Replicas) |
/// | `InterpretComponent` | `&Kind` | `Vec<Component>` |
/// | `ReviseReplica` | `&mut Kind, i32` | nothing |
/// | `Retain` | `&mut Kind, &Kind` (desired, observed) | nothing |
/// | `AggregateStatus` | `&mut Kind, &[ClusterStatus<Status>]` | nothing |
/// | `InterpretStatus` | `&Kind` | the status |
/// | `InterpretHealth` | `&Kind` | `bool` |
/// | `InterpretDependency` | `&Kind` | `Vec<DependentReference>` |
/// | `Prune`, in process only | `&mut Kind` | nothing |
///
/// Each may return a `Result` instead, and may be `async`.
/// [`App::interpreter`](crate::App::interpreter) serves the functions to Karmada, and
/// [`function::Functions`] makes them a layer of a chain in this process. Karmada calls no webhook
/// for `Prune`, so `App::interpreter` does not accept it.
///
/// ```
/// use kctl::{karmada::prelude::*, prelude::*};
///
/// /// Returns how many replicas a Deployment wants.
/// #[interpreter(op = InterpretReplica)]
/// fn replicas(deployment: &Deployment) -> Result<Replicas> {
///     Ok(Replicas { replicas: deployment.spec.replicas.unwrap_or(1), ..Replicas::default() })
/// }
///
/// /// Sets the share of one member cluster.
/// #[interpreter(op = ReviseReplica)]
/// fn revise(deployment: &mut Deployment, replicas: i32) -> Result<()> {
///     deployment.spec.replicas = Some(replicas);
///     Ok(())
/// }
///
/// let mut deployment = kctl::from_yaml("{spec: {replicas: 3, selector: {}, template: {}}}").unwrap();
/// assert_eq!(replicas(&deployment).unwrap().replicas, 3);
/// revise(&mut deployment, 1).unwrap();
/// assert_eq!(replicas(&deployment).unwrap().replicas, 1);
/// ```
#[doc(inline)]
pub use kctl_macros::interpreter;

/// The attribute `#[interpreter]` and the types in its functions. Import it in addition to `kctl::prelude`.
pub mod prelude {
    pub use kctl_interpreter::{
        function::ClusterStatus,
        operation::{AggregatedStatusItem, Component, DependentReference, ReplicaRequirements, Replicas},
    };
    pub use kctl_macros::interpreter;
}

/// The chain of layers. A layer of your own implements [`kctl_interpreter::chain::Layer`].
pub mod chain {
    #[doc(inline)]
    pub use kctl_interpreter::chain::{Chain, ChainError, LayerKind};
}

/// Functions as a layer. [`Functions`](function::Functions) takes functions with
/// [`#[interpreter]`](macro@interpreter) by their names.
///
/// Each function becomes a [`Rule`](function::Rule), which [`App::interpreters`](crate::App::interpreters) also returns. Compile
/// errors name the traits of objects and of the types that a function may return. They are in [`kctl_interpreter::function`].
pub mod function {
    #[doc(inline)]
    pub use kctl_interpreter::function::{ClusterStatus, Functions, Rule, StatusItem};
}

/// Group, version and kind: the key of rules in layers.
pub mod kind {
    #[doc(inline)]
    pub use kctl_interpreter::kind::Gvk;
}

/// The pool that runs [`thirdparty`] scripts, and its limits.
///
/// [`App::interpreter_chain`](crate::App::interpreter_chain) runs the scripts of `ResourceInterpreterCustomization`s in
/// another pool, with the default limits.
#[cfg(feature = "karmada-chain")]
pub mod lua {
    #[doc(inline)]
    pub use kctl_interpreter::lua::{Limits, Pool};
}

/// The operations as types, with their inputs and results.
pub mod operation {
    #[doc(inline)]
    pub use kctl_interpreter::operation::{
        AggregateStatus, AggregatedStatusItem, Aggregation, Component, DependentReference, Inputs, InterpretComponent,
        InterpretDependency, InterpretHealth, InterpretReplica, InterpretStatus, NodeClaim, Object, Op, Operation,
        Prune, ReplicaRequirements, Replicas, Retain, Retention, ReviseReplica, Revision,
    };
}

/// Quantities of resources, such as `100m` or `1Gi`.
pub mod quantity {
    #[doc(inline)]
    pub use kctl_interpreter::quantity::Quantity;
}

/// A chain whose layers come and go while it is used.
#[cfg(feature = "karmada-chain")]
pub mod registry {
    #[doc(inline)]
    pub use kctl_interpreter::registry::Registry;
}

/// Scripts for widely used kinds, as a layer.
#[cfg(feature = "karmada-chain")]
pub mod thirdparty {
    #[doc(inline)]
    pub use kctl_interpreter::thirdparty::bundled_customizations;
}

/// Names used by generated code. Not part of the API: it changes without notice.
#[doc(hidden)]
pub mod __private_0_1 {
    pub use std::{result::Result::Ok, vec::Vec};

    pub use kctl_runtime::__private_0_1::{CrdProbe, HasCrd, HasSchema, NoCrd};

    pub use kctl_interpreter::{
        function::{
            FunctionInfo, InProcess, Interpreter, IntoComponents, IntoDependencies, IntoHealth, IntoReplicas,
            IntoStatus, IntoUnit, OnTheWire, Rule,
        },
        operation::Operation,
    };
    pub use kctl_runtime::reconcile::HasStatus;

    use kctl_interpreter::chain::LayerError;
    use kctl_runtime::reconcile::Error;

    /// A kind that is `K` under another name: macros compare names, not types.
    #[diagnostic::on_unimplemented(
        message = "the object of Retain is a `{Self}`, and the observed one is a `{K}`",
        label = "not the kind of the first parameter",
        note = "help: write `observed: &…` with the kind of the first parameter",
        note = "code: K0056"
    )]
    pub trait SameKind<K> {
        /// Returns the observed object, as the kind of the first parameter.
        fn object(&self) -> &K;
    }

    #[diagnostic::do_not_recommend]
    impl<K> SameKind<K> for K {
        fn object(&self) -> &K {
            self
        }
    }

    /// Returns the observed object under the name that the function has for its kind.
    pub fn observed_object<K: SameKind<O>, O>(object: &K) -> &O {
        <K as SameKind<O>>::object(object)
    }

    /// An error that an interpreter can return: one that converts into kctl's error.
    #[diagnostic::on_unimplemented(
        message = "an interpreter can't return the error `{Self}`",
        label = "the error is not `Send + Sync + 'static`, or not an error",
        note = "help: write kctl's `Result<…>`, or `Box<dyn std::error::Error + Send + Sync>` as the error",
        note = "code: K0058"
    )]
    pub trait IntoLayerError {
        /// Returns the error of the layer: the message with its causes, because a webhook response carries text.
        fn into_layer_error(self) -> LayerError;
    }

    #[diagnostic::do_not_recommend]
    impl<E: Into<Error>> IntoLayerError for E {
        fn into_layer_error(self) -> LayerError {
            self.into().to_string().into()
        }
    }

    /// Returns an error of a function as the error of its layer.
    pub fn failed<E: IntoLayerError>(error: E) -> LayerError {
        error.into_layer_error()
    }
}
