//! Deletes objects: decides by kind, finalizers and grace period whether an object is removed or marked as being
//! deleted.
//!
//! A delete is decided and written in two steps: `Deletion::decide` only reads the store, so that a dry run and
//! admission can see the outcome, and `Deletion::write` performs it. The callers are the verb `delete`,
//! `deletecollection`, evictions, and the garbage collector and the other controllers of this server.
//! Behaviour: `Delete` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`.
//!
//! The finalizers `foregroundDeletion` and `orphan` express the propagation policy. A delete adds or drops them by its
//! options, and the garbage collector removes them when it is done.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kctl_apimachinery::time;
use serde_json::Value;

use crate::{
    deletion::{Grace, ORPHAN, Propagation, is_being_deleted, own_finalizer, set_finalizers},
    metadata,
    registry::Resource,
    store::{Key, Store},
};

/// The effect of a delete on one object. The variants are in the order of how much is left of the object afterwards.
#[derive(Debug, PartialEq)]
pub(crate) enum Deletion {
    /// The object is being deleted already: its grace period runs, or finalizers in its spec hold it. Nothing is
    /// written, and admission does not run.
    Pending,
    /// The object gets this state, and is kept until its finalizers are removed or its grace period ends.
    /// `metadata.deletionTimestamp` is set. The state may equal the present one, if the object was marked before.
    Marked(Value),
    /// The grace period is zero: watches see this state, and then the object is removed. Watches see `MODIFIED` with
    /// the new timestamp, and `DELETED` at the next revision. Only kinds with a grace period end like this.
    Ended(Value),
    /// The object is removed without a last update. `changes` is `true` if finalizers of the garbage collector were
    /// dropped before. Watches see `DELETED` alone.
    Gone { changes: bool },
}

impl Deletion {
    /// Returns the effect of a delete with these options. Nothing is written. A CRD and a Namespace are only marked:
    /// their controllers delete what belongs to them. A Pod with a node is marked with its grace period, and the
    /// kubelet deletes it again with a grace period of 0. Any object with finalizers is marked and kept until the last
    /// of them is removed ([`update`](super::update)). Everything else is gone at once.
    pub(crate) fn decide(
        store: &Store,
        resource: &Resource,
        object: &Value,
        propagation: Propagation,
        grace: Grace,
    ) -> Self {
        let now = store.clock.now();
        let is_marked = is_being_deleted(object);
        let mut new = object.clone();
        if let Some(mark) = resource.kind.delete.mark.filter(|_| !is_marked) {
            mark(&mut new, propagation, now);
            return Self::Marked(new);
        }
        if (resource.kind.delete.has_own_finalizers)(object) {
            return Self::Pending;
        }
        let seconds = match set_grace_period(resource, &mut new, grace, now) {
            GracePeriod::Pending => return Self::Pending,
            GracePeriod::No => None,
            GracePeriod::For(seconds) => Some(seconds),
        };
        let changes = set_finalizers(&mut new, collector_finalizer(resource, object, propagation));
        match seconds {
            _ if new["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty()) => {
                if seconds.is_none() {
                    mark(&mut new, now);
                }
                Self::Marked(new)
            }
            Some(0) => Self::Ended(new),
            Some(_) => Self::Marked(new),
            None => Self::Gone { changes },
        }
    }

    /// Writes the effect on the object. Returns the last state of the object if it is removed, or else its present
    /// state. A state that equals the present one is not written: it gets no revision, and watches see nothing.
    pub(crate) fn write(self, store: &mut Store, resource: &Resource, key: &Key, object: &Arc<Value>) -> DeleteOutcome {
        match self {
            Self::Pending => return DeleteOutcome::Kept(object.clone()),
            Self::Marked(new) if new == **object => return DeleteOutcome::Kept(object.clone()),
            Self::Marked(new) => return DeleteOutcome::Kept(store.put(&resource.id, key.clone(), new)),
            Self::Ended(new) => drop(store.put(&resource.id, key.clone(), new)),
            Self::Gone { .. } => {}
        }
        let last = store.remove(&resource.id, key);
        DeleteOutcome::Gone(last.unwrap_or_else(|| object.clone()))
    }
}

/// The state of an object after a delete.
pub(crate) enum DeleteOutcome {
    /// The object exists: finalizers or its grace period hold it.
    Kept(Arc<Value>),
    /// The object is removed. Its last state has the resource version of the removal.
    Gone(Arc<Value>),
}

/// Deletes an object with these options. Controllers use it. A verb that has to run admission between the decision and
/// the write uses `Deletion` itself.
pub(crate) fn delete(
    store: &mut Store,
    resource: &Resource,
    key: &Key,
    object: &Arc<Value>,
    propagation: Propagation,
    grace: Grace,
) -> DeleteOutcome {
    Deletion::decide(store, resource, object, propagation, grace).write(store, resource, key, object)
}

/// The grace period of an object.
enum GracePeriod {
    /// The object has no grace period. Finalizers alone decide. This is also returned for a Pod whose period of 0
    /// seconds has been set before: the delete that follows removes it.
    No,
    /// The period runs already, and ends no later than requested.
    Pending,
    /// The period lasts this many seconds.
    For(i64),
}

