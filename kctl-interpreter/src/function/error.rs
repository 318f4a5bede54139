//! The error of a call that did not reach its function, or whose answer is unusable.

use super::function_info::FunctionInfo;
use crate::{kind::Gvk, operation::Operation};

/// The error of a call that did not reach its function, or of a function that panicked or returned an invalid answer.
/// Errors that a function returns are passed on as they are.
///
/// ```
/// use kctl_interpreter::function::FunctionError;
///
/// // The message of an error has all of its fields; the variant says whose mistake it is.
/// fn is_mistake_of_caller(error: &FunctionError) -> bool {
///     matches!(error, FunctionError::InputMissing { .. } | FunctionError::InputUnreadable { .. })
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// No function answers the operation on the kind: write one.
    #[error("no function for {operation} of {kind:?}: write one with `#[interpreter(op = {operation})]`", kind = kind.to_string())]
    #[non_exhaustive]
    Missing {
        /// The operation of the call.
        operation: Operation,
        /// The kind of the object.
        kind: Gvk,
    },
    /// The call lacks an input that the operation needs.
    #[error("{operation} of {object}: {input} is missing")]
    #[non_exhaustive]
    InputMissing {
        /// The operation of the call.
        operation: Operation,
        /// Kind, namespace and name of the object.
        object: String,
        /// The missing input.
        input: &'static str,
    },
    /// An input does not have the type that the function takes.
    #[error("{operation} of {object}: {input} can't be read as `{wanted}`")]
    #[non_exhaustive]
    InputUnreadable {
        /// The operation of the call.
        operation: Operation,
        /// Kind, namespace and name of the object.
        object: String,
        /// The input, such as `the status item of cluster "member1"`.
        input: String,
        /// The type that the function takes, without its path.
        wanted: String,
        /// The field and the problem with it.
        source: serde_json::Error,
    },
    /// The function panicked. The panic is logged too.
    #[error("panic in {function}, {operation} of {object}: {text}")]
    #[non_exhaustive]
    Panicked {
        /// The function with its position.
        function: FunctionInfo,
        /// The operation of the call.
        operation: Operation,
        /// Kind, namespace and name of the object.
        object: String,
        /// The message of the panic.
        text: String,
    },
    /// The object that the function changed can't be serialized as JSON.
    #[error("{operation} of {object}: the changed object can't be written")]
    #[non_exhaustive]
    ObjectUnwritable {
        /// The operation of the call.
        operation: Operation,
        /// Kind, namespace and name of the object.
        object: String,
        /// The error of the serializer.
        source: serde_json::Error,
    },
    /// The function's answer has a field that Karmada can't decode, such as a request that is not a quantity.
    #[error("invalid answer of {function}, {operation} of {object}: {problem}")]
    #[non_exhaustive]
    AnswerInvalid {
        /// The function with its position.
        function: FunctionInfo,
        /// The operation of the call.
        operation: Operation,
        /// Kind, namespace and name of the object.
        object: String,
        /// The field's problem.
        problem: String,
    },
}
