//! `PartialObjectMetadata`: objects and lists for clients that read only metadata.
//!
//! Metadata informers, such as the garbage collector's, request them by `as=PartialObjectMetadata`.

use serde_json::{Value, json};

use super::fields;

/// Returns the metadata of the object as a `PartialObjectMetadata` of `meta.k8s.io/v1`.
pub(crate) fn partial(object: &Value) -> Value {
    fields::object([
        ("kind", json!("PartialObjectMetadata")),
        ("apiVersion", json!("meta.k8s.io/v1")),
        ("metadata", object.get("metadata").cloned().unwrap_or_else(|| json!({}))),
    ])
}

/// Returns the metadata of the objects as a `PartialObjectMetadataList` of `meta.k8s.io/v1`. Without objects, `items`
/// is `null`, as kube-apiserver writes it.
pub(crate) fn partial_list(objects: &[Value], list_meta: Value) -> Value {
    let items: Option<Vec<Value>> = (!objects.is_empty()).then(|| objects.iter().map(partial).collect());
    fields::object([
        ("kind", json!("PartialObjectMetadataList")),
        ("apiVersion", json!("meta.k8s.io/v1")),
        ("metadata", list_meta),
        ("items", json!(items)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_metadata_remains_of_an_object() {
        let metadata = json!({"name": "a", "labels": {"x": "y"}});
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {}});
        let (kind, list_kind) = ("PartialObjectMetadata", "PartialObjectMetadataList");
        let expected = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
        assert_eq!(partial(&object), expected);
        let list_meta = json!({"resourceVersion": "7"});
        assert_eq!(
            partial_list(&[object], list_meta.clone()),
            json!({"kind": list_kind, "apiVersion": "meta.k8s.io/v1", "metadata": list_meta, "items": [expected]})
        );
        assert_eq!(
            partial_list(&[], list_meta.clone()),
            json!({"kind": list_kind, "apiVersion": "meta.k8s.io/v1", "metadata": list_meta, "items": null})
        );
    }
}
