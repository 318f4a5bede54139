//! Functions on typed objects as a layer: the traits that `#[interpreter(op = …)]` implements, and the table of functions.

mod answer;
mod item;
mod rule;

use std::collections::HashMap;

pub use self::{
    answer::{IsComponents, IsDependencies, IsHealth, IsReplicas, IsStatus, IsUnit},
    item::{ClusterStatus, StatusItem},
    rule::{About, FunctionError, Interpreted, MakeDefinition, Rule},
};
use crate::{
    chain::{Layer, LayerFuture},
    kind::Gvk,
    operation::{Inputs, Operation},
};

/// One function with `#[interpreter(op = …)]`, by the type of its name, or a tuple of such.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an interpreter",
    label = "not made by `#[interpreter]`",
    note = "help: write `#[interpreter(op = …)]` on the function, and name it here without parentheses",
    note = "code: K0059"
)]
pub trait Interpreter {
    /// [`OnTheWire`] if Karmada requests the operation from webhooks, [`InProcess`] if it does not.
    type Asked;

    /// Returns one rule per function.
    fn rules() -> Vec<Rule>;
}

/// Marks functions for operations that Karmada requests from webhooks.
#[derive(Debug)]
pub enum OnTheWire {}
/// Marks functions for `Prune`, which Karmada requests from no webhook.
#[derive(Debug)]
pub enum InProcess {}

/// Functions that a webhook can serve: those for all operations but `Prune`.
#[diagnostic::on_unimplemented(
    message = "Prune can't be served as a webhook: Karmada calls no webhook for it, and rejects a configuration that names it",
    label = "for use in process only",
    note = "help: leave it out here, and run it in process: `Functions::of::<name>()` as a layer of the chain",
    note = "code: K0060"
)]
pub trait Served {}

impl Served for OnTheWire {}

macro_rules! tuples {
    ($($name:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($name: Interpreter),*> Interpreter for ($($name,)*) {
            type Asked = ($($name::Asked,)*);

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

/// The error of two functions for one operation on one kind: it would be open which of them answers.
#[derive(Debug, thiserror::Error)]
#[error("{operation} of {kind:?} has two functions: {first} and {second}; remove one of them\ncode: K0070")]
pub struct FunctionTwice {
    operation: Operation,
    kind: String,
    first: String,
    second: String,
}

/// The functions of a program, as a layer of a [`Chain`](crate::chain::Chain).
#[derive(Default)]
pub struct Functions {
    rules: Vec<Rule>,
    /// Where in `rules` the rule of an operation on a kind is.
    table: HashMap<(Operation, Gvk), usize>,
}

impl Functions {
    /// Creates the table of one function, or of a tuple of functions.
    ///
    /// # Errors
    /// Two functions are for the same operation on the same kind: remove one.
    pub fn of<I: Interpreter>() -> Result<Self, FunctionTwice> {
        Self::new(I::rules())
    }

    /// Creates the table of rules.
    ///
    /// # Errors
    /// As [`Functions::of`].
    pub fn new(rules: Vec<Rule>) -> Result<Self, FunctionTwice> {
        let mut table = HashMap::with_capacity(rules.len());
        for (idx, rule) in rules.iter().enumerate() {
            let operation = rule.about().operation;
            if let Some(first) = table.insert((operation, rule.kind().clone()), idx) {
                let place = |about: About| format!("`{}` ({})", about.name, about.location());
                let (first, second) = (place(rules[first].about()), place(rule.about()));
                return Err(FunctionTwice { operation, kind: rule.kind().to_string(), first, second });
            }
        }
        Ok(Self { rules, table })
    }

    /// Returns the functions in the order of their registration.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the function for an operation on a kind; `None` if there is no such function.
    pub fn rule(&self, operation: Operation, kind: &Gvk) -> Option<&Rule> {
        // A key of borrowed parts would need a second table: kinds are short.
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

#[cfg(test)]
mod tests;
