//! Limits the runs that execute at once in this program to the number of processors.
//!
//! The test harness runs tests in parallel, and each simulated test has its own threads. Without a limit a machine with
//! eight processors would execute up to 64 runs at once, each with its API servers in memory.
//!
//! The write permit of a leader is something else: `kctl-runtime` has it.

use std::sync::LazyLock;

use parking_lot::{Condvar, Mutex};

/// The permits of this program.
static PERMITS: LazyLock<Permits> =
    LazyLock::new(|| Permits::new(std::thread::available_parallelism().map_or(1, usize::from)));

struct Permits {
    n_free: Mutex<usize>,
    returned: Condvar,
}

/// The right to execute one run. Dropping it lets the next one begin.
pub(super) struct RunPermit(&'static Permits);

impl Permits {
    fn new(n: usize) -> Self {
        Self { n_free: Mutex::new(n), returned: Condvar::new() }
    }

    fn acquire(&'static self) -> RunPermit {
        let mut n_free = self.n_free.lock();
        self.returned.wait_while(&mut n_free, |n_free| *n_free == 0);
        *n_free -= 1;
        RunPermit(self)
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        *self.0.n_free.lock() += 1;
        self.0.returned.notify_one();
    }
}

/// Blocks the thread until a run may begin.
///
/// A simulation inside of the run of another simulation needs no permit. The outer run holds one until the inner one ends,
/// and with one processor the inner one would wait for it forever.
pub(super) fn acquire() -> Option<RunPermit> {
    (!super::progress::is_run()).then(|| PERMITS.acquire())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn run_waits_for_a_free_permit() {
        static TWO: LazyLock<Permits> = LazyLock::new(|| Permits::new(2));
        let (first, second) = (TWO.acquire(), TWO.acquire());
        let (begun, begins) = mpsc::channel();
        let third = std::thread::spawn(move || {
            let permit = TWO.acquire();
            begun.send(()).unwrap();
            drop(permit);
        });
        assert!(begins.try_recv().is_err(), "both permits are taken");
        drop(first);
        begins.recv().unwrap();
        third.join().unwrap();
        drop(second);
        assert_eq!(*TWO.n_free.lock(), 2);
    }
}
