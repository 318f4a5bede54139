//! The errors of the native layer, in Karmada's words.

use crate::{dependency::InvalidDependencyError, operation::Operation, typed::DecodeError};

/// The error of a native rule.
///
/// The messages equal Karmada's, or begin with them, so that a search finds what is written about them. No error is
/// worth a retry with the same inputs: the object, the reported status or the installation must change.
///
/// ```
/// use kctl_interpreter::{native, operation::{Object, Operation}};
/// use serde_json::json;
///
/// let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget" });
/// let error = native::interpret(Operation::InterpretHealth, &Object(widget).into()).unwrap_err();
/// assert_eq!(error.to_string(), "default InterpretHealth interpreter for \"example.com/v1, Kind=Widget\" not found");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// The kind has no native rule for the operation: install a customization or a webhook for it.
    #[error("default {operation} interpreter for \"{kind}\" not found")]
    #[non_exhaustive]
    InterpreterNotFound {
        /// The operation of the call.
        operation: Operation,
        /// Group, version and kind of the object, as Kubernetes prints them.
        kind: String,
    },
    /// The kind has no native rule for `InterpretDependency`. Karmada has another message for this
    /// operation.
    #[error("default interpreter for operation InterpretDependency not found: {kind} needs a customization")]
    #[non_exhaustive]
    DependencyInterpreterNotFound {
        /// Group, version and kind of the object, as Kubernetes prints them.
        kind: String,
    },
    /// The call lacks an input that the operation needs.
    #[error("{operation} needs the input {input}")]
    #[non_exhaustive]
    InputMissing {
        /// The operation of the call.
        operation: Operation,
        /// The missing input: `object`, `observed` or `replicas`.
        input: &'static str,
    },
    /// The object does not have the Go type of its kind: correct the field.
    #[error("failed to convert {what} from unstructured object: {problem}")]
    #[non_exhaustive]
    ObjectInvalid {
        /// The expected type, such as `Deployment` or `JobStatus`.
        what: &'static str,
        /// The path of the field and the problem with it.
        problem: String,
    },
    /// A member cluster reported a status that does not have the type of its kind, for
    /// `AggregateStatus`.
    #[error("status of cluster {cluster}: {problem}")]
    #[non_exhaustive]
    MemberStatusInvalid {
        /// The name of the member cluster.
        cluster: String,
        /// The path of the field and the problem with it.
        problem: String,
    },
    /// A field that the rule reads has another JSON type than Kubernetes gives it.
    ///
    /// The message comes from `NestedFieldNoCopy` in `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`.
    #[error("{path} accessor error: {value} is of the type {found}, expected {expected}")]
    #[non_exhaustive]
    FieldOfOtherType {
        /// The path, such as `.spec.replicas`.
        path: String,
        /// The value of the field, as JSON.
        value: String,
        /// The Go type of the value, such as `float64`.
        found: &'static str,
        /// The Go type that the rule reads, such as `int64`.
        expected: &'static str,
    },
    /// A field can't be set because one of its parents is not an object.
    #[error("value cannot be set because {path} is not a map: make it one or remove it")]
    #[non_exhaustive]
    ParentNotMap {
        /// The path of that parent, such as `.spec`.
        path: String,
    },
    /// A field that the rule needs is absent.
    #[error("failed to get {field} from {object}")]
    #[non_exhaustive]
    FieldMissing {
        /// The path of the field, such as `spec.replicas`.
        field: &'static str,
        /// The object without the field: kind, namespace and name.
        object: String,
    },
    /// An annotation does not hold a number. `InterpretStatus` of workloads needs it to report
    /// which template generation a cluster has.
    #[error(
        "strconv.ParseInt: parsing {text:?}: invalid syntax: {object} needs the annotation {annotation} with a number"
    )]
    #[non_exhaustive]
    AnnotationNotNumber {
        /// The value of the annotation; empty if the annotation is absent.
        text: String,
        /// The name of the annotation.
        annotation: &'static str,
        /// The object with the annotation: kind, namespace and name.
        object: String,
    },
    /// A dependency lacks a field, or its selector is invalid.
    #[error(transparent)]
    InvalidDependency(#[from] InvalidDependencyError),
    /// The result can't be serialized as JSON.
    #[error("the result cannot be written as JSON")]
    ResultNotSerializable(#[from] serde_json::Error),
}

impl NativeError {
    /// Returns a converter for decoding errors of an object, for `map_err`. `what` is the expected
    /// type.
    pub(super) fn object(what: &'static str) -> impl Fn(DecodeError) -> Self {
        move |error| Self::ObjectInvalid { what, problem: error.to_string() }
    }
}
