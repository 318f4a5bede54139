//! The versions that a reconcile wrote, to recognize the changes of the cache that they cause. How a write enters the
//! cache is in `store/cache/own_write.rs`.
//!
//! Usually the change comes from the response, and the watch event that follows changes nothing. The handlers add the
//! key for it, as for any other change. For a key that succeeded this is harmless: the next reconcile finds nothing to
//! do. For a key that failed, met a conflict or was given up, the change would end the wait. The controller would then
//! run in a hot loop on its own writes. So a reconcile records a number for each version that it wrote. The handlers
//! compute the same number for each change, and the [queue](crate::queue) compares the two.
//!
//! The cache may receive the response of a write before the event of an earlier change by another client. The change
//! to the written version then shows both. A patch that names no field of the spec does not explain a changed spec. A
//! patch of the status explains neither a changed spec nor changed labels. Such a change still runs the key at once.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    object::{Stored, Uid, Version},
    queue::{BackoffEffect, KeyEvent, OWN_WRITES_MAX, VersionEffect},
    store::Change,
};

/// One object, with the last version of it that was written and the greatest effect of all its writes.
struct LastWrite {
    uid: Uid,
    written: Option<(Version, BackoffEffect)>,
}

tokio::task_local! {
    static CURRENT: Arc<Mutex<Vec<VersionEffect>>>;
    static LAST_WRITE: Arc<Mutex<LastWrite>>;
}

/// The top-level fields that do not belong to the spec. `kind` is one of them because items of lists have none.
pub(crate) const NON_SPEC_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The fields of the metadata that a write only names, and does not change.
const IDENTITY_FIELDS: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// A fixed seed is enough: the numbers never leave the process.
const NUMBERS: FixedState = FixedState::with_seed(0);

/// Runs a future and returns its output with the versions that it wrote, at most [`OWN_WRITES_MAX`]. Writes of tasks that
/// it spawned are not among them, because the list is a task-local value.
pub(crate) async fn record<F: Future>(future: F) -> (F::Output, Vec<VersionEffect>) {
    let written = Arc::<Mutex<Vec<VersionEffect>>>::default();
    let output = CURRENT.scope(written.clone(), future).await;
    let written = std::mem::take(&mut *written.lock());
    (output, written)
}

/// Runs a future. Returns its output with the last version that it wrote of the object with this uid, and the greatest
/// effect of these writes. `None` if it did not write it. Unlike [`record`] it misses no write after many others.
pub(crate) async fn last_write<F: Future>(uid: Uid, future: F) -> (F::Output, Option<(Version, BackoffEffect)>) {
    let last = Arc::new(Mutex::new(LastWrite { uid, written: None }));
    let output = LAST_WRITE.scope(last.clone(), future).await;
    let written = last.lock().written.take();
    (output, written)
}

/// Records that the reconcile in this task wrote this version of the object with this uid. Does nothing outside of a
/// reconcile.
pub(crate) fn record_write(uid: &Uid, version: &Version, effect: BackoffEffect) {
    let _not_followed = LAST_WRITE.try_with(|last| {
        let mut last = last.lock();
        if last.uid == *uid {
            let greatest = last.written.take().map_or(effect, |(_, before)| before.max(effect));
            last.written = Some((version.clone(), greatest));
        }
    });
    record_version(VersionEffect { version: number((uid, Some(version))), effect });
}

/// Records that the reconcile in this task deleted the object with this uid. Does nothing outside of a reconcile.
///
/// The end of the primary still resets the failures, because nothing else would free the entry of its key.
pub(crate) fn record_delete(uid: &Uid) {
    record_version(VersionEffect { version: deletion_version(uid), effect: BackoffEffect::End });
}

/// Returns the greatest effect that a write of this body to the object itself can have. Only a body that names a field
/// of the spec can change the spec. Only one that names a further field of the metadata can change that.
pub(crate) fn effect_of_body(body: &Value) -> BackoffEffect {
    let names_only = |value: &Value, fields: &[&str]| {
        value.as_object().is_some_and(|named| named.keys().all(|field| fields.contains(&field.as_str())))
    };
    if !names_only(body, &NON_SPEC_FIELDS) {
        BackoffEffect::Reset
    } else if body.get("metadata").is_some_and(|metadata| !names_only(metadata, &IDENTITY_FIELDS)) {
        BackoffEffect::End
    } else {
        BackoffEffect::Keep
    }
}

fn record_version(write: VersionEffect) {
    // Fails outside of a reconcile, for example in the Lease election, where nothing reads the numbers.
    let _outside = CURRENT.try_with(|written| {
        let mut written = written.lock();
        if written.len() < OWN_WRITES_MAX {
            written.push(write);
        }
    });
}

/// Returns an event of the queue with the number of a change: the same that [`record_write`] or [`record_delete`] recorded
/// if this process caused it. `min_write_effect` is the least effect of a write that explains the whole change.
pub(crate) fn event(change: &Change<Stored>, effect: BackoffEffect, min_write_effect: BackoffEffect) -> KeyEvent {
    let version = match change {
        Change::Added(new) | Change::Updated { new, .. } => {
            number((&new.meta().uid, Some(&new.meta().resource_version)))
        }
        Change::Deleted { last } => deletion_version(&last.meta().uid),
    };
    KeyEvent { change: VersionEffect { version, effect }, min_write_effect }
}

fn deletion_version(uid: &Uid) -> u64 {
    number((uid, None::<&Version>))
}

fn number(value: impl Hash) -> u64 {
    NUMBERS.hash_one(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_effect_follows_fields_it_may_change() {
        use BackoffEffect::{End, Keep, Reset};
        let named = json!({"name": "a", "namespace": "b", "uid": "1", "resourceVersion": "2"});
        for (body, expected) in [
            (json!({"status": {"n": 1}}), Keep),
            (json!({"apiVersion": "v1", "kind": "A", "metadata": named, "status": {}}), Keep),
            (json!({"metadata": {"uid": "1", "labels": {"a": "b"}}}), End),
            (json!({"metadata": {"finalizers": []}, "status": {}}), End),
            (json!({"metadata": null}), End),
            (json!({"metadata": {"uid": "1"}, "spec": {}}), Reset),
            (json!({"data": {}}), Reset),
            (json!([{"op": "remove", "path": "/status"}]), Reset),
        ] {
            assert_eq!(effect_of_body(&body), expected, "{body}");
        }
    }
}
