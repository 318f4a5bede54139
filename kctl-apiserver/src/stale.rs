//! Reads of an older state, which faults cause and the store answers.

use std::time::Duration;

/// An earlier state of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// The state at a revision.
    Revision(u64),
    /// The state before this many changes of the requested resource; the oldest known state if there were fewer.
    Changes(usize),
}

/// The older state that a read gets instead of the newest one, from a server that is behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale {
    pub(crate) past: Past,
    pub(crate) lag: Duration,
    /// Also to whoever asks for the newest state.
    pub(crate) misleads: bool,
}
