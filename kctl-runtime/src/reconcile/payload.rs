//! The bodies of requests as JSON. A value that cannot be serialized is an error: sent as `null` it would delete fields.

use serde::Serialize;
use serde_json::{Value, json};

use crate::writer::{ApiError, Operation};

/// The JSON of a value, or the reason why it cannot be serialized.
pub(super) struct Payload(Result<Value, String>);

impl Payload {
    pub(super) fn serialize(value: impl Serialize) -> Self {
        Self(serde_json::to_value(value).map_err(|error| format!("the value is not serializable as JSON: {error}")))
    }

    /// Returns the JSON, or an error of this operation.
    pub(super) fn value(self, operation: &Operation) -> Result<Value, ApiError> {
        self.0.map_err(|cause| ApiError::Unsendable { operation: operation.into(), cause })
    }

    /// Returns a merge patch with a precondition on `metadata.uid`, so that it never applies to a later object of the
    /// same name.
    pub(super) fn patch(self, operation: &Operation, uid: &str) -> Result<Value, ApiError> {
        let mut patch = self.value(operation)?;
        let metadata = patch.as_object_mut().map(|fields| fields.entry("metadata").or_insert_with(|| json!({})));
        let Some(metadata) = metadata.and_then(Value::as_object_mut) else {
            return Err(ApiError::Unsendable {
                operation: operation.into(),
                cause: "a merge patch is an object, and so is its metadata: write it as `json!({ … })`".into(),
            });
        };
        metadata.insert("uid".into(), uid.into());
        Ok(patch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn value_without_json_names_the_operation() {
        let keys_are_no_strings = BTreeMap::from([((1, 2), 3)]);
        let error = Payload::serialize(&keys_are_no_strings).value(&"patch PodSet default/a".into()).unwrap_err();
        assert!(error.is_terminal() && !error.is_unknown_outcome(), "{error:?}");
        let text = error.to_string();
        assert!(
            text.starts_with("patch PodSet default/a: not sent: the value is not serializable as JSON: "),
            "{text}"
        );
    }

    #[test]
    fn patch_names_its_object_and_is_one() {
        let patch = |given: Value| Payload::serialize(given).patch(&"patch".into(), "u");
        assert_eq!(patch(json!({ "a": 1 })).unwrap(), json!({ "a": 1, "metadata": { "uid": "u" } }));
        let labels = json!({ "metadata": { "labels": { "a": "b" } } });
        assert_eq!(patch(labels).unwrap()["metadata"], json!({ "labels": { "a": "b" }, "uid": "u" }));
        for given in [json!("{}"), json!([]), json!(null), json!({ "metadata": "a" }), json!({ "metadata": null })] {
            let error = patch(given).unwrap_err().to_string();
            assert!(error.contains("a merge patch is an object"), "{error}");
        }
    }
}
