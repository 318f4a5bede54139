//! The Leases of a program as this replica has seen them, and when they expire by its own clock.
//!
//! Clocks of two machines differ, so the times in a Lease are never compared with the local clock. A record counts as
//! valid for its duration from the moment at which this replica saw it change (client-go, `isLeaseValid`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use crate::manager::lease::Record;

/// A record, and the local time at which it was first seen.
pub(super) type ObservedRecord = (Record, Instant);

/// Holder of a Lease that was missing when this replica started.
const UNKNOWN: &str = "(unknown: the Lease is missing)";

/// Holder of a Lease from which a person had removed the holder when this replica started.
const REMOVED: &str = "(unknown: the Lease has no holder)";

/// The note of a replica at its seat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeatNote {
    /// The live seats as the replica sees them. Empty if it asks for no slot.
    pub(super) live: Vec<u32>,
    /// `false` if the replica asks for no slot, or before its controllers can work on all of them.
    pub(super) has_complete_caches: bool,
}

/// All Leases that were seen, by name. Pure: the time is an argument.
#[derive(Debug, Default)]
pub(super) struct ObservedLeases {
    /// Invariant: the time of a record is not before the time of the record that it replaced, so a renewal extends a
    /// Lease.
    records: BTreeMap<String, ObservedRecord>,
    /// The last valid record of each Lease that was replaced without a release, by another holder, none, or a shorter duration, and
    /// when that was.
    replaced: BTreeMap<String, ObservedRecord>,
    /// The Leases that do not exist any longer. Their records count from the deletion.
    deleted: BTreeSet<String>,
    /// The notes of the holders of seats, by the name of the seat's Lease.
    notes: BTreeMap<String, SeatNote>,
    n_notes: u64,
}

impl ObservedLeases {
    /// Notes the present record of a Lease. One that is unchanged keeps the time of its last change.
    ///
    /// Returns `false` if only the time until which a Lease is held has changed, to a later one. Nearly all events are such
    /// renewals: N slots have N / 2 per second, and no replica has to decide anything then.
    pub(super) fn observe(&mut self, name: &str, record: Record, now: Instant) -> bool {
        self.deleted.remove(name);
        let Some(known) = self.records.get_mut(name) else {
            self.records.insert(name.into(), (record, now));
            return true;
        };
        if known.0 == record {
            return false;
        }
        debug_assert!(known.1 <= now, "records are observed in the order of time");
        let (is_held, is_valid) = (!record.holder().is_empty(), expiry(known) > now);
        let has_same_holder = known.0.holder() == record.holder();
        let is_renewal = is_held && is_valid && has_same_holder && known.0.duration() == record.duration();
        let is_released = record.is_release_of(&known.0);
        let is_shortened = record.duration() < known.0.duration() && !record.is_renewal_of(&known.0);
        let ends_early = !has_same_holder || is_shortened;
        // The holder has restored the Lease after an edit.
        if self.replaced.get(name).is_some_and(|(replaced, _)| record.is_renewal_of(replaced)) {
            self.replaced.remove(name);
        }
        let (before, _) = std::mem::replace(known, (record, now));
        if is_released {
            self.replaced.remove(name);
        } else if is_valid && ends_early && !before.holder().is_empty() {
            self.replaced.insert(name.into(), (before, now));
        }
        !is_renewal
    }

    /// Returns the record that a candidate with this identity uses to evaluate a Lease, and since when. It is the
    /// [record](Self::record_at_work) of a former holder that may be at work if there is one, or else the last record.
    pub(super) fn last_for_candidate(&self, name: &str, identity: &str, now: Instant) -> Option<&ObservedRecord> {
        self.record_at_work(name, identity, now).or_else(|| self.records.get(name))
    }

    /// Returns the record of a former holder that has not released the Lease and may be at work. The last record took its
    /// place, and names the candidate with this identity or no holder, or ends earlier.
    ///
    /// The API server was restored from a backup, or a person has edited the Lease. The holder works until it notices
    /// that. A candidate has not written the Lease, or it would hold it.
    pub(super) fn record_at_work(&self, name: &str, identity: &str, now: Instant) -> Option<&ObservedRecord> {
        let last = self.records.get(name)?;
        let names_no_other = last.0.holder() == identity || last.0.holder().is_empty();
        let is_at_work =
            |replaced: &&ObservedRecord| expiry(replaced) > now && (names_no_other || expiry(last) < expiry(replaced));
        self.replaced.get(name).filter(is_at_work)
    }

