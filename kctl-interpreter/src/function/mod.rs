//! The function layer: Rust functions on typed objects, which answer operations in process or
//! behind a webhook.
//!
//! Programs usually write a function with `#[interpreter(op = …)]` of the crate `kctl`, which
//! implements [`Interpreter`] for the function's name. This module is what that attribute expands
//! to, and can be used without it:
//!
//! - [`Rule`]: one function for one operation on one kind, with conversions of its input and
//!   output.
//! - [`Functions`]: a table of rules. It is a [`Layer`], so a [`Chain`](crate::chain::Chain) runs
//!   it in process.
//! - [`webhook`](crate::webhook): the server that lets a Karmada control plane call the functions.
//!
//! A function sees typed objects. Fields that its type does not have are kept: the change that the
//! function made is applied to the JSON of the object.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use kctl_interpreter::{
//!     chain::{Chain, LayerKind},
//!     function::{FunctionInfo, Functions, IntoHealth, Rule},
//!     operation::{InterpretHealth, Object, Operation},
//! };
//! use serde_json::json;
//!
//! let about = FunctionInfo::new(Operation::InterpretHealth, "is_ready", file!(), line!());
//! let rule = Rule::read(about, |deployment: Deployment| async move {
//!     let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or_default();
//!     (ready > 0).into_result()
//! });
//! let chain = Chain::native().with(LayerKind::Webhook, Functions::new(vec![rule])?);
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "status": { "readyReplicas": 1 } });
//! assert!(chain.interpret::<InterpretHealth>(Object(object)).await?);
//! # Ok::<_, kctl_interpreter::chain::ChainError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod call_inputs;
mod error;
mod function_info;
mod item;
mod return_types;
mod rule;

use std::collections::HashMap;

pub use self::{
    error::FunctionError,
    function_info::FunctionInfo,
    item::{ClusterStatus, StatusItem},
    return_types::{IntoComponents, IntoDependencies, IntoHealth, IntoReplicas, IntoStatus, IntoUnit},
    rule::{Interpreted, Rule},
};
// Expansions and `kctl` alone need it.
#[doc(hidden)]
pub use self::rule::MakeDefinition;
use crate::{
    chain::{Layer, LayerFuture},
    kind::Gvk,
    operation::{Inputs, Operation},
};

/// A set of interpreter functions, known at compile time: one function by the type of its name, or
/// a tuple of them.
///
/// `#[interpreter(op = …)]` implements it. Implement it by hand to pass rules of your own to code
/// that takes functions by type:
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kctl_interpreter::function::{FunctionInfo, Functions, Interpreter, IntoHealth, OnTheWire, Rule};
/// use kctl_interpreter::operation::Operation;
///
/// struct AlwaysHealthy;
///
/// impl Interpreter for AlwaysHealthy {
///     type Transport = OnTheWire;
///
///     fn rules() -> Vec<Rule> {
///         let about = FunctionInfo::new(Operation::InterpretHealth, "always_healthy", file!(), line!());
///         vec![Rule::read(about, |_: Deployment| async { true.into_result() })]
///     }
/// }
///
/// assert_eq!(Functions::of::<(AlwaysHealthy,)>()?.rules().len(), 1);
/// # Ok::<_, kctl_interpreter::function::DuplicateFunctionError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an interpreter",
    label = "not made by `#[interpreter]`",
    note = "help: write `#[interpreter(op = …)]` on the function, and name it here without parentheses",
    note = "code: K0059"
)]
pub trait Interpreter {
    /// [`OnTheWire`] if Karmada sends the operation to webhooks, [`InProcess`] if it does not. For a tuple, the tuple
    /// of its members' transports.
    type Transport;

    /// Returns the rules, one per function.
    fn rules() -> Vec<Rule>;
}

/// Marks functions for operations that Karmada sends to webhooks: all but `Prune`. It has no
/// values.
#[derive(Debug)]
pub enum OnTheWire {}
/// Marks functions for `Prune`, which Karmada sends to no webhook. It has no values.
#[derive(Debug)]
pub enum InProcess {}

