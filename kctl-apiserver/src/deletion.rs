//! Deletion options, and the finalizers of the server and of the garbage collector.

use std::collections::HashSet;

use serde_json::Value;

/// The effect of a delete on dependents (`metav1.DeletionPropagation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// The default of the object: its finalizers decide, or else its kind.
    Default,
    /// The object is removed at once, and the garbage collector deletes its dependents afterwards.
    Background,
    /// The object is marked, and is kept until its dependents are gone.
    Foreground,
    /// The dependents are kept, and lose their owner reference.
    Orphan,
    /// `orphanDependents: false`: background deletion, but foreground deletion of a Namespace.
    NoOrphans,
}

impl Propagation {
    /// Returns the finalizer that holds the object for the garbage collector.
    pub(crate) fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
            Self::Default | Self::Background | Self::NoOrphans => None,
        }
    }
}

/// The grace period of a delete (`gracePeriodSeconds`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// `deletionGracePeriodSeconds` of the object, or else the default of its kind.
    Default,
    /// This many seconds; 0 removes the object at once.
    Seconds(i64),
}

/// Returns `true` if an object is being deleted: finalizers or its grace period hold it.
pub(crate) fn is_being_deleted(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The finalizer with which the garbage collector deletes dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer with which the garbage collector removes itself from the dependents' owner references.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer that holds a CRD until its objects are gone.
pub(crate) const CUSTOM_RESOURCE_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Returns the first finalizer of an object that is for the garbage collector. An earlier delete or a client has set
/// it. A delete with default options then continues with that policy.
pub(crate) fn own_finalizer(object: &Value) -> Option<&'static str> {
    let mut names = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.find_map(|name| [FOREGROUND, ORPHAN].into_iter().find(|finalizer| *finalizer == name))
}

/// Makes `finalizer` the only finalizer for the garbage collector, or removes these finalizers for `None`. Returns
/// `true` if the set of finalizers changes; their order does not count. The finalizers of others keep their order, and
/// this one comes last. A list that becomes empty is removed from the object (`deletionFinalizersForGarbageCollection`
/// of `store.go`).
pub(crate) fn set_finalizers(object: &mut Value, finalizer: Option<&str>) -> bool {
    let existing = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let others = existing.iter().filter(|name| *name != FOREGROUND && *name != ORPHAN).cloned();
    let new: Vec<Value> = others.chain(finalizer.map(Value::from)).collect();
    if names(&new) == names(&existing) {
        return false;
    }
    let Some(meta) = object["metadata"].as_object_mut() else { return false };
    if new.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".into(), new.into());
    }
    true
}

/// Returns the names of finalizers as a set. An object may have more than 100,000 of them.
fn names(finalizers: &[Value]) -> HashSet<&str> {
    finalizers.iter().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if each finalizer is compared with all others.
    #[test]
    fn many_finalizers_are_compared_as_sets() {
        let others: Vec<String> = (0..100_000).map(|n| format!("example.com/{n}")).collect();
        let mut object = json!({ "metadata": { "finalizers": others } });
        assert!(!set_finalizers(&mut object, None));
        assert!(set_finalizers(&mut object, Some(ORPHAN)));
        assert!(!set_finalizers(&mut object, Some(ORPHAN)));
        assert!(set_finalizers(&mut object, None));
        assert!(object["metadata"]["finalizers"] == json!(others));
    }
}
