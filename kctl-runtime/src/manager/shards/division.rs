//! Calculates the slots that one replica should hold, from the live seats that it sees and those that the others see.
//!
//! Replicas may disagree about the live seats for a Lease duration. A replica that starts after a crash cannot know
//! when the crashed one last renewed its seat. So each replica records the live seats that it sees at its own seat. The
//! others calculate from that record which slots it asks for. A slot is released only for a replica that asks for it. A
//! slot without an owner is taken by any replica if no replica asks for it, or if the one that asks does not take it.
//!
//! A replica with incomplete caches asks for no slot while another replica can work on all of them.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::assignment::preferred_seats;

/// Time for which a slot that no replica asks for has no owner. The notes of live seats arrive during that time.
const UNREQUESTED_SLOT_DELAY: Duration = Duration::from_secs(1);
/// Retry periods for which a slot that another replica asks for has no owner.
const PERIODS_TO_TAKE: u32 = 2;
/// Lease durations for which a slot is kept at most, after its preferred owner repeatedly did not take it.
const KEEP_FACTOR_MAX: u32 = 16;

/// The seats as one replica sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seats {
    /// The seat of this replica. Invariant: it is one of `live`.
    pub(super) own: Option<u32>,
    /// All seats that count as held, including the one of this replica.
    pub(super) live: Vec<u32>,
    /// The live seats as their holders see them. A holder that is missing here agrees with this replica.
    pub(super) noted: BTreeMap<u32, Vec<u32>>,
    /// Counts the changes of notes: another number means that a note has changed.
    pub(super) n_notes: u64,
    /// `false` while this replica asks for no slot. It takes only those that no other replica wants.
    pub(super) asks: bool,
    /// `true` if another replica asks for slots and its caches are complete.
    pub(super) has_complete_peer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotHolder {
    /// This replica owns the slot.
    ThisReplica,
    /// Another replica does.
    Other,
    /// The Lease is free or expired.
    Free,
}

/// The division of the slots, as far as this replica can see it. Pure: the time is an argument.
#[derive(Debug)]
pub(super) struct Division {
    n_slots: u32,
    /// The retry period of the Leases.
    period: Duration,
    /// Time for which a slot is kept that another replica asked for and did not take, the first time.
    keep: Duration,
    seats: Seats,
    /// The preferred owner of each slot; empty without a live seat.
    owners: Vec<u32>,
    /// `true` for slots that their preferred owner asks for. Invariant: `by_any` is `true` for them, too.
    by_preferred: Vec<bool>,
    /// `true` for slots that a replica asks for, preferred by this one or not.
    by_any: Vec<bool>,
    /// Slots without an owner that another replica should own, and since when.
    free_since: BTreeMap<u32, Instant>,
    /// Slots that this replica keeps, or has kept, although another replica asks for them.
    kept: BTreeMap<u32, Kept>,
}

/// A slot that a replica asked for and did not take, so this replica took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kept {
    /// The preferred owner, which is offered the slot again at [`until`](Self::until).
    owner: Option<u32>,
    until: Instant,
    /// How long the slot is kept: it doubles up to [`KEEP_FACTOR_MAX`] times the first period, because each offer moves
    /// the slot twice.
    period: Duration,
}

