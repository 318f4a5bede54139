//! Return types of functions: one trait per form of result.
//!
//! Each operation has its own trait, so that the compiler names the operation when a function
//! returns a wrong type. Each method `into_result` returns the JSON form of [`Op::encode`].

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    chain::LayerError,
    operation::{
        Component, DependentReference, InterpretComponent, InterpretDependency, InterpretHealth, InterpretReplica,
        InterpretStatus, Op, Replicas,
    },
};

/// A return type of functions for `InterpretReplica`: [`Replicas`], or an `i32` without
/// requirements.
///
/// ```
/// use kctl_interpreter::function::IntoReplicas;
/// use serde_json::json;
///
/// assert_eq!(3_i32.into_result()?, json!({ "replica": 3, "requires": null }));
/// # Ok::<_, kctl_interpreter::chain::LayerError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretReplica",
    label = "not a number of replicas",
    note = "help: write `fn name(object: &Kind) -> Result<Replicas>`, or `-> Replicas`",
    note = "code: K0058"
)]
pub trait IntoReplicas {
    /// Converts the value to the result of the operation.
    ///
    /// # Errors
    /// The value can't be serialized as JSON.
    fn into_result(self) -> Result<Value, LayerError>;
}

impl IntoReplicas for Replicas {
    fn into_result(self) -> Result<Value, LayerError> {
        Ok(InterpretReplica::encode(&self)?)
    }
}

/// A number without requirements: a scheduler then requests no resources.
impl IntoReplicas for i32 {
    fn into_result(self) -> Result<Value, LayerError> {
        IntoReplicas::into_result(Replicas { replicas: self, requirements: None })
    }
}

/// A return type of functions for `InterpretComponent`: a list of [`Component`]s, or `None` for an
/// object without components.
///
/// ```
/// use kctl_interpreter::{function::IntoComponents, operation::Component};
/// use serde_json::json;
///
/// let workers = Component { name: "worker".into(), replicas: 2, ..Component::default() };
/// assert_eq!(vec![workers].into_result()?, json!({ "components": [{ "name": "worker", "replicas": 2 }] }));
/// # Ok::<_, kctl_interpreter::chain::LayerError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretComponent",
    label = "not a list of components",
    note = "help: write `fn name(object: &Kind) -> Result<Vec<Component>>`, or `-> Vec<Component>`",
    note = "code: K0058"
)]
pub trait IntoComponents {
    /// Converts the value to the result of the operation.
    ///
    /// # Errors
    /// The value can't be serialized as JSON.
    fn into_result(self) -> Result<Value, LayerError>;
}

impl IntoComponents for Vec<Component> {
    fn into_result(self) -> Result<Value, LayerError> {
        Ok(InterpretComponent::encode(&Some(self))?)
    }
}

impl IntoComponents for Option<Vec<Component>> {
    fn into_result(self) -> Result<Value, LayerError> {
        Ok(InterpretComponent::encode(&self)?)
    }
}

/// A return type of functions for `InterpretDependency`: a list of [`DependentReference`]s. `None`
/// is an empty list.
///
/// ```
/// use kctl_interpreter::{function::IntoDependencies, operation::DependentReference};
///
/// let secret = DependentReference { api_version: "v1".into(), kind: "Secret".into(), name: "key".into(), ..Default::default() };
/// assert_eq!(vec![secret].into_result()?["dependencies"][0]["name"], "key");
/// assert!(vec![DependentReference::default()].into_result().is_err(), "a reference needs a kind");
/// # Ok::<_, kctl_interpreter::chain::LayerError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretDependency",
    label = "not a list of references",
    note = "help: write `fn name(object: &Kind) -> Result<Vec<DependentReference>>`, or `-> Vec<DependentReference>`",
    note = "code: K0058"
)]
pub trait IntoDependencies {
    /// Verifies the references and converts them to the result of the operation.
    ///
    /// # Errors
    /// A reference is incomplete (see [`dependency::verify`](crate::dependency::verify)), or the
    /// list can't be serialized as JSON.
    fn into_result(self) -> Result<Value, LayerError>;
}

impl IntoDependencies for Vec<DependentReference> {
    fn into_result(self) -> Result<Value, LayerError> {
        let dependencies = crate::dependency::verify_and_canonicalize(self)?;
        Ok(InterpretDependency::encode(&Some(dependencies))?)
    }
}

impl IntoDependencies for Option<Vec<DependentReference>> {
    fn into_result(self) -> Result<Value, LayerError> {
        IntoDependencies::into_result(self.unwrap_or_default())
    }
}

/// A return type of functions for `InterpretHealth`: a `bool`, `true` for a healthy object.
///
/// ```
/// use kctl_interpreter::function::IntoHealth;
/// use serde_json::json;
///
/// assert_eq!(true.into_result()?, json!({ "healthy": true }));
/// # Ok::<_, kctl_interpreter::chain::LayerError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretHealth",
    label = "not a health state",
    note = "help: write `fn name(object: &Kind) -> Result<bool>`, or `-> bool`",
    note = "code: K0058"
)]
pub trait IntoHealth {
    /// Converts the value to the result of the operation.
    ///
    /// # Errors
    /// Never: a `bool` always has a JSON form.
    fn into_result(self) -> Result<Value, LayerError>;
}

impl IntoHealth for bool {
    fn into_result(self) -> Result<Value, LayerError> {
        Ok(InterpretHealth::encode(&self)?)
    }
}

/// A return type of functions for `InterpretStatus`: any type that can be serialized.
///
/// A value that serializes to null, such as `None`, becomes an empty object: Karmada rejects null
/// from a webhook, and an object without a status is not an error.
///
/// ```
/// use kctl_interpreter::function::IntoStatus;
/// use serde_json::{Value, json};
///
/// assert_eq!(json!({ "ready": 2 }).into_result()?, json!({ "status": { "ready": 2 } }));
/// assert_eq!(Value::Null.into_result()?, json!({ "status": {} }));
/// # Ok::<_, kctl_interpreter::chain::LayerError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of InterpretStatus",
    label = "does not implement `Serialize`",
    note = "help: write `fn name(object: &Kind) -> Result<KindStatus>` with a type that has `#[schema]`, or `-> KindStatus`",
    note = "code: K0058"
)]
pub trait IntoStatus {
    /// Converts the value to the result of the operation.
    ///
    /// # Errors
    /// The value can't be serialized as JSON.
    fn into_result(self) -> Result<Value, LayerError>;
}

#[diagnostic::do_not_recommend]
impl<S: Serialize> IntoStatus for S {
    fn into_result(self) -> Result<Value, LayerError> {
        let mut status = serde_json::to_value(self)?;
        if status.is_null() {
            // Karmada rejects null from a webhook, but an object without a status is valid: return an empty one.
            status = Value::Object(Map::new());
        }
        Ok(InterpretStatus::encode(&status)?)
    }
}

/// The return type of functions that change their object: `()`, because the object itself is the
/// result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a return type of a function that changes its object",
    label = "the object itself is the result",
    note = "help: write `fn name(object: &mut Kind, …) -> Result<()>`, or no return type",
    note = "code: K0058"
)]
pub trait IntoUnit {
    /// Returns success. It exists so that generated code can treat every return type alike.
    ///
    /// # Errors
    /// Never.
    fn into_result(self) -> Result<(), LayerError>;
}

impl IntoUnit for () {
    fn into_result(self) -> Result<(), LayerError> {
        Ok(())
    }
}
