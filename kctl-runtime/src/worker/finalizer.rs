//! The finalizer of a controller: it is added before the first reconcile and removed after the cleanup.
//!
//! The list of finalizers is replaced as a whole by a merge patch with `uid` and `resourceVersion`. So a finalizer that
//! another controller added in between is never lost. The patch fails with a conflict instead.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    object::Stored,
    reconcile::ReconcileEnv,
    store::Delta,
    writer::{ApiError, MERGE_PATCH, Target},
};

/// Adds the finalizer and returns the object with it, or as it is being deleted now.
///
/// The store may have lost the object since, or have a successor without the finalizer. Then the state of the response
/// is returned, because a reconcile relies on the finalizer.
pub(super) async fn add(env: &ReconcileEnv, stored: &Arc<Stored>, finalizer: &str) -> Result<Arc<Stored>, ApiError> {
    let mut finalizers = stored.meta().finalizers().to_vec();
    finalizers.push(finalizer.into());
    let patched = patch_finalizers(env, stored, &finalizers).await?;
    let is_guarded = |cached: &Arc<Stored>| {
        let meta = cached.meta();
        meta.uid == patched.meta().uid && (meta.has_finalizer(finalizer) || meta.deletion_timestamp().is_some())
    };
    Ok(env.primary.store().get(stored.key()).filter(is_guarded).unwrap_or(patched))
}

/// Removes the finalizer. An object that is already gone is a success.
pub(super) async fn remove(env: &ReconcileEnv, stored: &Arc<Stored>, finalizer: &str) -> Result<(), ApiError> {
    let finalizers = stored.meta().finalizers_without(finalizer);
    match patch_finalizers(env, stored, &finalizers).await {
        Err(error) if error.is_object_missing() => {
            forget(env, stored).await;
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Removes the finalizer of an object that cannot be decoded; the response is not decoded either.
pub(super) async fn release(env: &ReconcileEnv, stored: &Stored, finalizer: &str) -> Result<(), ApiError> {
    let finalizers = stored.meta().finalizers_without(finalizer);
    match env.writer.patch_unreadable(&target(env, stored), MERGE_PATCH, &patch(stored, &finalizers)).await {
        Err(error) if error.is_object_missing() => {
            env.primary.forget_unreadable(stored.key());
            forget(env, stored).await;
            Ok(())
        }
        other => other,
    }
}

/// Removes an object from the cache that is already gone. Otherwise each event of an object that it owned would clean it up
/// again, until the watch reports the deletion.
async fn forget(env: &ReconcileEnv, stored: &Stored) {
    let gone = Delta::Gone(stored.key().clone(), stored.meta().uid.clone());
    env.primary.store().push_and_wait(gone).await;
}

/// Replaces the list of finalizers, and returns the object as the response has it.
async fn patch_finalizers(
    env: &ReconcileEnv,
    stored: &Arc<Stored>,
    finalizers: &[String],
) -> Result<Arc<Stored>, ApiError> {
    env.writer.patch_stored(&target(env, stored), "", MERGE_PATCH, &patch(stored, finalizers)).await
}

fn target<'a>(env: &'a ReconcileEnv, stored: &'a Stored) -> Target<'a> {
    let meta = stored.meta();
    Target { by: stored.key(), source: &env.primary, namespace: meta.namespace(), name: meta.name() }
}

/// Returns the merge patch that replaces the list of finalizers of exactly this version of the object.
fn patch(stored: &Stored, finalizers: &[String]) -> Value {
    let meta = stored.meta();
    json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers } })
}
