//! `propagationPolicy` of a delete: the fate of the objects that the deleted one owns.

/// How the garbage collector treats the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Deletes them after the object.
    Background,
    /// Deletes them first. The object waits for dependents with `blockOwnerDeletion`.
    Foreground,
    /// Keeps them and removes the owner reference.
    Orphan,
}

/// Finalizers by which the garbage collector holds an object. Each stands for a policy (`k8s.io/apimachinery`,
/// `FinalizerDeleteDependents` and `FinalizerOrphanDependents`).
const OF_COLLECTOR: [&str; 2] = ["foregroundDeletion", "orphan"];

impl Propagation {
    /// Returns the policy of a delete that names none: background, as `kubectl delete` does it. API servers orphan the
    /// dependents of `batch/v1` Jobs and of `ReplicationController`s by default.
    ///
    /// `None`, which leaves the policy to the API server, when the object has a finalizer of the garbage collector: a
    /// foreground deletion under way would otherwise turn into a background one.
    pub(crate) fn by_default(finalizers: &[String]) -> Option<Self> {
        let has_policy = finalizers.iter().any(|finalizer| OF_COLLECTOR.contains(&finalizer.as_str()));
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
