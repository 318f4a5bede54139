//! The options of deletes, and the finalizers of the server and of the garbage collector.

/// The effect of a delete on dependents (`metav1.DeletionPropagation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// What the finalizers of the object say, or else its kind.
    Default,
    Background,
    Foreground,
    Orphan,
    /// What `orphanDependents: false` means: in the background, but for a namespace in the foreground.
    NoOrphans,
}

impl Propagation {
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
    /// What the object says.
    Default,
    Seconds(i64),
}

/// Finalizers by which the garbage collector holds an object until its dependents are dealt with.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
pub(crate) const ORPHAN: &str = "orphan";

/// Finalizer that holds a `CustomResourceDefinition` until its objects are gone.
pub(crate) const CUSTOM_RESOURCE_CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
