//! Reads single objects from the API server.

use std::sync::Arc;

use kctl_apimachinery::url;
use kube::Client;
use serde_json::Value;

use super::{
    Writer,
    response::{accept, decode_written},
    send::with_type_meta,
    target::Target,
};
use crate::{
    key::ObjectKey,
    object::{Kind, Object, Readable, Stored},
    store::Delta,
    transport::{self, ApiError, Operation},
};

impl Writer {
    /// Reads an object from the API server, past the cache.
    ///
    /// It is for kinds that a controller declares as live reads. The cache is neither asked nor changed.
    ///
    /// # Errors
    /// 404 if the object does not exist. [`ApiError::Unsendable`] for a key without a name.
    pub(crate) async fn get<K: Object>(
        &self,
        client: &Client,
        cluster: &str,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Arc<K>, ApiError> {
        let operation = Operation::on_object("get", cluster, kind, key.clone());
        if key.name.is_empty() {
            // The path would be the collection's, so the API server would list it.
            return Err(ApiError::Unsendable { operation, cause: "the name is empty".into() });
        }
        let path = format!("{}/{}", kind.path(key.namespace.as_deref()), url::escape(&key.name));
        let response = transport::get(client, &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let stored =
            Stored::accept(kind, &response).map_err(|error| unreadable(format!("{error}: {}", error.source)))?;
        stored.decode::<K>().map_err(|error| unreadable(format!("{error}: {}", error.source)))
    }

    /// Reads one object by a list with a field selector, and stores it in the cache.
    ///
    /// A controller that caches a kind has the permission to list it, but may lack `get`.
    ///
    /// Returns `None` if the object does not exist. The cache has the state that was read.
    pub(crate) async fn find<K: Object>(&self, target: &Target<'_>) -> Result<Option<Arc<K>>, ApiError> {
        #[derive(serde::Deserialize)]
        struct Found {
            items: Vec<Value>,
        }
        let operation = target.operation("list");
        let path = transport::list_by_name(&target.kind().path(target.namespace), target.name);
        let response = transport::get(target.source.client(), &operation, &path).await?;
        let unreadable = |cause: String| ApiError::Unreadable { operation: operation.clone(), cause };
        let found: Found = serde_json::from_str(&response).map_err(|error| unreadable(error.to_string()))?;
        let Some(item) = found.items.first() else { return Ok(None) };
        let text = with_type_meta(target.kind(), item).map_err(|error| unreadable(error.to_string()))?.to_string();
        store_read(target, &operation, &text).await.map(Some)
    }
}

/// Stores an object that was read, and returns it decoded.
async fn store_read<K: Readable>(target: &Target<'_>, operation: &Operation, text: &str) -> Result<Arc<K>, ApiError> {
    let object = accept(target, operation, text)?;
    target.source.store().push_and_wait(Delta::Written(object.clone())).await;
    decode_written(target, operation, &object, text)
}
