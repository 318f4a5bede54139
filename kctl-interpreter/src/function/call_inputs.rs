//! The inputs of one call as JSON, read in the types that the function takes.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{error::FunctionError, function_info::FunctionInfo};
use crate::operation::{AggregatedStatusItem, Inputs};

/// The inputs of one call, with the function for messages.
#[derive(Clone, Copy)]
pub(super) struct CallInputs<'a> {
    pub(super) about: FunctionInfo,
    pub(super) inputs: &'a Inputs,
}

impl CallInputs<'_> {
    pub(super) fn object_json(&self) -> Result<&Value, FunctionError> {
        self.inputs.object().ok_or_else(|| self.missing_input("the object"))
    }

    pub(super) fn object<K: DeserializeOwned>(&self) -> Result<K, FunctionError> {
        self.read("the object", self.object_json()?)
    }

    /// Returns the number of replicas, which must fit into 32 bits.
    pub(super) fn replicas(&self) -> Result<i32, FunctionError> {
        let replicas = self.inputs.replicas.ok_or_else(|| self.missing_input("the number of replicas"))?;
        self.read("the number of replicas", &replicas.into())
    }

    /// Returns the statuses, each read as `I`; an empty list without any.
    pub(super) fn items<I: DeserializeOwned>(&self) -> Result<Vec<I>, FunctionError> {
        let read = |item: &AggregatedStatusItem| {
            let json = serde_json::to_value(item).map_err(|source| self.serialization_error(source))?;
            self.read(&format!("the status item of cluster {:?}", item.cluster_name), &json)
        };
        self.inputs.status_items.iter().flatten().map(read).collect()
    }

    pub(super) fn read<T: DeserializeOwned>(&self, input: &str, value: &Value) -> Result<T, FunctionError> {
        T::deserialize(value).map_err(|source| FunctionError::InputUnreadable {
            operation: self.about.operation,
            object: self.name(),
            input: input.to_owned(),
            wanted: without_paths(std::any::type_name::<T>()),
            source,
        })
    }

    pub(super) fn write(&self, object: &impl Serialize) -> Result<Value, FunctionError> {
        serde_json::to_value(object).map_err(|source| self.serialization_error(source))
    }

    /// Returns the error of an object that can't be serialized.
    fn serialization_error(&self, source: serde_json::Error) -> FunctionError {
        FunctionError::ObjectUnwritable { operation: self.about.operation, object: self.name(), source }
    }

    pub(super) fn missing_input(&self, input: &'static str) -> FunctionError {
        FunctionError::InputMissing { operation: self.about.operation, object: self.name(), input }
    }

    /// Returns kind, namespace and name of the object, for messages.
    fn name(&self) -> String {
        self.inputs.object_name()
    }
}

/// Returns the name of a type as its user writes it: `WorkloadStatus`, not
/// `workload::WorkloadStatus`.
fn without_paths(name: &str) -> String {
    name.split_inclusive(['<', '>', ',', ' ', '(', ')', '[', ']', '&'])
        .map(|part| part.rsplit("::").next().unwrap_or(part))
        .collect()
}
