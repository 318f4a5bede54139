//! The slot of a key, calculated a second time: the audit must not judge replicas by the function that they use.

use kctl_runtime::key::ObjectKey;

/// The part of a key that decides its slot, as `kctl::app::ShardBy` documents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Division {
    /// Namespace and name
    Object,
    /// The namespace
    Namespace,
    /// The namespace, in ranges that the API server selects
    NamespaceRange,
}

impl Division {
    /// Returns the name that the command line and the replicas use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Namespace => "namespace",
            Self::NamespaceRange => "namespace-range",
        }
    }

    /// Returns the slot of a namespaced key.
    pub(crate) fn slot(self, key: &ObjectKey, n_slots: u32) -> u32 {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let hash = match self {
            Self::Object => splitmix64(fnv1a(&format!("{namespace}/{}", key.name))),
            Self::Namespace => splitmix64(fnv1a(namespace)),
            Self::NamespaceRange => fnv1a(namespace),
        };
        // The slots are equal ranges of all hashes, so the upper half of the product is less than the number of slots.
        u32::try_from((u128::from(hash) * u128::from(n_slots)) >> 64).unwrap_or_default()
    }
}

/// Returns the 64-bit FNV-1a hash (draft-eastlake-fnv), as KEP-5866 uses it.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the output of `SplitMix64` for a state.
pub(crate) fn splitmix64(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use kctl_runtime::shard::{ShardBy, Slots};

    use super::*;

    #[test]
    fn slots_match_the_replicas() {
        let divisions = [
            (Division::Object, ShardBy::Object, [32, 15, 188]),
            (Division::Namespace, ShardBy::Namespace, [241, 241, 108]),
            (Division::NamespaceRange, ShardBy::NamespaceRange, [235, 235, 70]),
        ];
        let keys = [("default", "web"), ("default", "api"), ("shop", "web")];
        let keys = keys.map(|(namespace, name)| ObjectKey::new(Some(namespace), name));
        for (division, by, expected) in divisions {
            assert_eq!(keys.clone().map(|key| division.slot(&key, 256)), expected);
            assert_eq!(keys.clone().map(|key| Slots::new(256, by).slot_for(&key)), expected);
            assert_eq!(division.name(), by.to_string());
        }
    }
}