/// Functions that a webhook can serve: those for all operations but `Prune`. The compiler checks it
/// through [`Interpreter::Transport`].
#[diagnostic::on_unimplemented(
    message = "Prune can't be served as a webhook: Karmada calls no webhook for it, and rejects a configuration that names it",
    label = "for use in process only",
    note = "help: leave it out here, and run it in process: `Functions::of::<name>()` as a layer of the chain",
    note = "code: K0060"
)]
pub trait Served {}

impl Served for OnTheWire {}

/// Implements [`Interpreter`] and [`Served`] for a tuple of functions.
macro_rules! tuples {
    ($($name:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: Interpreter),*> Interpreter for ($($name,)*) {
            type Transport = ($($name::Transport,)*);

            fn rules() -> Vec<Rule> {
                [$($name::rules()),*].into_iter().flatten().collect()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($name: Served),*> Served for ($($name,)*) {}
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);

/// The error of two functions for one operation on one kind. It would be undefined which of them
/// answers, so one must be removed.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_interpreter::{function::{FunctionInfo, Functions, IntoHealth, Rule}, operation::Operation};
///
/// let rule = |name| Rule::read(FunctionInfo::new(Operation::InterpretHealth, name, "lib.rs", 1), |_: Pod| async { true.into_result() });
/// let error = Functions::new(vec![rule("first"), rule("second")]).err();
/// let message = error.map(|error| error.to_string()).unwrap_or_default();
/// assert!(message.starts_with("InterpretHealth of \"/v1, Kind=Pod\" has two functions: `first` (lib.rs:1) and `second`"));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{operation} of {kind:?} has two functions: {first} and {second}; remove one of them\ncode: K0070")]
pub struct DuplicateFunctionError {
    operation: Operation,
    kind: String,
    first: String,
    second: String,
}

/// The functions of a program, as a layer of a [`Chain`](crate::chain::Chain). The default has no
/// functions.
///
/// A panic of a function is caught, and becomes the error of that call. See the [module](self) for
/// an example.
#[derive(Default)]
pub struct Functions {
    /// The rules in the order of their registration.
    rules: Vec<Rule>,
    /// The index in `rules` of the rule for an operation on a kind.
    table: HashMap<(Operation, Gvk), usize>,
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Functions").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Functions {
    /// Creates the table of one function, or of a tuple of functions.
    ///
    /// # Errors
    /// [`DuplicateFunctionError`] if two functions are for the same operation on the same kind.
    pub fn of<I: Interpreter>() -> Result<Self, DuplicateFunctionError> {
        Self::new(I::rules())
    }

    /// Creates the table from rules, which are collected at run time.
    ///
    /// # Errors
    /// [`DuplicateFunctionError`] if two rules are for the same operation on the same kind.
    pub fn new(rules: Vec<Rule>) -> Result<Self, DuplicateFunctionError> {
        let mut table = HashMap::with_capacity(rules.len());
        for (idx, rule) in rules.iter().enumerate() {
            let operation = rule.function_info().operation;
            if let Some(first) = table.insert((operation, rule.kind().clone()), idx) {
                let named_location = |about: FunctionInfo| format!("`{}` ({})", about.name, about.location());
                let (first, second) =
                    (named_location(rules[first].function_info()), named_location(rule.function_info()));
                return Err(DuplicateFunctionError { operation, kind: rule.kind().to_string(), first, second });
            }
        }
        Ok(Self { rules, table })
    }

    /// Returns the rules in the order of their registration.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the rule for an operation on a kind; `None` if there is no such function.
    pub fn rule(&self, operation: Operation, kind: &Gvk) -> Option<&Rule> {
        // Borrowed keys would need a second table. A kind is short, so it is cloned.
        self.table.get(&(operation, kind.clone())).map(|idx| &self.rules[*idx])
    }
}

impl Layer for Functions {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.rule(operation, kind).is_some()
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a> {
        let kind = inputs.kind();
        match self.rule(operation, &kind) {
            Some(rule) => rule.call(inputs),
            None => Box::pin(async move { Err(FunctionError::Missing { operation, kind }.into()) }),
        }
    }
}

// Fields of typed objects that are optional today are not in the types of the oldest versions.
#[cfg(all(test, not(any(feature = "v1_33", feature = "v1_34", feature = "v1_35", feature = "v1_36"))))]
mod tests;
