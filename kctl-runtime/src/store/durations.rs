//! A histogram of durations with fixed buckets and without a lock: one writer counts, any task reads.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::encoding::{MetricEncoder, NoLabelSet};

/// Upper bounds of the buckets in seconds, as in component-base (`metrics/prometheus/clientgo/fifo`). One more bucket
/// has no bound.
const BOUNDS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Default)]
pub(crate) struct Durations {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

impl Durations {
    pub(super) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.counts[BOUNDS.partition_point(|bound| *bound < seconds)].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<_> = BOUNDS.into_iter().chain([f64::MAX]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_belongs_to_its_bucket() {
        let durations = Durations::default();
        for millis in [1, 2, 10_000, 10_001] {
            durations.observe(Duration::from_millis(millis));
        }
        let counts: Vec<_> = durations.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(durations.nanos.load(Ordering::Relaxed), 20_004_000_000);
    }
}
