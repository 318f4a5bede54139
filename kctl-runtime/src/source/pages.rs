//! Reads the response of a list item by item, as the bytes arrive.

use futures::StreamExt;
use http_body_util::BodyExt;
use kube::client::Body;

use super::items::{Items, ListMeta};
use crate::transport::{self, ApiError, Operation};

/// Passes each item of a list to `take`, and returns the metadata of the list. `on_data` is called for each chunk.
///
/// A list may take minutes, as long as bytes keep coming: the limit of 60 s holds for the time between two chunks.
///
/// # Errors
/// The response pauses for too long, breaks off, is not a list, or `take` fails for an item. Items before that were
/// passed on already, so the caller has to throw its result away.
pub(super) async fn each_item(
    operation: &Operation,
    body: Body,
    on_data: impl Fn(),
    mut take: impl FnMut(&str) -> Result<(), serde_json::Error>,
) -> Result<ListMeta, ApiError> {
    let unreadable = |cause: String| ApiError::Unreadable { operation: operation.into(), cause };
    let (mut chunks, mut items) = (body.into_data_stream(), Items::new());
    loop {
        let chunk = tokio::time::timeout(transport::RESPONSE_TIMEOUT, chunks.next()).await;
        match chunk.map_err(|_elapsed| transport::timeout_error(operation, transport::RESPONSE_TIMEOUT))? {
            Some(chunk) => items.push(&chunk.map_err(|error| unreadable(error.to_string()))?),
            None => break,
        }
        on_data();
        while let Some(item) = items.next().map_err(|error| unreadable(error.to_string()))? {
            let item = std::str::from_utf8(item).map_err(|error| unreadable(error.to_string()))?;
            take(item).map_err(|error| unreadable(error.to_string()))?;
        }
    }
    items.end().map_err(|error| unreadable(error.to_string()))
}
