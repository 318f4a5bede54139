//! Trace IDs of reconciles, in the format of [W3C Trace Context](https://www.w3.org/TR/trace-context/).
//!
//! Each reconcile is one trace. Its ID is in the span of its log lines (`trace_id`), in its
//! [`Report`](crate::worker::Report), and in the `traceparent` header of its requests. API servers with tracing enabled
//! continue that trace (`APIServerTracing`), so one ID connects a line of the controller's log with the request in the
//! API server.
//!
//! IDs are random and differ between processes. A simulation makes them from its seed, so that a run can be repeated
//! exactly.

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

/// Is `true` if a tracing backend records all traces. It sets the `sampled` flag of `traceparent`.
static SAMPLED: AtomicBool = AtomicBool::new(false);

/// The trace of one reconcile and the ID of its root span, which is the parent of the spans of its requests.
///
/// [`Display`](fmt::Display) writes the trace ID as 32 hexadecimal digits, as log backends expect it.
///
/// ```
/// use kctl_runtime::trace::Trace;
/// // Outside of a reconcile there is no trace.
/// assert_eq!(Trace::current(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    trace: u128,
    span: u64,
}

struct Current {
    trace: Trace,
    /// Is `true` once [`Trace::first_span`] has returned the ID of the root span.
    begun: Cell<bool>,
}

impl Trace {
    /// Returns the trace of the reconcile that runs in this task, or `None` outside of reconciles.
    ///
    /// Tasks that a reconcile spawns are outside: the trace is a task-local value. Call this before spawning and pass
    /// the result on.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(|current| current.trace).ok()
    }

    /// Returns the trace ID as a number; [`Display`](fmt::Display) writes the same number. It is never 0, which W3C
    /// Trace Context reserves as invalid.
    pub fn id(self) -> u128 {
        self.trace
    }

    /// Returns the ID of the root span on the first call within a reconcile, and `None` on later calls or outside of
    /// one.
    ///
    /// An exporter of spans, such as one for OpenTelemetry, uses it to give the outermost span the ID that
    /// `traceparent` already names.
    pub fn first_span() -> Option<u64> {
        let first = CURRENT.try_with(|current| (!current.begun.replace(true)).then_some(current.trace.span));
        first.ok().flatten()
    }

    /// Sets the `sampled` flag of all later `traceparent` headers, for the whole process; the default is `false`. Set
    /// it if spans are exported: API servers then record their part of the trace as well.
    pub fn set_sampled(sampled: bool) {
        SAMPLED.store(sampled, Ordering::Relaxed);
    }

    /// Returns the value of the `traceparent` header: version `00`, trace ID, ID of the parent span, flags.
    pub(crate) fn parent(self) -> String {
        format!("00-{self}-{:016x}-{:02x}", self.span, u8::from(SAMPLED.load(Ordering::Relaxed)))
    }

    /// Runs a future as a part of this trace: [`Trace::current`] returns it there.
    pub(crate) async fn run<F: Future>(self, future: F) -> F::Output {
        CURRENT.scope(Current { trace: self, begun: Cell::new(false) }, future).await
    }
}

/// Writes the trace ID as 32 lower-case hexadecimal digits.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.trace)
    }
}

/// Generates the traces of a manager's reconciles: a hash of a seed and of the number of the reconcile.
pub(crate) struct Traces {
    seed: [u64; 2],
    n_given: AtomicU64,
}

impl Default for Traces {
    fn default() -> Self {
        // `RandomState` is seeded by the operating system. Trace IDs must be unique, not secret.
        let random = RandomState::new();
        Self { seed: [random.hash_one(0), random.hash_one(1)], n_given: AtomicU64::new(0) }
    }
}

impl Traces {
    /// Returns a generator that repeats the same traces for the same seed, for simulations.
    pub(crate) fn from_seed(seed: u64) -> Self {
        Self { seed: [seed, !seed], n_given: AtomicU64::new(0) }
    }

    /// Returns the trace of the next reconcile. Both IDs are different from 0.
    pub(crate) fn next(&self) -> Trace {
        let number = self.n_given.fetch_add(1, Ordering::Relaxed);
        let [low, high] = self.seed;
        let part = |seed: u64, which: u64| FixedState::with_seed(seed).hash_one((number, which));
        let trace = u128::from(part(high, 0)) << 64 | u128::from(part(low, 1));
        // W3C Trace Context forbids ids that are all zero.
        Trace { trace: trace.max(1), span: part(low ^ high, 2).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[tokio::test]
    async fn requests_carry_the_span_of_their_reconcile() {
        assert_eq!((Trace::current(), Trace::first_span()), (None, None));
        let trace = Trace { trace: 0xabc, span: 0x12 };
        trace
            .run(async {
                assert_eq!(Trace::current(), Some(trace));
                assert_eq!([Trace::first_span(), Trace::first_span()], [Some(0x12), None]);
            })
            .await;
        assert_eq!(trace.parent(), "00-00000000000000000000000000000abc-0000000000000012-00");
        Trace::set_sampled(true);
        assert_eq!(trace.parent(), "00-00000000000000000000000000000abc-0000000000000012-01");
        Trace::set_sampled(false);
    }

    #[test]
    fn traces_differ_and_repeat_with_the_seed() {
        let taken = |traces: &Traces| (0..1_000).map(|_| traces.next().id()).collect::<Vec<_>>();
        let (random, other) = (taken(&Traces::default()), taken(&Traces::default()));
        assert_eq!(random.iter().chain(&other).collect::<HashSet<_>>().len(), 2_000);
        assert_eq!(taken(&Traces::from_seed(7)), taken(&Traces::from_seed(7)));
    }
}
