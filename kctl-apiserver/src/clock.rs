//! Time and random numbers of a server. Both are reproducible.

use jiff::{Timestamp, ToSpan};
use kctl_apimachinery::time;
use tokio::time::Instant;

/// The source of all times in objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// 2026-01-01T00:00:00Z plus the time of the tokio runtime since the server was created. Repeatable if tokio's
    /// clock is paused.
    Simulated(Instant),
    /// The clock of the machine, for servers that people use.
    System,
    /// A fixed time. A request that runs again after a webhook call sees the same time in each run.
    At(Timestamp),
}

impl Clock {
    /// Returns the present time.
    pub(crate) fn now(self) -> Timestamp {
        match self {
            Self::System => Timestamp::now(),
            Self::At(time) => time,
            Self::Simulated(start) => {
                let epoch = Timestamp::constant(1_767_225_600, 0);
                let passed = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX / 2_000_000);
                epoch.checked_add(passed.milliseconds()).unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// Returns the present time in whole seconds, as `metav1.Time` has it.
    pub(crate) fn seconds(self) -> String {
        time::seconds(self.now())
    }
}

/// A seeded random generator (splitmix64). The same seed gives the same uids and names.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Creates a generator.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a generator for a copy of the server. It continues differently for each seed, and repeats nothing that
    /// this one returned.
    pub(crate) fn fork(&self, seed: u64) -> Self {
        let mut seeded = Self::new(seed);
        Self(self.0 ^ seeded.next())
    }

    /// Returns the next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a uid in the form of a version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns the suffix of a generated name: five characters without vowels (`k8s.io/apiserver/pkg/storage/names`).
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.next();
        let mut suffix = String::with_capacity(5);
        for _ in 0..5 {
            let index = usize::try_from(bits % LETTERS.len() as u64).unwrap_or_default();
            suffix.push(LETTERS[index].into());
            bits /= LETTERS.len() as u64;
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (mut first, mut same, mut other) = (Rng::new(1), Rng::new(1), Rng::new(2));
        let uid = first.uid();
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
        assert_eq!(uid, same.uid());
        assert_ne!(uid, other.uid());
        assert_eq!(first.suffix().len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn simulated_time_is_the_time_of_the_runtime() {
        let clock = Clock::Simulated(Instant::now());
        assert_eq!(clock.seconds(), "2026-01-01T00:00:00Z");
        tokio::time::advance(std::time::Duration::from_secs(61)).await;
        assert_eq!(clock.seconds(), "2026-01-01T00:01:01Z");
    }
}
