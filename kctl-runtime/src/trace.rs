//! One reconcile as logs, requests and traces name it: a trace of its own, in the words of W3C Trace Context.

use std::{
    cell::Cell,
    fmt,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use foldhash::fast::FixedState;

tokio::task_local! {
    static CURRENT: Current;
}

/// Whether somebody keeps traces: servers that are asked hear of it.
static KEPT: AtomicBool = AtomicBool::new(false);

/// The trace that a reconcile is, and the span that its requests belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    trace: u128,
    span: u64,
}

struct Current {
    trace: Trace,
    /// Whether the span of the reconcile has got its id.
    begun: Cell<bool>,
}

impl Trace {
    /// The trace of the reconcile that this task is in. A task that a reconcile spawned is in none.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.trace).ok()
    }

    /// The id of the trace, as in `traceparent`: the number that [`Display`](fmt::Display) writes.
    pub fn id(self) -> u128 {
        self.trace
    }

    /// The id of the next span of the reconcile that this task is in, if it is the first: that of the reconcile itself, which
    /// requests name as their parent.
    pub fn first_span() -> Option<u64> {
        let first = CURRENT.try_with(|current| (!current.begun.replace(true)).then_some(current.trace.span));
        first.ok().flatten()
    }

    /// Tells servers that are asked whether traces are kept: the flag `sampled` of `traceparent`.
    pub fn keep_all(kept: bool) {
        KEPT.store(kept, Ordering::Relaxed);
    }

    /// The header of requests.
    pub(crate) fn parent(self) -> String {
        format!("00-{self}-{:016x}-{:02x}", self.span, u8::from(KEPT.load(Ordering::Relaxed)))
    }

    /// Runs a future in this trace.
    pub(crate) async fn run<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(Current { trace: self, begun: Cell::new(false) }, future).await
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.trace)
    }
}

/// Gives every reconcile of a manager a trace.
pub(crate) struct Traces {
    seed: [u64; 2],
    n_given: AtomicU64,
}

impl Default for Traces {
    fn default() -> Self {
        // Its keys come from the operating system: random where nothing has to be secret.
        let random = RandomState::new();
        Self { seed: [random.hash_one(0), random.hash_one(1)], n_given: AtomicU64::new(0) }
    }
}

impl Traces {
    /// The same traces in each run: for a world that repeats itself.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self { seed: [seed, !seed], n_given: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> Trace {
        let number = self.n_given.fetch_add(1, Ordering::Relaxed);
        let [low, high] = self.seed;
        let part = |seed: u64, which: u64| FixedState::with_seed(seed).hash_one((number, which));
        let trace = u128::from(part(high, 0)) << 64 | u128::from(part(low, 1));
        // Zero is no id.
        Trace { trace: trace.max(1), span: part(low ^ high, 2).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn requests_name_the_span_of_the_reconcile_that_they_are_made_in() {
        assert_eq!((Trace::current(), Trace::first_span()), (None, None));
        let trace = Trace { trace: 0xabc, span: 0x12 };
        trace
            .run(async {
                assert_eq!(Trace::current(), Some(trace));
                assert_eq!([Trace::first_span(), Trace::first_span()], [Some(0x12), None]);
            })
            .await;
        assert_eq!(trace.parent(), "00-00000000000000000000000000000abc-0000000000000012-00");
        Trace::keep_all(true);
        assert_eq!(trace.parent(), "00-00000000000000000000000000000abc-0000000000000012-01");
        Trace::keep_all(false);
    }

    #[test]
    fn traces_differ_and_those_of_a_seed_come_again() {
        let taken = |traces: &Traces| (0..1_000).map(|_| traces.next().id()).collect::<Vec<_>>();
        let (random, other) = (taken(&Traces::default()), taken(&Traces::default()));
        assert_eq!(random.iter().chain(&other).collect::<HashSet<_>>().len(), 2_000);
        assert_eq!(taken(&Traces::of_seed(7)), taken(&Traces::of_seed(7)));
    }
}
