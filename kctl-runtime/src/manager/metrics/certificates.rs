//! Counts of certificate reads, under the names of controller-runtime's `pkg/certwatcher`.
//!
//! An alert on `certwatcher_read_certificate_errors_total` finds a Secret with a broken certificate before the old
//! certificate expires. Until then the server continues with the last good one, so nothing else shows the fault.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};

/// Number of times that a certificate was read since the start of the program.
///
/// Files are read every 10 s, so `total` grows even without a new certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CertificateReads {
    /// All reads, successful or not.
    pub total: u64,
    /// Failed reads: of a missing file, or of content that is not a certificate.
    pub errors: u64,
}

impl CertificateReads {
    /// Returns these counts: all reads, and the failed ones among them.
    pub fn new(total: u64, errors: u64) -> Self {
        Self { total, errors }
    }
}

/// Returns the current counts of one certificate.
type Reads = Box<dyn Fn() -> CertificateReads + Send + Sync>;

/// The certificates of a program. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Certificates(Arc<Mutex<Vec<Reads>>>);

impl Certificates {
    pub(super) fn add(&self, reads: Reads) {
        self.0.lock().push(reads);
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Certificates")
    }
}

impl Collector for Certificates {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let all: Vec<CertificateReads> = self.0.lock().iter().map(|reads| reads()).collect();
        let sum = |read: fn(&CertificateReads) -> u64| all.iter().map(read).sum::<u64>();
        for (name, help, value) in [
            ("certwatcher_read_certificate", "Total number of certificate reads", sum(|reads| reads.total)),
            (
                "certwatcher_read_certificate_errors",
                "Total number of certificate read errors",
                sum(|reads| reads.errors),
            ),
        ] {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ReadCounter {
    total: AtomicU64,
    errors: AtomicU64,
}

impl ReadCounter {
    /// Counts a read and, if it failed, an error.
    pub(crate) fn count<T, E>(&self, read: &Result<T, E>) {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(read.is_err().into(), Ordering::Relaxed);
    }

    pub(crate) fn reads(&self) -> CertificateReads {
        // `errors` is loaded first, so that it never exceeds `total`.
        let errors = self.errors.load(Ordering::Relaxed);
        CertificateReads::new(self.total.load(Ordering::Relaxed), errors)
    }
}
