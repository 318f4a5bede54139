//! Faults of reads that the store performs: an older state, and the bookmarks of a watch.

use std::time::Duration;

/// An earlier state of a resource, which a read gets instead of the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleState {
    /// The state at a revision.
    Revision(u64),
    /// The state before this many changes of the requested resource; the oldest known state if there were fewer.
    Changes(usize),
}

/// The older state that a read gets instead of the newest one, as from a server whose cache is behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale {
    pub(crate) past: StaleState,
    /// The time that a watch is behind.
    pub(crate) lag: Duration,
    /// `true` if requests for the newest state get the older one too, which a correct server never does.
    pub(crate) is_outdated: bool,
}

/// More bookmarks than usual, for a time after the start of a watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrequentBookmarks {
    pub(crate) every: Duration,
    pub(crate) lasts: Duration,
}
