//! A seeded generator of random choices, and the seeds that `SEEDS` asks for.

use std::env;

/// Random choices from one seed.
pub(crate) struct Rng(kctl_tests::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // Multiplying spreads consecutive seeds over all states.
        Self(kctl_tests::Rng::new(seed.wrapping_mul(0xd129_0ff1_4d05_3b5b)))
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.index(n)
    }

    /// Returns `true` with a probability of one in `n`.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Returns a copy of a random element.
    pub(crate) fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Returns the seeds of `SEEDS`, such as `0..200`; `default` if it is not set.
pub(crate) fn seeds(default: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let Ok(range) = env::var("SEEDS") else { return default };
    let bounds = range.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    bounds.unwrap_or_else(|| panic!("SEEDS={range} is not a range such as 0..80"))
}
