//! Why a built-in interpreter has no answer.

use crate::{dependency::DependenciesInvalid, operation::Operation, typed::DecodeError};

/// Why a built-in interpreter has no answer. The texts are those of Karmada, or lead with them, so that its users find
/// what they know.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// No built-in interpreter knows the kind: install a customization or a webhook for it.
    #[error("default {operation} interpreter for \"{kind}\" not found")]
    InterpreterNotFound {
        /// What was asked.
        operation: Operation,
        /// The group, version and kind that nobody knows.
        kind: String,
    },
    /// No built-in interpreter knows the dependencies of the kind.
    #[error("default interpreter for operation InterpretDependency not found: {kind} needs a customization")]
    DependencyInterpreterNotFound {
        /// The group, version and kind that nobody knows.
        kind: String,
    },
    /// The operation was called without an input that it needs.
    #[error("{operation} needs the input {input}")]
    InputMissing {
        /// What was asked.
        operation: Operation,
        /// What was not given.
        input: &'static str,
    },
    /// The object does not have the type of its kind: correct the field.
    #[error("failed to convert {what} from unstructured object: {problem}")]
    ObjectInvalid {
        /// The type that was expected.
        what: &'static str,
        /// The field and what is wrong with it.
        problem: String,
    },
    /// A cluster reported a status that does not have the type of its kind.
    #[error("status of cluster {cluster}: {problem}")]
    MemberStatusInvalid {
        /// The cluster's name.
        cluster: String,
        /// The field and what is wrong with it.
        problem: String,
    },
    /// A field that the operation reads is of another type than Kubernetes gives it.
    #[error("{path} accessor error: {value} is of the type {found}, expected {expected}")]
    FieldOfOtherType {
        /// The path, such as `.spec.replicas`.
        path: String,
        /// What is there.
        value: String,
        /// Its type.
        found: &'static str,
        /// What the operation reads.
        expected: &'static str,
    },
    /// A field cannot be set inside something that is no map.
    #[error("value cannot be set because {path} is not a map: make it one or remove it")]
    ParentNotMap {
        /// The path of the parent.
        path: String,
    },
    /// A field that the operation cannot do without is absent.
    #[error("failed to get {field} from {object}")]
    FieldMissing {
        /// The path.
        field: &'static str,
        /// Kind, namespace and name.
        object: String,
    },
    /// An annotation is not the number that it should be.
    #[error(
        "strconv.ParseInt: parsing {text:?}: invalid syntax: {object} needs the annotation {annotation} with a number"
    )]
    AnnotationNotNumber {
        /// What the annotation says; empty where it is absent.
        text: String,
        /// Its name.
        annotation: &'static str,
        /// Kind, namespace and name.
        object: String,
    },
    /// A dependency points to nothing, or has a selector that cannot select.
    #[error(transparent)]
    DependenciesInvalid(#[from] DependenciesInvalid),
    /// An answer has no form in JSON.
    #[error("the answer cannot be written as JSON")]
    AnswerUnwritable(#[from] serde_json::Error),
}

impl NativeError {
    pub(super) fn object(what: &'static str) -> impl Fn(DecodeError) -> Self {
        move |error| Self::ObjectInvalid { what, problem: error.to_string() }
    }
}
