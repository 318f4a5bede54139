//! Calculates which seat should own each slot: highest random weight with bounded loads. All replicas get the same
//! result without communicating.
//!
//! The result is only a preference. A replica owns a slot while it holds the slot's Lease.
//!
//! By weight alone, three replicas would get 1, 9 and 6 of 16 slots. So no seat gets more than its share, rounded up:
//! 4, 6 and 6. The price is that a few more slots move when a seat joins or leaves.

use std::cmp::Reverse;

use crate::shard::splitmix64;

/// Returns the live seat that should own each slot; empty without live seats.
///
/// Pairs of slots and seats are taken in the order of their weights. A seat that has its share gets no more.
pub(super) fn preferred_seats(n_slots: u32, live: &[u32]) -> Vec<u32> {
    if live.is_empty() {
        return Vec::new();
    }
    let share = (n_slots as usize).div_ceil(live.len());
    let pairs = (0..n_slots).flat_map(|slot| (0..live.len()).map(move |index| (slot, index)));
    let mut pairs: Vec<_> = pairs.map(|(slot, index)| (weight(slot, live[index]), slot, index)).collect();
    pairs.sort_unstable_by_key(|(weight, slot, index)| Reverse((*weight, *slot, live[*index])));
    let (mut owners, mut loads) = (vec![None; n_slots as usize], vec![0; live.len()]);
    for (_, slot, index) in pairs {
        let owner = &mut owners[slot as usize];
        if owner.is_none() && loads[index] < share {
            *owner = Some(live[index]);
            loads[index] += 1;
        }
    }
    debug_assert!(owners.iter().all(Option::is_some), "the shares of all seats together have room for every slot");
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
        assert_eq!(loads(16, 2), [8, 8]);
        assert_eq!(loads(16, 3), [4, 6, 6]);
        assert_eq!(loads(16, 4), [4, 4, 4, 4]);
        assert_eq!(loads(64, 5), [12, 13, 13, 13, 13]);
    }

    /// Returns the number of slots that move when one more seat joins these.
    fn moves(n_slots: u32, n_seats: u32) -> usize {
        let [before, with] = [n_seats, n_seats + 1].map(|n| owners(n_slots, &(0..n).collect()));
        before.iter().zip(with).filter(|(before, after)| **before != *after).count()
    }

    #[test]
    fn joining_seat_moves_little_more_than_its_share() {
        // The shares are 8, 6, 4, 4, 3, 3, 2 of 16, and 32, 22, 16, 13, 11, 10, 8 of 64.
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|n| moves(16, n)), [8, 7, 5, 4, 3, 3, 5]);
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|n| moves(64, n)), [32, 26, 17, 17, 13, 11, 13]);
    }

    proptest! {
        #[test]
        fn all_slots_are_assigned_without_exceeding_seat_shares(
            n_slots in 1_u32..=128, live in prop::collection::btree_set(0_u32..64, 1..20),
        ) {
            let owners = owners(n_slots, &live);
            prop_assert_eq!(owners.len(), n_slots as usize);
            let share = (n_slots as usize).div_ceil(live.len());
            for seat in &live {
                prop_assert!(owners.iter().filter(|owner| *owner == seat).count() <= share);
            }
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
            prop_assert!(moved <= 4 * 128 / with.len(), "{moved} moved to one of {}", with.len());
        }
    }
}