impl Division {
    /// Creates a division without seats. `period` and `lease` are times of the Leases.
    pub(super) fn new(n_slots: u32, period: Duration, lease: Duration) -> Self {
        Self {
            n_slots,
            period,
            keep: lease,
            seats: Seats::default(),
            owners: Vec::new(),
            by_preferred: Vec::new(),
            by_any: Vec::new(),
            free_since: BTreeMap::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Returns the seats that it was calculated from.
    pub(super) fn seats(&self) -> &Seats {
        &self.seats
    }

    /// Calculates the division by other seats.
    pub(super) fn divide(&mut self, seats: Seats) {
        debug_assert!(seats.own.is_none_or(|own| seats.live.contains(&own)), "a replica counts its own seat as live");
        self.seats = seats;
        let (n, seats) = (self.n_slots as usize, &self.seats);
        self.owners = preferred_seats(self.n_slots, &seats.live);
        (self.by_preferred, self.by_any) = (vec![false; n], vec![false; n]);
        // Usually all replicas see the same live seats, so the assignment is calculated once per distinct view.
        let mut by_view: BTreeMap<&[u32], Vec<u32>> = BTreeMap::new();
        let asking = seats.live.iter().filter(|seat| seats.asks || seats.own != Some(**seat));
        for seat in asking {
            let noted = seats.noted.get(seat).filter(|_| seats.own != Some(*seat));
            let owners = match noted {
                Some(noted) if *noted != seats.live => {
                    by_view.entry(noted).or_insert_with(|| preferred_seats(self.n_slots, noted))
                }
                _ => &self.owners,
            };
            for slot in (0..n).filter(|slot| owners.get(*slot) == Some(seat)) {
                self.by_any[slot] = true;
                self.by_preferred[slot] |= self.owners[slot] == *seat;
            }
        }
        let is_asked_for = |(preferred, any): (&bool, &bool)| *any || !preferred;
        debug_assert!(
            self.by_preferred.iter().zip(&self.by_any).all(is_asked_for),
            "the preferred owner is one of any"
        );
    }

    /// Returns `true` if this replica should hold a slot, or try to.
    pub(super) fn wants(&mut self, slot: u32, holder: SlotHolder, now: Instant) -> bool {
        debug_assert!(slot < self.n_slots, "all replicas of one division have the same slots");
        let index = slot as usize;
        let is_preferred = self.seats.own.is_some() && self.owners.get(index).copied() == self.seats.own;
        let is_own = is_preferred && self.seats.asks;
        if is_own || holder != SlotHolder::Free {
            self.free_since.remove(&slot);
        }
        if is_own {
            self.kept.remove(&slot);
            return true;
        }
        match holder {
            SlotHolder::Other => false,
            SlotHolder::ThisReplica => {
                let owner = self.owners.get(index).copied();
                let is_kept = self.kept.get(&slot).is_some_and(|kept| kept.owner == owner && kept.until > now);
                is_kept || !self.by_preferred.get(index).copied().unwrap_or_default()
            }
            SlotHolder::Free if self.seats.own.is_none() => false,
            SlotHolder::Free => {
                let since = *self.free_since.entry(slot).or_insert(now);
                let is_over = now >= since + self.takeover_delay(index);
                if is_over && self.by_any[index] {
                    self.keep(slot, now);
                }
                is_over
            }
        }
    }

    /// Keeps a slot that its preferred owner did not take. Each time that the same owner does not take it, it is kept for
    /// twice as long.
    fn keep(&mut self, slot: u32, now: Instant) {
        let owner = self.owners.get(slot as usize).copied();
        let (first, longest) = (self.keep, self.keep * KEEP_FACTOR_MAX);
        let is_recent = |kept: &&Kept| kept.owner == owner && now < kept.until + longest;
        let period = match self.kept.get(&slot).filter(is_recent) {
            // The Lease of this offer is not acquired yet.
            Some(kept) if kept.until > now => kept.period,
            Some(kept) => (kept.period * 2).min(longest),
            None => first,
        };
        self.kept.insert(slot, Kept { owner, until: now + period, period });
    }

    /// Returns how long a slot has no owner before any replica takes it. A replica that asks for none takes it last:
    /// others could work on it.
    fn takeover_delay(&self, index: usize) -> Duration {
        if !self.seats.asks {
            return self.keep;
        }
        if self.by_any[index] { self.period * PERIODS_TO_TAKE } else { UNREQUESTED_SLOT_DELAY }
    }

    /// Returns the next time at which [`wants`](Self::wants) changes its result without a new observation.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        let free = self.free_since.iter().map(|(slot, since)| *since + self.takeover_delay(*slot as usize));
        free.chain(self.kept.values().map(|kept| kept.until)).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(2);
    const LEASE: Duration = Duration::from_secs(15);

    fn division(own: Option<u32>, live: &[u32], noted: &[(u32, &[u32])]) -> Division {
        let noted = noted.iter().map(|(seat, live)| (*seat, live.to_vec())).collect();
        let mut division = Division::new(16, PERIOD, LEASE);
        division.divide(Seats { own, live: live.to_vec(), noted, asks: true, ..Seats::default() });
        division
    }

    /// Returns the slots that a replica wants if this is the holder of each.
    fn wanted(division: &mut Division, holder: SlotHolder, now: Instant) -> Vec<u32> {
        (0..16).filter(|slot| division.wants(*slot, holder, now)).collect()
    }

    fn preferred_by(seat: u32, live: &[u32]) -> Vec<u32> {
        let owners = preferred_seats(16, live);
        (0..16).filter(|slot| owners[*slot as usize] == seat).collect()
    }

    #[test]
    fn owner_releases_only_slots_its_successor_requests() {
        let now = Instant::now();
        let agreed = [0, 1];
        let mut division = division(Some(0), &agreed, &[(1, &[0, 1, 2])]);
        let kept = wanted(&mut division, SlotHolder::ThisReplica, now);
        let requested: Vec<u32> =
            preferred_by(1, &[0, 1, 2]).into_iter().filter(|slot| preferred_by(1, &agreed).contains(slot)).collect();
        assert!(!requested.is_empty() && requested.len() < preferred_by(1, &agreed).len());
        assert_eq!(kept, (0..16).filter(|slot| !requested.contains(slot)).collect::<Vec<_>>());
        assert_eq!(
            wanted(&mut division, SlotHolder::Other, now),
            preferred_by(0, &agreed),
            "it takes nothing from others"
        );
    }

    #[test]
    fn unrequested_free_slot_is_taken_after_one_second() {
        let start = Instant::now();
        // The other replica still counts the seat of a crashed one.
        let mut division = division(Some(0), &[0, 1], &[(1, &[0, 1, 2])]);
        let own = preferred_by(0, &[0, 1]);
        assert_eq!(wanted(&mut division, SlotHolder::Free, start), own);
        assert_eq!(division.next_change(start), Some(start + UNREQUESTED_SLOT_DELAY));
        let others = preferred_by(1, &[0, 1, 2]);
        let expected: Vec<u32> = (0..16).filter(|slot| own.contains(slot) || !others.contains(slot)).collect();
        assert_eq!(wanted(&mut division, SlotHolder::Free, start + UNREQUESTED_SLOT_DELAY), expected);
    }

    #[test]
    fn requested_slot_that_is_not_taken_is_kept() {
        let start = Instant::now();
        let mut division = division(Some(0), &[0, 1], &[]);
        let own = preferred_by(0, &[0, 1]);
        assert_eq!(wanted(&mut division, SlotHolder::Free, start), own);
        let taken_at = start + 2 * PERIOD;
        assert_eq!(wanted(&mut division, SlotHolder::Free, taken_at - Duration::from_millis(1)), own);
        assert_eq!(wanted(&mut division, SlotHolder::Free, taken_at).len(), 16);
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, taken_at + LEASE - PERIOD).len(), 16);
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, taken_at + LEASE), own, "it is offered again");
    }

    #[test]
    fn slot_is_offered_ever_less_to_same_seat() {
        let mut now = Instant::now();
        let mut division = division(Some(0), &[0, 1], &[]);
        // Seat 2 has the slot once it has taken the place of seat 1.
        let of_next = preferred_by(2, &[0, 2]);
        let slot = preferred_by(1, &[0, 1]).into_iter().find(|slot| of_next.contains(slot)).unwrap();
        let take = |division: &mut Division, now: &mut Instant| {
            assert!(!division.wants(slot, SlotHolder::Free, *now));
            *now += PERIODS_TO_TAKE * PERIOD;
            assert!(division.wants(slot, SlotHolder::Free, *now));
            assert!(division.wants(slot, SlotHolder::Free, *now), "the same offer");
        };
        let mut kept = Vec::new();
        for _ in 0..7 {
            take(&mut division, &mut now);
            let since = now;
            while division.wants(slot, SlotHolder::ThisReplica, now) {
                now += PERIOD / 2;
            }
            kept.push((now - since).as_secs());
        }
        assert_eq!(kept, [15, 30, 60, 120, 240, 240, 240]);
        take(&mut division, &mut now);
        assert!(division.wants(slot, SlotHolder::ThisReplica, now));
        division.divide(Seats { own: Some(0), live: vec![0, 2], asks: true, ..Seats::default() });
        assert!(!division.wants(slot, SlotHolder::ThisReplica, now), "another seat is offered the slot at once");
    }

    #[test]
    fn replica_that_requests_no_slots_takes_them_last() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut division = division(Some(0), &[0, 1], &[]);
        division.divide(Seats { own: Some(0), live: vec![0, 1], ..Seats::default() });
        assert_eq!(wanted(&mut division, SlotHolder::Free, start), [0; 0], "the other replica can work on them");
        assert_eq!(wanted(&mut division, SlotHolder::Free, start + LEASE - second), [0; 0]);
        assert_eq!(wanted(&mut division, SlotHolder::Free, start + LEASE).len(), 16);
        let own = preferred_by(0, &[0, 1]);
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, start + 2 * LEASE), own, "no replica asks for these");
        // The other replica sees its empty note.
        let mut other = self::division(Some(1), &[0, 1], &[(0, &[])]);
        assert_eq!(wanted(&mut other, SlotHolder::ThisReplica, start).len(), 16, "it releases none");
        assert_eq!(wanted(&mut other, SlotHolder::Free, start), preferred_by(1, &[0, 1]));
        assert_eq!(wanted(&mut other, SlotHolder::Free, start + second).len(), 16);
    }

    #[test]
    fn seatless_replica_keeps_slots_until_requested() {
        let now = Instant::now();
        let mut division = division(None, &[1], &[(1, &[0, 1])]);
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, now), preferred_by(0, &[0, 1]));
        assert_eq!(wanted(&mut division, SlotHolder::Free, now + LEASE), [0; 0]);
        division.divide(Seats { live: vec![1], asks: true, ..Seats::default() });
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, now), [0; 0]);
        division.divide(Seats::default());
        assert_eq!(wanted(&mut division, SlotHolder::ThisReplica, now).len(), 16);
    }
}
