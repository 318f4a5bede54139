//! Bugs in the protocol, which tests of the simulator plant to show that it finds them. They need the feature `planted`.

/// A bug in the protocol of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Writes do not check the Lease of their slot.
    PermitGrants,
    /// A slot is released while its reconciles still run.
    HandOverAtOnce,
    /// Each replica uses another hash to divide the keys.
    AnotherHash,
    /// Each cache selects its objects by another hash than the queue and the write permit use.
    CacheHash,
    /// A cache ignores the list for gained slots if its watch is past it.
    OvertakenListIgnored,
    /// A watch that the API server limits to the slots of its request continues after slots have moved.
    WatchKept,
    /// The write permit reads the time from a value that a timer updates. It does not advance while the process is
    /// frozen, so the Lease does not seem to have expired when the process continues.
    FrozenClock,
    /// A replica whose Lease of a slot has expired continues to reconcile keys of that slot.
    LossIgnored,
}

impl Planted {
    /// Returns `true` if this bug is planted. Without the feature `planted` no bug is, and the compiler removes the code of
    /// all of them.
    pub(crate) fn is_in(self, planted: Option<Self>) -> bool {
        cfg!(feature = "planted") && planted == Some(self)
    }
}
