//! The tenures of single primaries: in a controller ring, objects move one by one.

use std::collections::{HashMap, HashSet};

use crate::{key::ObjectKey, object::Kind};

/// Number of tenures that triggers the removal of tenures of primaries that left all caches.
const TENURES_SWEEP: usize = 1024;

/// The present tenure of each primary: from its first reconcile to its hand-over.
///
/// A tenure that is forgotten counts as over, so work of it writes nothing.
#[derive(Default)]
pub(super) struct PrimaryTenures {
    numbers: HashMap<Kind, HashMap<ObjectKey, u64>>,
    /// The values of `numbers`. Invariant: each is the number of one tenure of one primary, ever.
    present: HashSet<u64>,
    n_begun: u64,
    /// Number of tenures after the last sweep.
    n_swept: usize,
}

impl PrimaryTenures {
    /// Returns the number of the present tenure of a primary. A primary without one begins its first.
    pub(super) fn begin(&mut self, kind: &Kind, key: &ObjectKey) -> u64 {
        if let Some(number) = self.numbers.get(kind).and_then(|keys| keys.get(key)) {
            return *number;
        }
        self.n_begun += 1;
        self.numbers.entry(kind.clone()).or_default().insert(key.clone(), self.n_begun);
        let is_new = self.present.insert(self.n_begun);
        debug_assert!(is_new, "work of an earlier tenure would write in this one");
        self.n_begun
    }

    /// Ends the tenure of a primary, if there is one.
    pub(super) fn end(&mut self, kind: &Kind, key: &ObjectKey) {
        if let Some(number) = self.numbers.get_mut(kind).and_then(|keys| keys.remove(key)) {
            self.present.remove(&number);
        }
    }

    /// Returns `true` if the tenure with this number has not ended.
    pub(super) fn is_present(&self, number: u64) -> bool {
        self.present.contains(&number)
    }

    /// Returns `true` if the number of tenures has doubled since the last sweep.
    pub(super) fn is_sweep_due(&self) -> bool {
        self.present.len() >= TENURES_SWEEP.max(2 * self.n_swept)
    }

    /// Ends the tenures of primaries for which `keep` returns `false`.
    pub(super) fn sweep(&mut self, keep: impl Fn(&Kind, &ObjectKey) -> bool) {
        let Self { numbers, present, .. } = self;
        for (kind, keys) in numbers {
            keys.retain(|key, number| {
                let is_kept = keep(kind, key);
                if !is_kept {
                    present.remove(&*number);
                }
                is_kept
            });
        }
        self.n_swept = self.present.len();
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    use super::*;

    #[test]
    fn sweep_is_due_when_tenures_have_doubled() {
        let (mut tenures, kinds) = (PrimaryTenures::default(), [Kind::of::<ConfigMap>(), Kind::of::<Secret>()]);
        let key = |number: usize| ObjectKey::new(Some("default"), &format!("web-{number}"));
        for number in 0..TENURES_SWEEP {
            assert!(!tenures.is_sweep_due(), "{number}");
            tenures.begin(&kinds[number % 2], &key(number));
        }
        assert!(tenures.is_sweep_due());
        let (configs, secrets) = (tenures.begin(&kinds[0], &key(0)), tenures.begin(&kinds[1], &key(1)));
        tenures.sweep(|kind, _key| *kind == kinds[0]);
        assert!(tenures.is_present(configs) && !tenures.is_present(secrets));
        assert_eq!(tenures.present.len(), TENURES_SWEEP / 2);
        assert_ne!(tenures.begin(&kinds[1], &key(1)), secrets);
        assert!(!tenures.is_sweep_due());
    }
}
