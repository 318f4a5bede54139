//! Deletion options, and the finalizers of the server and of the garbage collector.

/// The effect of a delete on dependents (`metav1.DeletionPropagation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// The default of the object: its finalizers decide, or else its kind.
    Default,
    /// The object is removed at once, and the garbage collector deletes its dependents afterwards.
    Background,
    /// The object is marked, and stays until its dependents are gone.
    Foreground,
    /// The dependents stay, and lose their owner reference.
    Orphan,
    /// `orphanDependents: false`: background deletion, but foreground deletion of a Namespace.
    NoOrphans,
}

impl Propagation {
    /// Returns the propagation of the deprecated option `orphanDependents`.
    pub(crate) fn of_orphans(orphans: bool) -> Self {
        if orphans { Self::Orphan } else { Self::NoOrphans }
    }

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

/// The finalizer with which the garbage collector deletes dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer with which the garbage collector removes itself from the dependents' owner references.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer that holds a CRD until its objects are gone.
pub(crate) const CUSTOM_RESOURCE_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