    /// Records the note of the holder of a seat, `None` if it has none. Returns `true` if it has changed.
    pub(super) fn observe_note(&mut self, name: &str, note: Option<SeatNote>) -> bool {
        if self.notes.get(name) == note.as_ref() {
            return false;
        }
        self.n_notes += 1;
        match note {
            Some(note) => drop(self.notes.insert(name.into(), note)),
            None => drop(self.notes.remove(name)),
        }
        true
    }

    /// Returns the note of the holder of a seat.
    pub(super) fn note(&self, name: &str) -> Option<&SeatNote> {
        self.notes.get(name)
    }

    /// Returns how often a note has changed.
    pub(super) fn n_notes(&self) -> u64 {
        self.n_notes
    }

    /// Notes that a Lease was deleted. Its holder may still work, so the record counts for its duration from now.
    pub(super) fn observe_delete(&mut self, name: &str, now: Instant) {
        if let Some((_, at)) = self.records.get_mut(name) {
            debug_assert!(*at <= now, "a deletion is observed after the record, so it does not end the Lease early");
            *at = now;
            self.deleted.insert(name.into());
        }
    }

    /// Notes that a Lease may have a holder which this replica has not seen. If it is missing, it counts as held from `at` for
    /// the longest duration of any Lease, at least `duration`.
    ///
    /// A person may have edited a Lease before it was seen. One without a holder that was not released, or with a shorter
    /// duration, may have a holder at work for `duration`. Other Leases keep their records.
    pub(super) fn assume_held(&mut self, name: &str, duration: Duration, at: Instant) {
        let longest = self.records.values().map(|(record, _)| record.duration()).fold(duration, Duration::max);
        let Some((record, _)) = self.records.get(name) else {
            self.records.insert(name.into(), (unknown_holder(longest), at));
            return;
        };
        if !record.is_release() && (record.holder().is_empty() || record.duration() < duration) {
            let holder = Some(record.holder()).filter(|holder| !holder.is_empty()).unwrap_or(REMOVED);
            let at_work = Record {
                holder_identity: Some(holder.into()),
                lease_duration_seconds: Some(duration.as_secs()),
                ..record.clone()
            };
            self.replaced.entry(name.into()).or_insert((at_work, at));
        }
    }

    /// Returns `true` for a Lease that was deleted, and for one that is assumed to be held and was never seen.
    pub(super) fn is_missing(&self, name: &str) -> bool {
        self.deleted.contains(name) || self.is_assumed_held(name)
    }

    /// Returns `true` for a Lease that has never been seen, but is [assumed to be held](Self::assume_held).
    pub(super) fn is_assumed_held(&self, name: &str) -> bool {
        self.records.get(name).is_some_and(|(record, _)| record.holder() == UNKNOWN)
    }

    /// Returns the last record of a Lease with the time of its change.
    pub(super) fn last(&self, name: &str) -> Option<&ObservedRecord> {
        self.records.get(name)
    }

    /// Returns the holder of a Lease, `None` if it is free, expired or unknown.
    pub(super) fn holder(&self, name: &str, now: Instant) -> Option<&str> {
        let (record, _) = self.records.get(name).filter(|sighting| expiry(sighting) > now)?;
        Some(record.holder()).filter(|holder| !holder.is_empty())
    }

    /// Returns the record of a Lease that has a holder and has expired, and when it did.
    pub(super) fn expired_record(&self, name: &str, now: Instant) -> Option<(&Record, Instant)> {
        let sighting = self.records.get(name).filter(|(record, _)| !record.holder().is_empty())?;
        Some((&sighting.0, expiry(sighting))).filter(|(_, expiry)| *expiry <= now)
    }

    /// Returns the time at which the next held Lease expires unless it is renewed.
    pub(super) fn next_expiry(&self, now: Instant) -> Option<Instant> {
        let held = self.records.values().filter(|(record, _)| !record.holder().is_empty());
        held.map(expiry).filter(|expiry| *expiry > now).min()
    }
}

