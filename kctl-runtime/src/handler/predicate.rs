//! Predicates for `when = …`: they decide which changes of an object lead to a reconcile.
//!
//! A predicate is any function from a [`Change`] to `bool`. These are the ones that controllers need most, with the
//! names of controller-runtime's predicates (`pkg/predicate/predicate.go`). Each lets additions, deletions, the start
//! of a deletion and changes of finalizers pass, because a controller that misses one of these is wrong. Combine
//! predicates in a function of your own: with `a || b` a change passes if it passes one of them.
//!
//! ```
//! use k8s_openapi::api::core::v1::Node;
//! use kctl_runtime::{handler::predicate, store::Change};
//!
//! /// Only Nodes whose labels or taints changed: a heartbeat changes neither.
//! fn placement_changed(change: &Change<Node>) -> bool {
//!     predicate::labels_changed(change) || predicate::generation_changed(change)
//! }
//! # assert!(placement_changed(&Change::Added(Default::default())));
//! ```

use kube::Resource;

use crate::store::Change;

/// Passes updates that change `metadata.generation`: changes of the spec, not of the status or the metadata.
///
/// Updates of kinds without a generation, such as `ConfigMap` and Secret, always pass (unlike
/// `GenerationChangedPredicate` of controller-runtime, which drops them all).
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::ObjectMeta};
/// use kctl_runtime::{handler::predicate::generation_changed, store::Change};
///
/// let at = |generation| {
///     Arc::new(Deployment {
///         metadata: ObjectMeta { generation: Some(generation), ..ObjectMeta::default() },
///         ..Deployment::default()
///     })
/// };
/// assert!(generation_changed(&Change::Updated { old: at(1), new: at(2) }));
/// assert!(!generation_changed(&Change::Updated { old: at(2), new: at(2) }));
/// ```
pub fn generation_changed<K: Resource>(change: &Change<K>) -> bool {
    differs(change, |object: &K| object.meta().generation) || has_no_generation(change)
}

/// Passes updates that change `metadata.labels`.
///
/// ```
/// use std::{collections::BTreeMap, sync::Arc};
/// use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
/// use kctl_runtime::{handler::predicate::labels_changed, store::Change};
///
/// let node = |zone: &str| {
///     let labels = BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), zone.to_owned())]);
///     Arc::new(Node { metadata: ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }, ..Node::default() })
/// };
/// assert!(labels_changed(&Change::Updated { old: node("a"), new: node("b") }));
/// assert!(!labels_changed(&Change::Updated { old: node("a"), new: node("a") }));
/// ```
pub fn labels_changed<K: Resource>(change: &Change<K>) -> bool {
    differs(change, |object: &K| object.meta().labels.clone().unwrap_or_default())
}

/// Passes updates that change `metadata.annotations`. Beware of annotations that other controllers write often, such as
/// timestamps.
///
/// ```
/// use std::{collections::BTreeMap, sync::Arc};
/// use k8s_openapi::api::core::v1::Node;
/// use kctl_runtime::{handler::predicate::annotations_changed, store::Change};
///
/// let old = Arc::new(Node::default());
/// let mut new = Node::default();
/// new.metadata.annotations = Some(BTreeMap::from([("example.com/paused".to_owned(), "true".to_owned())]));
/// assert!(annotations_changed(&Change::Updated { old, new: Arc::new(new) }));
/// ```
pub fn annotations_changed<K: Resource>(change: &Change<K>) -> bool {
    differs(change, |object: &K| object.meta().annotations.clone().unwrap_or_default())
}

/// Passes updates that change `metadata.resourceVersion`: all real changes, and no repetition of a known state.
pub fn resource_version_changed<K: Resource>(change: &Change<K>) -> bool {
    differs(change, |object: &K| object.meta().resource_version.clone())
}

fn has_no_generation<K: Resource>(change: &Change<K>) -> bool {
    change.latest().meta().generation.is_none()
}

/// Returns `true` if `part` differs, or if the update is one that every predicate lets pass.
fn differs<K: Resource, T: PartialEq>(change: &Change<K>, part: impl Fn(&K) -> T) -> bool {
    let Change::Updated { old, new } = change else { return true };
    let (old_meta, new_meta) = (old.meta(), new.meta());
    part(old) != part(new)
        // Another object of the same name is a deletion and an addition.
        || old_meta.uid != new_meta.uid
        || old_meta.deletion_timestamp.is_some() != new_meta.deletion_timestamp.is_some()
        || old_meta.finalizers.as_deref().unwrap_or_default() != new_meta.finalizers.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Pod;
    use serde_json::{Value, json};

    use super::*;

    type Predicate = fn(&Change<Pod>) -> bool;

    fn pod(metadata: &Value) -> Arc<Pod> {
        Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
    }

    fn check(predicate: Predicate, old: &Value, new: &Value, passes: bool) {
        let what = format!("{old} to {new}");
        assert_eq!(predicate(&Change::Updated { old: pod(old), new: pod(new) }), passes, "{what}");
    }

    const ALL: [Predicate; 4] =
        [generation_changed::<Pod>, labels_changed::<Pod>, annotations_changed::<Pod>, resource_version_changed::<Pod>];

    #[test]
    fn additions_and_deletions_always_pass() {
        for predicate in ALL {
            assert!(predicate(&Change::Added(pod(&json!({})))));
            assert!(predicate(&Change::Deleted { last: pod(&json!({})) }));
        }
    }

    #[test]
    fn deletions_and_finalizer_changes_always_pass() {
        for predicate in ALL {
            let plain = json!({"generation": 1, "uid": "a"});
            let time = "2026-01-01T00:00:00Z";
            check(predicate, &plain, &json!({"generation": 1, "uid": "a", "deletionTimestamp": time}), true);
            check(predicate, &plain, &json!({"generation": 1, "uid": "a", "finalizers": ["a/b"]}), true);
            check(predicate, &plain, &json!({"generation": 1, "uid": "b"}), true);
            check(predicate, &plain, &plain, false);
        }
    }

    #[test]
    fn each_predicate_sees_its_own_part() {
        let parts = [
            json!({"generation": 2}),
            json!({"generation": 1, "labels": {"a": "b"}}),
            json!({"generation": 1, "annotations": {"a": "b"}}),
            json!({"generation": 1, "resourceVersion": "7"}),
        ];
        for (own, predicate) in ALL.into_iter().enumerate() {
            for (index, part) in parts.iter().enumerate() {
                check(predicate, &json!({"generation": 1}), part, index == own);
            }
        }
    }

    #[test]
    fn kinds_without_a_generation_pass() {
        check(generation_changed::<Pod>, &json!({}), &json!({"labels": {"a": "b"}}), true);
    }
}
