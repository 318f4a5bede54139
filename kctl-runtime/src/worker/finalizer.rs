//! The controller's finalizer: there before the first reconcile, gone after the clean-up.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    effect::{ApiError, MERGE_PATCH, Target},
    object::Stored,
    reconcile::Env,
};

/// Adds the finalizer and returns the object with it.
pub(super) async fn add(env: &Env, stored: &Arc<Stored>, finalizer: &str) -> Result<Arc<Stored>, ApiError> {
    let mut finalizers = stored.meta().finalizers().to_vec();
    finalizers.push(finalizer.into());
    set(env, stored, &finalizers).await?;
    Ok(env.primary.store().get(stored.key()).unwrap_or_else(|| stored.clone()))
}

/// Takes the finalizer away; a primary that is gone has none.
pub(super) async fn remove(env: &Env, stored: &Arc<Stored>, finalizer: &str) -> Result<(), ApiError> {
    let finalizers: Vec<String> =
        stored.meta().finalizers().iter().filter(|known| *known != finalizer).cloned().collect();
    match set(env, stored, &finalizers).await {
        Err(error) if error.names_missing(stored.meta().name()) => Ok(()),
        other => other,
    }
}

/// Takes the finalizer away from an object that can't be read, so neither can the answer.
pub(super) async fn release(env: &Env, stored: &Stored, finalizer: &str) -> Result<(), ApiError> {
    let finalizers: Vec<String> =
        stored.meta().finalizers().iter().filter(|known| *known != finalizer).cloned().collect();
    match env.writer.patch_unread(&target(env, stored), MERGE_PATCH, &patch(stored, &finalizers)).await {
        Err(error) if error.names_missing(stored.meta().name()) => {
            env.primary.forget_unreadable(stored.key());
            Ok(())
        }
        other => other,
    }
}

async fn set(env: &Env, stored: &Arc<Stored>, finalizers: &[String]) -> Result<(), ApiError> {
    env.writer.patch_stored(&target(env, stored), "", MERGE_PATCH, &patch(stored, finalizers)).await
}

fn target<'a>(env: &'a Env, stored: &'a Stored) -> Target<'a> {
    let meta = stored.meta();
    Target { by: stored.key(), source: &env.primary, namespace: meta.namespace(), name: meta.name() }
}

/// The list is replaced as a whole: it must be the one that was read.
fn patch(stored: &Stored, finalizers: &[String]) -> Value {
    let meta = stored.meta();
    json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "finalizers": finalizers } })
}
