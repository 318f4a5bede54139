//! The hash FNV-1a with 64 bits, as Go's `hash/fnv` calculates it.
//!
//! Kubernetes divides objects by it: a range of a `shardSelector` is one of these hashes (`HashField` in
//! `apimachinery/pkg/sharding/hash.go`).
//!
//! ```
//! use kctl_apimachinery::fnv;
//!
//! assert_eq!(fnv::hash64a("default"), 0xebad_a516_8620_c5fe);
//! ```

const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Returns the 64-bit FNV-1a hash of a string (`New64a`). It is the same in every build and on every machine.
///
/// Strings that differ only in their last character have nearly the same upper bits.
///
/// ```
/// use kctl_apimachinery::fnv::hash64a;
///
/// assert_eq!(hash64a("team-1") >> 48, hash64a("team-2") >> 48);
/// ```
#[must_use]
pub fn hash64a(text: &str) -> u64 {
    text.bytes().fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of the FNV reference (draft-eastlake-fnv, appendix C).
    #[test]
    fn reference_vectors_have_their_hashes() {
        let vectors = [("", OFFSET_BASIS), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)];
        for (text, expected) in vectors {
            assert_eq!(hash64a(text), expected, "{text:?}");
        }
    }
}
