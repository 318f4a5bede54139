//! `propagationPolicy` of a delete: the fate of the objects that the deleted one owns.

/// The handling of the dependents of a deleted object by the garbage collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Deletes them after the object.
    Background,
    /// Deletes them first. The object waits for dependents with `blockOwnerDeletion`.
    Foreground,
    /// Keeps them and removes the owner reference.
    Orphan,
}

/// Finalizers that the garbage collector sets on an object. Each implements a policy (`k8s.io/apimachinery`,
/// `FinalizerDeleteDependents` and `FinalizerOrphanDependents`).
const GC_FINALIZERS: [&str; 2] = ["foregroundDeletion", "orphan"];

impl Propagation {
    /// Returns the default policy of a delete: background, as in `kubectl delete`. API servers orphan the dependents of
    /// `batch/v1` Jobs and of `ReplicationController`s by default.
    ///
    /// Returns `None` if the object has a finalizer of the garbage collector, which leaves the policy to the API
    /// server. A foreground deletion under way would otherwise become a background one.
    pub(crate) fn by_default(finalizers: &[String]) -> Option<Self> {
        let has_policy = finalizers.iter().any(|finalizer| GC_FINALIZERS.contains(&finalizer.as_str()));
        (!has_policy).then_some(Self::Background)
    }

    /// Returns the name of the policy in `DeleteOptions`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}
