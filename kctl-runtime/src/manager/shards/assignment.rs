//! Highest random weight: which seat should own a slot, as all replicas calculate it without asking each other.
//!
//! The result is a wish. Only the Lease of a slot makes an owner.

use crate::shard::mix;

/// Returns the live seat that should own a slot, `None` without live seats.
///
/// When a seat joins, it takes about 1/n of the slots, and no other slot moves. When it leaves, its slots spread over
/// the others, and no other slot moves.
pub(super) fn preferred(slot: u32, live: impl IntoIterator<Item = u32>) -> Option<u32> {
    live.into_iter().max_by_key(|seat| (weight(slot, *seat), *seat))
}

/// Returns the weight of a seat for a slot.
fn weight(slot: u32, seat: u32) -> u64 {
    mix(mix(u64::from(slot) << 32 | u64::from(seat)).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn owners(n_slots: u32, live: &BTreeSet<u32>) -> Vec<Option<u32>> {
        (0..n_slots).map(|slot| preferred(slot, live.iter().copied())).collect()
    }

    #[test]
    fn no_live_seat_owns_nothing() {
        assert_eq!(preferred(0, []), None);
    }

    #[test]
    fn slots_spread_evenly_over_the_seats() {
        for n_seats in 2..=8 {
            let owners = owners(256, &(0..n_seats).collect());
            for seat in 0..n_seats {
                let n = owners.iter().filter(|owner| **owner == Some(seat)).count();
                let fair = 256 / n_seats as usize;
                assert!(n > fair / 2 && n < fair * 2, "seat {seat} of {n_seats} has {n}, not about {fair}");
            }
        }
    }

    proptest! {
        #[test]
        fn seat_that_joins_moves_slots_to_itself_only(
            live in prop::collection::btree_set(0_u32..32, 1..16), joins in 0_u32..32,
        ) {
            let (before, mut with) = (owners(128, &live), live.clone());
            with.insert(joins);
            let after = owners(128, &with);
            let moved: Vec<_> = before.iter().zip(&after).filter(|(before, after)| before != after).collect();
            prop_assert!(moved.iter().all(|(_, to)| **to == Some(joins)), "{moved:?}");
            prop_assert!(moved.len() <= 3 * 128 / with.len(), "{} moved to one of {}", moved.len(), with.len());
        }

        #[test]
        fn seat_that_leaves_moves_its_own_slots_only(live in prop::collection::btree_set(0_u32..32, 2..16)) {
            let leaves = *live.first().unwrap();
            let (before, mut without) = (owners(128, &live), live.clone());
            without.remove(&leaves);
            let after = owners(128, &without);
            for (before, after) in before.iter().zip(&after) {
                prop_assert_eq!(before != after, *before == Some(leaves));
            }
        }
    }
}