/// Returns the record of a Lease whose holder is not known, and may be at work for this time.
pub(super) fn unknown_holder(duration: Duration) -> Record {
    let (holder, seconds) = (Some(UNKNOWN.into()), Some(duration.as_secs()));
    Record { holder_identity: holder, lease_duration_seconds: seconds, ..Record::default() }
}

fn expiry((record, at): &ObservedRecord) -> Instant {
    *at + record.duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(by: &str, renewed: &str) -> Record {
        Record {
            holder_identity: Some(by.into()),
            lease_duration_seconds: Some(15),
            renew_time: Some(renewed.into()),
            ..Record::default()
        }
    }

    fn released(at: &str) -> Record {
        let (seconds, time) = (Some(1), Some(at.to_owned()));
        Record { lease_duration_seconds: seconds, acquire_time: time.clone(), ..held("", at) }
    }

    #[test]
    fn lease_expires_one_duration_after_last_observed_change() {
        let (mut seen, start) = (ObservedLeases::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        // The holder's clock is an hour ahead, which makes no difference.
        seen.observe("slot", held("a", "2026-01-01T01:00:00Z"), start);
        seen.observe("slot", held("a", "2026-01-01T01:00:00Z"), at(10));
        assert_eq!((seen.holder("slot", at(14)), seen.holder("slot", at(15))), (Some("a"), None));
        assert_eq!(seen.expired_record("slot", at(14)), None);
        assert_eq!(
            seen.expired_record("slot", at(16)).map(|(record, since)| (record.holder(), since)),
            Some(("a", at(15)))
        );
        assert_eq!((seen.next_expiry(at(10)), seen.next_expiry(at(15))), (Some(at(15)), None));
        seen.observe("slot", held("a", "2026-01-01T01:00:12Z"), at(12));
        assert_eq!((seen.holder("slot", at(26)), seen.holder("slot", at(27))), (Some("a"), None));
    }

    #[test]
    fn renewal_of_valid_lease_is_not_a_change() {
        let (mut seen, start) = (ObservedLeases::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let longer = |renewed: &str| Record { lease_duration_seconds: Some(30), ..held("a", renewed) };
        for (record, seconds, is_change, why) in [
            (held("a", "1"), 0, true, "it is new"),
            (held("a", "2"), 2, false, "a renewal"),
            (held("a", "2"), 3, false, "the same record"),
            (held("a", "3"), 17, true, "it had expired"),
            (held("b", "4"), 18, true, "another holder"),
            (longer("5"), 19, true, "another holder, for a longer time"),
            (held("a", "6"), 20, true, "it expires earlier"),
            (held("", "7"), 21, true, "it is released"),
            (held("", "8"), 22, true, "it is free"),
            (held("a", "9"), 23, true, "it is taken"),
        ] {
            assert_eq!(seen.observe("slot", record, at(seconds)), is_change, "{why}");
        }
        let note = |live: &[u32]| Some(SeatNote { live: live.to_vec(), has_complete_caches: true });
        for (note, is_change) in
            [(None, false), (note(&[0]), true), (note(&[0]), false), (note(&[0, 1]), true), (None, true)]
        {
            assert_eq!(seen.observe_note("seat", note), is_change);
        }
    }

    #[test]
    fn released_lease_is_free_but_deleted_remains_held() {
        let (mut seen, start) = (ObservedLeases::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        seen.observe("released", held("a", "1"), start);
        seen.observe("released", released("2"), at(1));
        assert_eq!((seen.holder("released", at(1)), seen.expired_record("released", at(60))), (None, None));
        seen.observe("deleted", held("a", "1"), start);
        seen.observe_delete("deleted", at(10));
        assert_eq!((seen.holder("deleted", at(24)), seen.holder("deleted", at(25))), (Some("a"), None));
        assert!(seen.is_missing("deleted") && !seen.is_missing("released"));
        seen.observe("deleted", held("b", "11"), at(26));
        assert!(!seen.is_missing("deleted"));
        assert_eq!(seen.holder("unknown", start), None);
    }

    #[test]
    fn own_record_of_backup_ends_no_holder() {
        let (mut seen, start) = (ObservedLeases::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for name in ["held", "released", "expired"] {
            seen.observe(name, held("b", "5"), start);
        }
        seen.observe("released", released("6"), at(1));
        for name in ["held", "released"] {
            seen.observe(name, held("a", "1"), at(2));
        }
        seen.observe("expired", held("a", "1"), at(15));
        let holder = |name: &str, identity: &str, seconds| {
            let record = seen.last_for_candidate(name, identity, at(seconds));
            record.map(|(record, since)| (record.holder().to_owned(), *since))
        };
        assert_eq!(holder("held", "a", 16), Some(("b".into(), at(2))), "it may have renewed the Lease just before");
        assert_eq!(holder("held", "a", 17), Some(("a".into(), at(2))));
        assert_eq!(holder("held", "c", 16), Some(("a".into(), at(2))));
        assert_eq!(holder("released", "a", 3), Some(("a".into(), at(2))));
        assert_eq!(holder("expired", "a", 16), Some(("a".into(), at(15))));
        assert_eq!(holder("unknown", "a", 16), None);
    }

    /// The holder notices the edit at its next renewal.
    #[test]
    fn edited_lease_counts_for_its_duration() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let shorter = Record { lease_duration_seconds: Some(1), ..held("b", "5") };
        for (edited, why) in [(held("", "5"), "no holder"), (shorter, "shorter"), (Record::default(), "empty")] {
            let mut seen = ObservedLeases::default();
            seen.observe("slot", held("b", "5"), start);
            seen.observe("slot", edited.clone(), at(1));
            let (record, since) = seen.last_for_candidate("slot", "a", at(15)).unwrap();
            assert_eq!((record.holder(), *since), ("b", at(1)), "{why}");
            assert_eq!(seen.last_for_candidate("slot", "a", at(16)), Some(&(edited, at(1))), "{why}");
            seen.observe("slot", released("6"), at(2));
            let (record, _since) = seen.last_for_candidate("slot", "a", at(3)).unwrap();
            assert_eq!(record.holder(), "", "{why}, then released");
            seen.observe("slot", held("b", "7"), at(4));
            assert_eq!(
                seen.last_for_candidate("slot", "a", at(5)),
                Some(&(held("b", "7"), at(4))),
                "{why}, then taken"
            );
        }
    }

    #[test]
    fn lengthened_lease_counts_as_renewed_by_its_holder() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let longer = Record { lease_duration_seconds: Some(100_000), ..held("b", "5") };
        // The second edit ends the Lease early, until its holder writes it.
        for edits in [&[longer.clone()][..], &[longer, held("b", "5")]] {
            let mut seen = ObservedLeases::default();
            seen.observe("slot", held("b", "5"), start);
            for edit in edits {
                seen.observe("slot", edit.clone(), at(1));
            }
            seen.observe("slot", held("b", "7"), at(2));
            assert_eq!(seen.last_for_candidate("slot", "a", at(3)), Some(&(held("b", "7"), at(2))), "{edits:?}");
        }
    }

    #[test]
    fn lease_edited_before_start_may_have_holder() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let shorter = Record { lease_duration_seconds: Some(1), ..held("b", "5") };
        for (first, at_work) in [
            (held("", "5"), Some(REMOVED)),
            (Record::default(), Some(REMOVED)),
            (shorter, Some("b")),
            (held("b", "5"), None),
            (released("5"), None),
        ] {
            let mut seen = ObservedLeases::default();
            seen.observe("slot", first.clone(), start);
            seen.assume_held("slot", Duration::from_secs(15), at(1));
            let holder = |time| seen.record_at_work("slot", "a", at(time)).map(|(record, _)| record.holder());
            assert_eq!((holder(15), holder(16)), (at_work, None), "{first:?}");
        }
    }

    #[test]
    fn missing_lease_is_held_for_longest_known_duration() {
        let (mut seen, start) = (ObservedLeases::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        seen.observe("other", Record { lease_duration_seconds: Some(30), ..held("a", "1") }, start);
        for name in ["other", "missing"] {
            seen.assume_held(name, Duration::from_secs(15), start);
        }
        assert_eq!((seen.holder("other", at(29)), seen.is_assumed_held("other")), (Some("a"), false));
        assert!(seen.is_assumed_held("missing") && seen.holder("missing", at(29)).is_some());
        assert_eq!(seen.holder("missing", at(30)), None);
        seen.observe("missing", held("b", "1"), at(40));
        assert_eq!((seen.holder("missing", at(41)), seen.is_assumed_held("missing")), (Some("b"), false));
    }
}
