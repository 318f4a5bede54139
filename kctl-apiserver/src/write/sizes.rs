//! Rejects objects that are too large for etcd, or too deep to be read again.
//!
//! Clients meet the limit of etcd with large `ConfigMap`s. A real etcd rejects the transaction, and kube-apiserver
//! returns its message with 500.

use serde_json::Value;

use crate::{
    decode::DEPTH_MAX,
    json_path::depth,
    request::RequestInfo,
    status::StatusError,
    store::{Key, Store},
};

/// The largest request that etcd accepts: the default of its `--max-request-bytes`. 1.5 MiB.
const REQUEST_BYTES_MAX: usize = 1536 * 1024;
/// The bytes of an etcd request in addition to the object and two copies of its key.
const REQUEST_BYTES_REST: usize = 43;

/// Checks the size of an object as it would be stored: protobuf for built-in kinds, which is shorter than JSON, and
/// JSON for custom ones. Objects of a dry run never reach etcd.
///
/// # Errors
/// Fails with 500, as a request that etcd rejects.
pub(super) fn check(store: &Store, info: &RequestInfo, key: &Key, object: &Value) -> Result<(), StatusError> {
    let resource = &info.resource.id;
    // A cheap upper bound first: most objects are far from the limit and need not be encoded.
    let n_stored = store.get_stored(resource, key).map_or(0, |stored| stored.text().len());
    let is_small = n_stored + 2 * info.body.len() < REQUEST_BYTES_MAX / 2;
    // Defaults may make a custom object larger than the body.
    let has_large_defaults = || info.resource.custom.is_some() && values_len(object) > REQUEST_BYTES_MAX / 4;
    if info.dry_run() || (is_small && !has_large_defaults()) {
        return Ok(());
    }
    let object_len = if info.resource.custom.is_some() { object.to_string().len() + 1 } else { values_len(object) };
    let key_len = ["/registry", &resource.group, &resource.resource, &key.0, &key.1]
        .map(|part| part.len() + 1)
        .iter()
        .sum::<usize>();
    if object_len + 2 * (key_len - 1) + REQUEST_BYTES_REST <= REQUEST_BYTES_MAX {
        return Ok(());
    }
    Err(StatusError::server_error("etcdserver: request is too large"))
}

/// Checks that the JSON of an object can be parsed again. `managedFields` repeat the maps of the object a few levels
/// deeper, so an object that was decoded may be too deep once its owners are set. Stored, it would read as null, and the
/// server could not start from its journal.
///
/// # Errors
/// Fails with 400, as a body that is too deep.
pub(super) fn check_depth(object: &Value) -> Result<(), StatusError> {
    if depth(object) <= DEPTH_MAX {
        return Ok(());
    }
    let why = format!("the object and its managedFields must not be nested more than {DEPTH_MAX} deep");
    Err(StatusError::bad_request(why))
}

/// Returns the bytes of all strings in a value, which approximates its protobuf encoding.
fn values_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(values_len).sum(),
        Value::Object(fields) => fields.values().map(values_len).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ApiServer;

    /// Returns a CRD whose schema gives each item of a list a default of 100 kB.
    fn crd_with_large_defaults() -> Value {
        let item =
            json!({ "type": "object", "properties": { "text": { "type": "string", "default": "x".repeat(100_000) } } });
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "bars.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "bars", "kind": "Bar" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "list": { "type": "array", "items": item } } } } }] } })
    }

    #[tokio::test(start_paused = true)]
    async fn object_above_etcd_size_limit_is_rejected() {
        let server = ApiServer::new();
        let foos = server.create_foo_crd().await;
        let foo = |name: &str, len: usize| {
            json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": name },
                "spec": { "a": "x".repeat(len) } })
        };
        assert_eq!(server.send_json("POST", foos, &foo("a", 1_570_000)).await.0, 201);
        assert_eq!(server.send_json("POST", foos, &foo("b", 1_573_000)).await.0, 500);
        assert_eq!(server.send_json("POST", &format!("{foos}?dryRun=All"), &foo("b", 1_573_000)).await.0, 201);
        let more = json!({ "spec": { "b": "x".repeat(5_000) } });
        assert_eq!(server.send_json("PATCH", &format!("{foos}/a"), &more).await.0, 500);
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(server.send_json("POST", definitions, &crd_with_large_defaults()).await.0, 201);
        let bars = "/apis/example.com/v1/namespaces/default/bars";
        for (n_items, code) in [(5, 201), (20, 500), (100_000, 500)] {
            let bar = json!({ "apiVersion": "example.com/v1", "kind": "Bar", "metadata": { "name": format!("a{n_items}") },
                "list": vec![json!({}); n_items] });
            assert_eq!(server.send_json("POST", bars, &bar).await.0, code, "{n_items} items");
        }
        let secrets = "/api/v1/namespaces/default/secrets";
        let secret = json!({ "metadata": { "name": "s" }, "data": { "a": "eHh4".repeat(340_000) } });
        assert_eq!(server.send_json("POST", secrets, &secret).await.0, 201);
    }
}
