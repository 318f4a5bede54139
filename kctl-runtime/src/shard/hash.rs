//! The hash of keys, the same on all replicas: FNV-1a with 64 bits, and a finalizer.
//!
//! Kubernetes' sharded list and watch (KEP-5866) divides the values of FNV-1a into ranges. That is even for uids, but
//! not for names. Their last two characters hardly change the upper bits, so `web-0` to `web-99` fall into few ranges.
//! The finalizer spreads them.

use kctl_apimachinery::fnv::hash64a;

/// Returns the hash of a string, evenly spread over all values.
pub(crate) fn hash_string(text: &str) -> u64 {
    splitmix64(hash64a(text))
}

/// Applies the finalizer of splitmix64, in which each bit of the input changes half of the output.
pub(crate) fn splitmix64(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_names_spread_over_all_ranges_unlike_fnv() {
        let ranges = |hash: fn(&str) -> u64| {
            let mut n = [0; 8];
            for number in 0..100 {
                n[(hash(&format!("default/web-{number}")) >> 61) as usize] += 1;
            }
            n
        };
        let (alone, spread) = (ranges(hash64a), ranges(hash_string));
        assert!(alone.iter().filter(|n| **n > 0).count() <= 4, "{alone:?}");
        assert!(spread.iter().all(|n| *n >= 4), "{spread:?}");
    }
}
