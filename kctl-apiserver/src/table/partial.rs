//! `PartialObjectMetadata`: what remains of an object, or of a list, for a client that reads metadata only.

use serde_json::{Value, json};

/// Returns the metadata of the object as a `PartialObjectMetadata` of `meta.k8s.io/v1`.
pub fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Returns the metadata of the objects as a `PartialObjectMetadataList` of `meta.k8s.io/v1`. `list_meta` is the
/// metadata of the list: its resource version and how it continues.
pub fn partial_list(objects: &[Value], list_meta: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "items": objects.iter().map(partial).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_remains_of_an_object() {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"x": "y"}}, "data": {}});
        let expected = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a", "labels": {"x": "y"}}});
        assert_eq!(partial(&object), expected);
        assert_eq!(
            partial_list(&[object], json!({"resourceVersion": "7"})),
            json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}, "items": [expected]})
        );
    }
}
