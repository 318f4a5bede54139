//! Reports objects that cannot be decoded, with a `Warning` event on each.
//!
//! Primaries among them that are being deleted are queued, because the controller's finalizer holds them. So are those
//! that another shard of a controller ring should get.
//!
//! `kubectl describe` then shows the owner of the object why the controller ignores it. Each controller that reads the
//! kind reports for itself, since each reads it as its own type, which the object may not fit. Of several active replicas
//! with the same cache, one reports. In a controller ring, that is true of kinds that the sharder labels; each shard
//! reports objects of other kinds.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::Arc,
};

use futures::{StreamExt, stream::FuturesUnordered};

use crate::{
    key::ObjectKey,
    object::Uid,
    queue::WorkQueue,
    reconcile::Env,
    source::{Source, Unreadable},
    writer::{EventRecord, EventType},
};

/// The states that were reported, by uid and version.
///
/// An object that becomes readable leaves the map, so the same fault is reported again when it comes back.
type Reported = BTreeMap<ObjectKey, (Uid, String)>;

/// Reports unreadable objects of all caches of a controller. Runs as long as its workers do.
///
/// Objects of other clusters get no event: the recorder writes to the cluster of the primary.
pub(super) async fn report(env: &Env, queue: &WorkQueue<ObjectKey>) {
    let mut sources = vec![&env.primary];
    let cluster = &env.primary.config().cluster;
    for (_, source) in &env.sources {
        if source.config().cluster == *cluster && !sources.iter().any(|listed| Arc::ptr_eq(listed, source)) {
            sources.push(source);
        }
    }
    let mut running: FuturesUnordered<_> = sources.into_iter().map(|source| report_of(env, source, queue)).collect();
    while running.next().await.is_some() {}
    pending::<()>().await;
}

/// Reports the unreadable objects of one cache, each state once. Objects of a slot that is gained later are reported
/// then.
///
/// A source remembers at most [`UNREADABLE_MAX`](crate::source::UNREADABLE_MAX) of them, and the recorder limits the
/// Events of each.
async fn report_of(env: &Env, source: &Arc<Source>, queue: &WorkQueue<ObjectKey>) {
    let is_primary = Arc::ptr_eq(source, &env.primary);
    let (mut changes, mut reported) = (source.unreadable_changes(), Reported::new());
    loop {
        changes.mark_unchanged();
        let n_moves = env.gate.n_changes();
        let all = source.all_unreadable();
        {
            let present: BTreeSet<_> = all.iter().map(|one| one.stored.key()).collect();
            reported.retain(|key, _| present.contains(key));
        }
        for one in all {
            if !reports(env, source, &one) {
                continue;
            }
            let meta = one.stored.meta();
            let state = (meta.uid.clone(), meta.resource_version.to_string());
            if reported.insert(meta.key.clone(), state.clone()).as_ref() == Some(&state) {
                continue;
            }
            record_event(env, source, &one);
            let is_drained = || env.gate.ring().is_some_and(|ring| ring.labels().is_drained(&one.stored));
            if is_primary && (meta.deletion_timestamp().is_some() || is_drained()) {
                queue.add(meta.key.clone());
            }
        }
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return },
            () = env.gate.changed_since(n_moves) => {}
        }
    }
}

/// Returns `true` if this replica is the one that reports an object. In a cache that all replicas have, that is the owner
/// of the object's slot, or the shard for which the object is labelled.
fn reports(env: &Env, source: &Source, one: &Unreadable) -> bool {
    let is_assigned_elsewhere = || env.gate.ring().is_some_and(|ring| ring.labels().is_assigned_elsewhere(&one.stored));
    source.part().is_some() || (env.gate.owns(one.stored.key()) && !is_assigned_elsewhere())
}

/// Records the `Warning` event on an unreadable object, with the field and the consequence.
fn record_event(env: &Env, source: &Source, one: &Unreadable) {
    let kind = &source.config().kind;
    let is_cached =
        source.store().get(one.stored.key()).is_some_and(|cached| cached.meta().uid == one.stored.meta().uid);
    let until = if is_cached { "its last readable state is used until then" } else { "it is ignored until then" };
    let note = format!(
        "can't be read as {}: {}; correct the object, or the type of the program; {until}",
        kind.kind, one.error
    );
    let record = EventRecord::new(EventType::Warning, "Unreadable", note);
    env.recorder.record_about(kind, &env.spec, &one.stored, record);
}
