//! The record of the Lease that this process saw last, and when it expires.

use tokio::time::Instant;

use super::Effect;
use crate::manager::lease::Record;

/// The state of the [`Effect::Holder`] for the last record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Publication {
    #[default]
    Done,
    /// The record came from elsewhere and may be outdated, so a read has to confirm it first.
    Pending,
}

/// The Lease as this process last saw it.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The last record, and when this process saw it change.
    seen: Option<(Record, Instant)>,
    /// The last record that a watch of the Lease has shown, and when. It may be older or newer than the last read.
    watched: Option<(Record, Instant)>,
    /// `Pending` until the holder of `seen` is published.
    publication: Publication,
    /// `true` if the record of `seen` is one that this process wrote, and no other process has held the Lease since.
    /// Invariant: `false` before a record was seen.
    pub(super) is_own: bool,
    /// End of the Lease of another process whose record was replaced without a release: the process may be at work until then.
    /// Invariant: `None` while the Lease is this process's own.
    edited_until: Option<Instant>,
    /// `true` if the Lease did not exist at the last read.
    pub(super) is_gone: bool,
}

impl Observed {
    /// Sets the observation time to when this process saw this record change, instead of the first read.
    pub(super) fn assume(self, record: Record, observed_at: Instant, identity: &str) -> Self {
        let is_own = record.holder() == identity;
        Self { seen: Some((record, observed_at)), publication: Publication::Pending, is_own, ..self }
    }

    /// Sets the last record that a watch of the Lease has shown, and when.
    pub(super) fn set_watched(&mut self, watched: Option<(Record, Instant)>) {
        self.watched = watched;
    }

    /// Returns the last record.
    pub(super) fn record(&self) -> Option<&Record> {
        self.seen.as_ref().map(|(record, _)| record)
    }

    /// Notes that `record` was read, before it is [observed](Self::observe). Only its holder ends a Lease early, by a
    /// release.
    ///
    /// A person may remove the holder, or shorten the duration, and a backup may have an earlier release. The holder
    /// notices that at its next renewal, and works until then. client-go takes a Lease without a holder at once. If a person
    /// has lengthened the duration, that renewal shortens it again.
    pub(super) fn note_edit(&mut self, record: &Record, now: Instant) {
        let Some(last) = self.record().filter(|last| *last != record) else { return };
        if record.is_release_of(last) {
            self.edited_until = None;
            return;
        }
        let ends_early = record.holder().is_empty()
            || (record.duration() < last.duration() && !record.is_renewal_of(last))
            || self.is_replaced_by_earlier(record, now);
        if ends_early && !last.holder().is_empty() && self.is_held_by_other(now) {
            // It may have renewed the Lease just before.
            let end = self.observed_at(record, now) + last.duration();
            self.edited_until = self.edited_until.max(Some(end));
        }
    }

    /// Returns `true` if `record`, which was read, is from a backup, and the holder whose record it replaced may be at work.
    /// Only for a record that names this process.
    pub(super) fn is_from_backup(&self, record: &Record, now: Instant) -> bool {
        let is_known = !self.is_own && self.record().is_some_and(|last| last.holder() == record.holder());
        let waits = is_known && self.edited_until.is_some_and(|until| until > now);
        waits || self.is_replaced_by_earlier(record, now)
    }

    /// Returns `true` if `record` has another holder than the last one, which is valid, and was not acquired after it. Each
    /// acquisition counts a transition, except the first one of a Lease that was deleted.
    fn is_replaced_by_earlier(&self, record: &Record, now: Instant) -> bool {
        let last = self.record().filter(|last| last.holder() != record.holder() && !self.is_gone);
        self.is_held_by_other(now) && last.is_some_and(|last| record.lease_transitions <= last.lease_transitions)
    }

    /// Returns when this process saw a record that it reads now: when the watch of the Lease has shown it, if that was earlier.
    fn observed_at(&self, record: &Record, now: Instant) -> Instant {
        let watched = self.watched.as_ref().filter(|(watched, _)| watched == record);
        watched.map_or(now, |(_, watched_at)| now.min(*watched_at))
    }

    /// Records a record if it changed. Only the local time of the change counts; the times in it come from another
    /// clock.
    pub(super) fn observe(&mut self, record: Record, now: Instant, effects: &mut Vec<Effect>) {
        if self.is_own {
            // If this Lease is emptied as well, this process restores it at once, and not at the end of an earlier term.
            self.edited_until = None;
        }
        let observed_at = self.observed_at(&record, now);
        if let Some((_, seen_at)) = self.seen.as_mut().filter(|(previous, _)| *previous == record) {
            *seen_at = observed_at.min(*seen_at);
            return;
        }
        if self.record().map(Record::holder) != Some(record.holder()) {
            self.publication = Publication::Done;
            effects.push(Effect::Holder(record.holder().into()));
        }
        self.seen = Some((record, observed_at));
    }

    /// Returns the holder to publish after a read has confirmed an assumed record. A process that chose this Lease
    /// because it seemed free has to learn that its holder lives.
    pub(super) fn confirm_holder(&mut self) -> Option<Effect> {
        let is_pending = std::mem::replace(&mut self.publication, Publication::Done) == Publication::Pending;
        is_pending.then(|| Effect::Holder(self.record().map_or("", Record::holder).into()))
    }

    /// Records that a read found no Lease. The first such read restarts the lease duration.
    pub(super) fn record_deletion(&mut self, now: Instant) {
        if let Some((_, observed_at)) = self.seen.as_mut().filter(|_| !self.is_gone) {
            *observed_at = now;
        }
        self.is_gone = true;
    }

    /// Returns `true` if another process may still lead after the Lease was deleted.
    ///
    /// At the first read without the Lease, a record that has expired says nothing: its holder may have renewed it after
    /// the last read.
    pub(super) fn is_deleted_while_held(&self, now: Instant) -> bool {
        let had_holder = !self.is_own && self.record().is_some_and(|last| !last.holder().is_empty());
        (had_holder && !self.is_gone) || self.is_held_by_other(now)
    }

    /// Returns `true` if another process held the Lease and it has not expired since (`isLeaseValid`).
    pub(super) fn is_held_by_other(&self, now: Instant) -> bool {
        self.expiry_of_other().is_some_and(|expiry| expiry > now)
    }

    /// Returns when the Lease of another process expires or has expired, `None` without such a holder.
    pub(super) fn expiry_of_other(&self) -> Option<Instant> {
        if self.is_own {
            return None;
        }
        let held = self.seen.as_ref().filter(|(record, _)| !record.holder().is_empty());
        held.map(|(record, observed_at)| *observed_at + record.duration()).max(self.edited_until)
    }

    /// Checks the invariants of the fields between two inputs.
    pub(super) fn check(&self) {
        debug_assert!(!self.is_own || self.seen.is_some(), "a record that was written was seen");
        debug_assert!(!self.is_own || self.edited_until.is_none(), "a holder does not wait for an earlier one");
        let is_pending = self.publication == Publication::Pending;
        debug_assert!(!is_pending || self.seen.is_some(), "a holder to publish has a record");
    }
}
