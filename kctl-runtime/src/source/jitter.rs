//! Jitter for waits and for the lives of watches, so that the informers of a program, and of its replicas, do not send
//! their requests at the same moment.
//!
//! After an API server restarts, every watch of the cluster is opened again. Without jitter all of them would also end
//! in the same second five minutes later, again and again.
//!
//! client-go draws random numbers (`wait.Jitter`). Here they are hashes of the informer's watch config, a counter and the
//! seed of the process. A replica has the seed of its election (`ElectionConfig::seed`), which is random unless a test
//! sets it. So a run of the simulator with the same seed sends the same requests at the same virtual times. A process
//! without a Lease has the seed 0: it has no other replicas.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

/// Maximum jitter, as a share of the wait.
const MORE: f64 = 0.25;

/// The jitter of one informer. It differs between informers and between seeds, and repeats itself with the same seed, so
/// that a simulation can be repeated.
pub(super) struct Jitter {
    /// Hash of the watch config and the scope, combined with the seed: two informers wait differently.
    informer: u64,
    /// Number of values drawn so far.
    n: u64,
}

impl Jitter {
    /// Creates the jitter of an informer, from the seed of the process and what identifies the informer in the program.
    pub(super) fn new(seed: u64, informer: impl Hash) -> Self {
        Self { informer: hash_of(informer) ^ seed, n: 0 }
    }

    /// Returns the next number, from 0 to 1.
    fn next(&mut self) -> f64 {
        self.n += 1;
        // The upper half of the hash is as random as the whole, and an `f64` holds it exactly.
        u32::try_from(hash_of((self.informer, self.n)) >> 32).map_or(0.0, f64::from) / f64::from(u32::MAX)
    }

    /// Returns `wait`, prolonged by up to a quarter.
    pub(super) fn wait(&mut self, wait: Duration) -> Duration {
        wait.mul_f64(1.0 + MORE * self.next())
    }

    /// Returns a duration between `least` and twice that.
    ///
    /// It becomes the `timeoutSeconds` of a watch. The API server then ends the watch itself, between two events.
    pub(super) fn watch_timeout(&mut self, least: Duration) -> Duration {
        least.mul_f64(1.0 + self.next())
    }
}

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn jitter_is_within_its_bounds_and_repeats() {
        let all = |mut jitter: Jitter| -> Vec<Duration> {
            let second = Duration::from_secs(1);
            (0..100).flat_map(|_| [jitter.wait(second), jitter.watch_timeout(second)]).collect()
        };
        let (pods, nodes) = (all(Jitter::new(0, "pods")), all(Jitter::new(0, "nodes")));
        let of_a_replica = all(Jitter::new(1, "pods"));
        assert_eq!(pods, all(Jitter::new(0, "pods")));
        let n_different = pods.iter().chain(&nodes).chain(&of_a_replica).collect::<BTreeSet<_>>().len();
        assert!(n_different > 590, "{n_different}");
        for pair in pods.chunks(2) {
            assert!((1.0..=1.25).contains(&pair[0].as_secs_f64()), "{pair:?}");
            assert!((1.0..=2.0).contains(&pair[1].as_secs_f64()), "{pair:?}");
        }
    }
}