/// Sets the grace period of an object whose kind has one. A later delete may shorten it but not extend it
/// (`BeforeDelete` of `k8s.io/apiserver/pkg/registry/rest/delete.go`). `deletionTimestamp` is the end of the grace
/// period, not the time of the delete. An example with a period of 30 s that began at 12:00:00:
///
/// ```text
/// delete at 12:00:10 with gracePeriodSeconds 5    deletionTimestamp 12:00:05 is over:  12:00:10, 1 s
/// delete at 12:00:10 with gracePeriodSeconds 15   deletionTimestamp 12:00:15, 15 s
/// delete at 12:00:10 with gracePeriodSeconds 60   pending: 12:00:30 stays
/// delete at 12:00:10 with gracePeriodSeconds 0    deletionTimestamp 12:00:10, 0 s: the object is removed
/// ```
///
/// A shorter period counts from the first delete, not from the present one.
fn set_grace_period(resource: &Resource, object: &mut Value, grace: Grace, now: Timestamp) -> GracePeriod {
    let Some(grace_seconds) = resource.kind.delete.grace_seconds else { return GracePeriod::No };
    let meta = &object["metadata"];
    let due = meta["deletionTimestamp"].as_str().and_then(time::parse);
    let Some(due) = due else {
        let seconds = grace_seconds(object, grace);
        set_deletion_time(object, add_seconds(now, seconds), seconds);
        count_generation(object);
        return GracePeriod::For(seconds);
    };
    let period = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    match grace {
        _ if period == 0 => GracePeriod::No,
        Grace::Seconds(seconds) if seconds < period => {
            let sooner = add_seconds(due, seconds - period);
            if sooner < now {
                // The shorter grace period is over already. The kubelet still gets a second to confirm the end.
                set_deletion_time(object, now, seconds.min(1));
            } else {
                set_deletion_time(object, sooner, seconds);
            }
            GracePeriod::For(seconds)
        }
        _ => GracePeriod::Pending,
    }
}

/// Returns a time in the future. If the result is out of range, the time is returned unchanged.
fn add_seconds(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

/// Sets the deletion timestamp and the grace period. The time has whole seconds, as all times of `metav1.Time` do.
fn set_deletion_time(object: &mut Value, due: Timestamp, seconds: i64) {
    object["metadata"]["deletionTimestamp"] = time::seconds(due).into();
    object["metadata"]["deletionGracePeriodSeconds"] = seconds.into();
}

/// Increments the generation, so that controllers that compare generations notice the deletion. Objects without a
/// generation, or with 0, do not get one: their kinds do not count it.
fn count_generation(object: &mut Value) {
    let stored = metadata::generation(object);
    if stored > 0 {
        metadata::increment_generation(object, stored);
    }
}

/// Marks an object that only its finalizers hold as being deleted. The period is 0, because only kinds with a grace
/// period have another. A time in the future, which a Pod with finalizers may have, is moved to the present
/// (`markAsDeleting` of `store.go`).
fn mark(object: &mut Value, now: Timestamp) {
    let due = object["metadata"]["deletionTimestamp"].as_str().and_then(time::parse);
    if due.is_none() {
        count_generation(object);
    }
    if due.is_none_or(|due| due > now) {
        object["metadata"]["deletionTimestamp"] = time::seconds(now).into();
    }
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
}

/// Returns the finalizer for the garbage collector. The options decide, then the object, then its kind
/// (`shouldOrphanDependents` and `shouldDeleteDependents`).
fn collector_finalizer(resource: &Resource, object: &Value, propagation: Propagation) -> Option<&'static str> {
    if resource.kind.delete.is_ignored_by_gc {
        return None;
    }
    if propagation != Propagation::Default {
        return propagation.finalizer();
    }
    own_finalizer(object).or_else(|| resource.kind.delete.orphans_dependents.then_some(ORPHAN))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Deletes a Pod whose grace period of 100 seconds ends at 00:01:00.
    fn check(now: &str, seconds: i64, expected: &Value, over_after: i64) {
        let pods =
            crate::kinds::built_in().registry.any_version(&crate::kinds::core::pod::KIND.group_resource()).unwrap();
        let mut pod = json!({ "metadata": {
            "generation": 2, "deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 100,
        } });
        let period = set_grace_period(&pods, &mut pod, Grace::Seconds(seconds), time(now));
        assert!(matches!(period, GracePeriod::For(seconds) if seconds == over_after), "{now} {seconds}");
        let meta = &pod["metadata"];
        let found = json!([meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]]);
        assert_eq!((&found, &meta["generation"]), (expected, &json!(2)), "{now} {seconds}");
    }

    #[test]
    fn shorter_grace_begins_when_the_longer_one_began() {
        check("2026-01-01T00:00:00Z", 99, &json!(["2026-01-01T00:00:59Z", 99]), 99);
        check("2026-01-01T00:00:00Z", 40, &json!(["2026-01-01T00:00:00Z", 40]), 40);
    }

    #[test]
    fn shorter_expired_grace_leaves_the_kubelet_a_second() {
        check("2026-01-01T00:00:00Z", 39, &json!(["2026-01-01T00:00:00Z", 1]), 39);
        check("2026-01-01T00:00:00Z", 0, &json!(["2026-01-01T00:00:00Z", 0]), 0);
    }
}
