//! Calculates which seat should own each slot: highest random weight with bounded loads. All replicas get the same
//! result without communicating.
//!
//! The result is only a preference. A replica owns a slot while it holds the slot's Lease.
//!
//! By weight alone, three replicas would get 1, 9 and 6 of 16 slots. So each seat gets its share, rounded down, and as many
//! seats as slots are left over get one more: 5, 6 and 5. The price is that a few more slots move when a seat joins or leaves.

use std::cmp::Reverse;

use crate::shard::splitmix64;

/// Returns the live seat that should own each slot; empty without live seats.
///
/// Pairs of slots and seats are taken in the order of their weights. A seat that has its share gets no more, except for the
/// first ones that get one of the slots that are left over.
///
/// Each change of the result increases [`DIVISION`](crate::shard::DIVISION): replicas that disagree would ask each other for
/// slots indefinitely.
pub(super) fn preferred_seats(n_slots: u32, live: &[u32]) -> Vec<u32> {
    if live.is_empty() {
        return Vec::new();
    }
    let (share, mut n_left_over) = (n_slots as usize / live.len(), n_slots as usize % live.len());
    let pairs = (0..n_slots).flat_map(|slot| (0..live.len()).map(move |index| (slot, index)));
    let mut pairs: Vec<_> = pairs.map(|(slot, index)| (weight(slot, live[index]), slot, index)).collect();
    pairs.sort_unstable_by_key(|(weight, slot, index)| Reverse((*weight, *slot, live[*index])));
    let (mut owners, mut loads) = (vec![None; n_slots as usize], vec![0; live.len()]);
    for (_, slot, index) in pairs {
        let (owner, load) = (&mut owners[slot as usize], &mut loads[index]);
        let gets_more = *load == share && n_left_over > 0;
        if owner.is_some() || (*load >= share && !gets_more) {
            continue;
        }
        if gets_more {
            n_left_over -= 1;
        }
        *owner = Some(live[index]);
        *load += 1;
    }
    debug_assert!(owners.iter().all(Option::is_some), "the shares and the slots left over are all slots");
    owners.into_iter().flatten().collect()
}

fn weight(slot: u32, seat: u32) -> u64 {
    splitmix64(splitmix64(u64::from(slot) << 32 | u64::from(seat)).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::shard::DIVISION;

    fn owners(n_slots: u32, live: &BTreeSet<u32>) -> Vec<u32> {
        preferred_seats(n_slots, &live.iter().copied().collect::<Vec<_>>())
    }

    fn loads(n_slots: u32, n_seats: u32) -> Vec<usize> {
        let owners = owners(n_slots, &(0..n_seats).collect());
        (0..n_seats).map(|seat| owners.iter().filter(|owner| **owner == seat).count()).collect()
    }

    #[test]
    fn no_live_seat_owns_nothing() {
        assert_eq!(preferred_seats(16, &[]), [0; 0]);
    }

    #[test]
    fn few_slots_spread_evenly_over_the_seats() {
        assert_eq!(loads(24, 2), [12, 12]);
        assert_eq!(loads(24, 3), [8, 8, 8]);
        assert_eq!(loads(24, 4), [6, 6, 6, 6]);
        assert_eq!(loads(24, 5), [5, 5, 5, 5, 4]);
        assert_eq!(loads(16, 3), [5, 6, 5]);
        assert_eq!(loads(16, 7), [2, 3, 2, 3, 2, 2, 2]);
        assert_eq!(loads(64, 5), [12, 13, 13, 13, 13]);
        assert_eq!(loads(2, 3).iter().sum::<usize>(), 2, "more seats than slots");
    }

    /// If this fails, [`DIVISION`] has to increase.
    #[test]
    fn slots_keep_their_seats_within_a_division_version() {
        assert_eq!(
            (DIVISION, preferred_seats(16, &[0, 2, 5, 7])),
            (2, vec![5, 5, 5, 7, 2, 7, 2, 0, 2, 5, 0, 7, 0, 7, 2, 0])
        );
    }

    /// Returns the number of slots that move when one more seat joins these.
    fn moves(n_slots: u32, n_seats: u32) -> usize {
        let [before, with] = [n_seats, n_seats + 1].map(|n| owners(n_slots, &(0..n).collect()));
        before.iter().zip(with).filter(|(before, after)| **before != *after).count()
    }

    #[test]
    fn joining_seat_moves_little_more_than_its_share() {
        // The shares are 12, 8, 6, 5, 4, 4, 3 of 24, and 32, 22, 16, 13, 11, 10, 8 of 64. `guide/sharding.md` has the first row.
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|n| moves(24, n)), [12, 10, 7, 4, 5, 5, 5]);
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|n| moves(64, n)), [32, 25, 17, 17, 13, 14, 10]);
    }

    #[test]
    fn leaving_seat_moves_little_more_than_its_share() {
        let moves = |n_seats: u32, leaves: u32| {
            let (before, live): (_, BTreeSet<u32>) =
                (owners(24, &(0..n_seats).collect()), (0..n_seats).filter(|seat| *seat != leaves).collect());
            before.iter().zip(owners(24, &live)).filter(|(before, after)| **before != *after).count()
        };
        // The shares are 8, 6 and 5.
        assert_eq!([moves(3, 1), moves(4, 1), moves(5, 2)], [9, 7, 6]);
    }

    proptest! {
        #[test]
        fn all_slots_are_assigned_in_equal_shares(
            n_slots in 1_u32..=128, live in prop::collection::btree_set(0_u32..64, 1..20),
        ) {
            let owners = owners(n_slots, &live);
            prop_assert_eq!(owners.len(), n_slots as usize);
            let (share, n_left_over) = (n_slots as usize / live.len(), n_slots as usize % live.len());
            let load = |seat: &u32| owners.iter().filter(|owner| *owner == seat).count();
            prop_assert!(live.iter().all(|seat| (share..=share + 1).contains(&load(seat))));
            prop_assert_eq!(live.iter().filter(|seat| load(seat) == share + 1).count(), n_left_over);
        }

        #[test]
        fn owner_is_independent_of_the_order_of_seats(live in prop::collection::vec(0_u32..64, 1..10)) {
            let live: BTreeSet<u32> = live.into_iter().collect();
            let backwards: Vec<u32> = live.iter().rev().copied().collect();
            prop_assert_eq!(owners(32, &live), preferred_seats(32, &backwards));
        }

        #[test]
        fn seat_that_joins_moves_few_slots(live in prop::collection::btree_set(0_u32..32, 1..16), joins in 0_u32..32) {
            let (before, mut with) = (owners(128, &live), live.clone());
            with.insert(joins);
            let moved = before.iter().zip(owners(128, &with)).filter(|(before, after)| **before != *after).count();
            prop_assert!(moved <= 3 * 128 / with.len(), "{moved} moved to one of {}", with.len());
        }
    }
}
