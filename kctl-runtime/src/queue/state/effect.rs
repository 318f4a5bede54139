//! The effect of an event on the backoff of a key, and how own writes explain events.

/// Maximum number of versions that are remembered of the writes of one run, and of the events during it. An event
/// beyond the limit counts as the write of another client.
pub(crate) const OWN_WRITES_MAX: usize = 64;

/// The effect of an add on a key that failed. All other keys run in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BackoffEffect {
    /// The backoff continues: only a status changed, or an owned object. Most of these changes are the writes of the
    /// failing reconcile itself, which would make it run in a hot loop.
    Keep,
    /// The backoff ends and the failures are kept. A user, a mapper or a timer asks for the key, or something else than
    /// the primary's spec changed, on which the outcome may depend.
    End,
    /// The backoff ends and the failures are reset: they belong to another spec.
    Reset,
}

/// A version of an object: one that a run wrote, or one whose event added a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VersionEffect {
    /// The number of the version, from `own_writes.rs`.
    pub(crate) version: u64,
    /// The effect of the event. For a write, the greatest effect that the write itself can have.
    pub(crate) effect: BackoffEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEvent {
    /// The version of the changed object, with the effect on the key.
    pub(crate) change: VersionEffect,
    /// The effect that a write needs to explain the change. A write of that version with a lesser one leaves open that
    /// another client has changed the object as well.
    pub(crate) min_write_effect: BackoffEffect,
}

impl KeyEvent {
    pub(super) fn is_explained_by(self, writes: &[VersionEffect]) -> bool {
        writes.iter().any(|write| write.version == self.change.version && self.min_write_effect <= write.effect)
    }
}
