//! What a function may answer with: one trait for each form, so that a wrong type is told in the words of its operation.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    chain::LayerError,
    operation::{
        Component, DependentReference, InterpretComponent, InterpretDependency, InterpretHealth, InterpretReplica,
        InterpretStatus, Op, Replicas,
    },
};

type Answer = Result<Value, LayerError>;

/// The answer of `InterpretReplica`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretReplica",
    label = "not a number of replicas",
    note = "help: write `fn name(object: &Kind) -> Result<Replicas>`, or `-> Replicas`",
    note = "code: K0058"
)]
pub trait IsReplicas {
    /// Puts it in the form of an answer.
    ///
    /// # Errors
    /// It has no form in JSON.
    fn answer(self) -> Answer;
}

impl IsReplicas for Replicas {
    fn answer(self) -> Answer {
        Ok(InterpretReplica::answer(&self)?)
    }
}

/// Without what a replica needs: a scheduler then asks for no resources.
impl IsReplicas for i32 {
    fn answer(self) -> Answer {
        IsReplicas::answer(Replicas { replicas: self, requirements: None })
    }
}

/// The answer of `InterpretComponent`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretComponent",
    label = "not a list of components",
    note = "help: write `fn name(object: &Kind) -> Result<Vec<Component>>`, or `-> Vec<Component>`",
    note = "code: K0058"
)]
pub trait IsComponents {
    /// Puts it in the form of an answer.
    ///
    /// # Errors
    /// It has no form in JSON.
    fn answer(self) -> Answer;
}

impl IsComponents for Vec<Component> {
    fn answer(self) -> Answer {
        Ok(InterpretComponent::answer(&Some(self))?)
    }
}

impl IsComponents for Option<Vec<Component>> {
    fn answer(self) -> Answer {
        Ok(InterpretComponent::answer(&self)?)
    }
}

/// The answer of `InterpretDependency`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretDependency",
    label = "not a list of references",
    note = "help: write `fn name(object: &Kind) -> Result<Vec<DependentReference>>`, or `-> Vec<DependentReference>`",
    note = "code: K0058"
)]
pub trait IsDependencies {
    /// Puts it in the form of an answer.
    ///
    /// # Errors
    /// It has no form in JSON, or a reference refers to nothing.
    fn answer(self) -> Answer;
}

impl IsDependencies for Vec<DependentReference> {
    fn answer(self) -> Answer {
        crate::dependency::verify(&self)?;
        Ok(InterpretDependency::answer(&Some(self))?)
    }
}

impl IsDependencies for Option<Vec<DependentReference>> {
    fn answer(self) -> Answer {
        IsDependencies::answer(self.unwrap_or_default())
    }
}

/// The answer of `InterpretHealth`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretHealth",
    label = "not a health state",
    note = "help: write `fn name(object: &Kind) -> Result<bool>`, or `-> bool`",
    note = "code: K0058"
)]
pub trait IsHealth {
    /// Puts it in the form of an answer.
    ///
    /// # Errors
    /// None: a `bool` always has a form.
    fn answer(self) -> Answer;
}

impl IsHealth for bool {
    fn answer(self) -> Answer {
        Ok(InterpretHealth::answer(&self)?)
    }
}

/// The answer of `InterpretStatus`: anything that serialises.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretStatus",
    label = "does not implement `Serialize`",
    note = "help: write `fn name(object: &Kind) -> Result<KindStatus>` with a type that has `#[schema]`, or `-> KindStatus`",
    note = "code: K0058"
)]
pub trait IsStatus {
    /// Puts it in the form of an answer.
    ///
    /// # Errors
    /// It has no form in JSON.
    fn answer(self) -> Answer;
}

#[diagnostic::do_not_recommend]
impl<S: Serialize> IsStatus for S {
    fn answer(self) -> Answer {
        let mut status = serde_json::to_value(self)?;
        if status.is_null() {
            // Karmada refuses null from a webhook; an object that has no status yet is no failure.
            status = Value::Object(Map::new());
        }
        Ok(InterpretStatus::answer(&status)?)
    }
}

/// The answer of what changes its object.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of a function that changes its object",
    label = "the object itself is the answer",
    note = "help: write `fn name(object: &mut Kind, …) -> Result<()>`, or no return type",
    note = "code: K0058"
)]
pub trait IsUnit {
    /// Says that all is done.
    ///
    /// # Errors
    /// None: there is nothing to put in a form.
    fn answer(self) -> Result<(), LayerError>;
}

impl IsUnit for () {
    fn answer(self) -> Result<(), LayerError> {
        Ok(())
    }
}
