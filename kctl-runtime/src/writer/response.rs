//! Brings the response to a write into the cache before the caller gets it.

use std::{sync::Arc, time::Duration};

use super::{
    deletion::{Deletion, Stage},
    send::SentWrite,
    target::Target,
    uncertain::UncertainWrite,
};
use crate::{
    object::{Readable, Stored},
    own_writes,
    queue::BackoffEffect,
    store::{Delta, decode_checked},
    transport::{ApiError, Operation},
};

/// Longest wait for the watch event of a write on a server whose resourceVersions cannot be compared. After it the
/// key's next reconcile waits for a list.
const OPAQUE_VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Stores the object in a response and returns it decoded.
pub(super) async fn store_response<K: Readable>(
    target: &Target<'_>,
    operation: &Operation,
    done: SentWrite,
    effect: BackoffEffect,
) -> Result<Arc<K>, ApiError> {
    let (object, text) = accept_and_store(target, operation, done, effect).await?;
    decode_written(target, operation, &object, &text)
}

/// Stores the object in a response, without decoding it for the caller.
pub(super) async fn store_response_undecoded(
    target: &Target<'_>,
    operation: &Operation,
    done: SentWrite,
    effect: BackoffEffect,
) -> Result<Arc<Stored>, ApiError> {
    accept_and_store(target, operation, done, effect).await.map(|(object, _text)| object)
}

/// Stores the object in a response, or removes it if the write has ended it. Returns the object and the text of the
/// response.
async fn accept_and_store(
    target: &Target<'_>,
    operation: &Operation,
    done: SentWrite,
    effect: BackoffEffect,
) -> Result<(Arc<Stored>, String), ApiError> {
    let SentWrite { text, uncertain } = done;
    let object = accept(target, operation, &text)?;
    if remove_ended(target, &text).await {
        uncertain.mark_resolved();
    } else {
        store_written(target, operation, object.clone(), uncertain, effect).await;
    }
    Ok((object, text))
}

/// Brings a response into the form of the cache, with the checks of the readers.
pub(super) fn accept(target: &Target<'_>, operation: &Operation, text: &str) -> Result<Arc<Stored>, ApiError> {
    target.source.accept(text).map_err(|error| ApiError::Unreadable {
        operation: operation.into(),
        cause: format!("{error}: {}", error.source),
    })
}

/// Returns the written object as its type.
///
/// A cache that keeps the whole object shares its decoded value. Otherwise the response is decoded again,
/// because the caller gets all fields.
pub(super) fn decode_written<K: Readable>(
    target: &Target<'_>,
    operation: &Operation,
    object: &Arc<Stored>,
    text: &str,
) -> Result<Arc<K>, ApiError> {
    if target.source.is_whole() {
        let fits = decode_checked(object);
        return fits
            .ok_or_else(|| ApiError::Unreadable { operation: operation.into(), cause: "not of its kind".into() });
    }
    // The cache keeps only some fields, but the caller gets the whole object from the response.
    let decoded = Stored::accept(target.kind(), text).and_then(|whole| whole.decode::<K>());
    decoded.map_err(|error| ApiError::Unreadable {
        operation: operation.into(),
        cause: format!("{error}: {}", error.source),
    })
}

/// Brings a written state into the cache, and waits until it is there.
///
/// A state is ordered by its resourceVersion. If versions cannot be compared, storing the state might undo
/// a later one, so this waits for the watch instead, at most [`OPAQUE_VERSION_TIMEOUT`].
///
/// A dry run returns an object without a `resourceVersion`. It is not stored.
pub(super) async fn store_written(
    target: &Target<'_>,
    operation: &Operation,
    object: Arc<Stored>,
    uncertain: UncertainWrite,
    effect: BackoffEffect,
) {
    let meta = object.meta();
    own_writes::record_write(&meta.uid, &meta.resource_version, effect);
    if meta.revision().is_some() {
        target.source.store().push_and_wait(Delta::Written(object)).await;
        uncertain.mark_resolved();
    } else if meta.resource_version.is_none() {
        // A stored object has a version. This is the response to a dry run, which no watch reports.
        uncertain.mark_resolved();
    } else if target
        .source
        .wait_for_version(object.key(), &meta.uid, &meta.resource_version, OPAQUE_VERSION_TIMEOUT)
        .await
    {
        uncertain.mark_resolved();
    } else {
        tracing::warn!(
            %operation,
            "the watch has not delivered this write within {OPAQUE_VERSION_TIMEOUT:?}, and the resource versions of \
             this API server cannot be compared; listing its objects before the next reconcile"
        );
    }
}

/// Removes an object from the cache whose last finalizer this write has removed. The API server deletes it with that,
/// and its response has the `resourceVersion` from before. Returns `false` if the object exists.
pub(super) async fn remove_ended(target: &Target<'_>, text: &str) -> bool {
    let Some(Deletion { uid, stage: Stage::Ended }) = Deletion::from_response(target.kind(), text) else {
        return false;
    };
    own_writes::record_delete(&uid);
    target.source.store().push_and_wait(Delta::Gone(target.key(), uid)).await;
    true
}
