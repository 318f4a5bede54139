//! The limits of a run, and the budget from which the interpreter's hook and the library spend.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The bounds of one run of a script: time, steps and memory.
///
/// At a bound the run ends with [`ErrorClass::Timeout`](super::ErrorClass::Timeout) or
/// [`ErrorClass::Memory`](super::ErrorClass::Memory). The script can't prevent that with `pcall`.
/// The defaults suit a control plane. In tests, set [`Limits::steps`] to get the same result on
/// every machine.
///
/// ```
/// use std::time::Duration;
/// use kctl_interpreter::lua::{ErrorClass, ScriptInputs, Limits, Pool, Script};
/// use serde_json::json;
///
/// let pool = Pool::new(Limits::default().steps(100_000));
/// let endless = Script::compile("function InterpretHealth(o) while true do end end", "InterpretHealth")?;
/// let object = json!({ "kind": "Widget" });
/// let error = pool.interpret("InterpretHealth", &endless, &ScriptInputs { desired: Some(&object), ..ScriptInputs::default() }).unwrap_err();
/// assert_eq!(error.class(), ErrorClass::Timeout);
/// assert_eq!(Limits::default().time, Duration::from_secs(1));
/// # Ok::<(), kctl_interpreter::lua::ScriptError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Time for running the script, which defines its function, and for calling that function; one second by default, as in
    /// Karmada (`RunScript` in `luavm/lua.go`).
    ///
    /// A run may exceed it by a tenth of a second. The conversion of the arguments counts. The limit does not include
    /// the time to compile the script, whose length is bounded by [`SOURCE_BYTES_MAX`](super::SOURCE_BYTES_MAX). Nor
    /// does it include the conversion of the result, which is bounded by [`Limits::memory_bytes`].
    pub time: Duration,
    /// Maximum number of steps of the virtual machine and the library; unlimited by default, so
    /// that the time limit applies.
    ///
    /// An instruction is a step, and so is a character that a pattern examines. Calls of the
    /// library cost more.
    pub steps: u64,
    /// Bytes that Lua can allocate, and bytes of a result; 16 MiB by default. The library takes 150
    /// KiB of them.
    pub memory_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(1), steps: u64::MAX, memory_bytes: 16 << 20 }
    }
}

impl Limits {
    /// Sets the time for running the script and calling its function.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the maximum number of steps.
    #[must_use]
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Sets the bytes that Lua can allocate, and the bytes of a result.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }
}

/// Returns the number of instructions between two checks of the budget, for a state that holds this
/// many bytes.
///
/// One instruction can copy as much as the state holds, which takes milliseconds for 16 MiB. So a
/// large state is checked more often, and a run overshoots its time by a tenth of a second at most.
pub(super) fn hook_interval(used_bytes: usize) -> u32 {
    const FEW_BYTES: usize = 1 << 20;
    if used_bytes <= FEW_BYTES { 200 } else { 20 }
}

/// The rest of a run: steps, time, and the reason why it ended.
///
/// A budget that was exceeded remains exceeded until the next run. A script that catches the error meets it again at
/// its next step.
pub(super) struct Budget {
    /// Steps that the run may still take.
    steps_left: AtomicU64,
    /// The end of the run; `None` between two runs.
    deadline: Mutex<Option<Instant>>,
    /// Set once time or steps ran out.
    is_exceeded: AtomicBool,
    /// Set once an allocation failed, or a result was too large.
    is_out_of_memory: AtomicBool,
    /// The line that ran when the budget was exceeded; 0 if it is unknown.
    line: AtomicUsize,
    /// The state of `math.random`. Each run has the same seed, so that the same object gives the
    /// same answer.
    random: AtomicU64,
}

/// The seed of each run. Any odd number works; this is the multiplier of Knuth's MMIX generator.
const RANDOM_SEED: u64 = 6_364_136_223_846_793_005;

impl Budget {
    /// Creates a budget without bounds. Loading the library spends from it before the first run.
    pub(super) fn new() -> Self {
        Self {
            steps_left: AtomicU64::new(u64::MAX),
            deadline: Mutex::new(None),
            is_exceeded: AtomicBool::new(false),
            is_out_of_memory: AtomicBool::new(false),
            line: AtomicUsize::new(0),
            random: AtomicU64::new(RANDOM_SEED),
        }
    }

    /// Returns the current time of the monotonic clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "a script blocks its thread, so the paused time of a runtime would never bound it"
    )]
    fn now() -> Instant {
        Instant::now()
    }

    pub(super) fn start(&self, limits: &Limits) {
        self.steps_left.store(limits.steps, Ordering::Relaxed);
        *self.deadline.lock() = Self::now().checked_add(limits.time);
        self.is_exceeded.store(false, Ordering::Relaxed);
        self.is_out_of_memory.store(false, Ordering::Relaxed);
        self.line.store(0, Ordering::Relaxed);
        self.random.store(RANDOM_SEED, Ordering::Relaxed);
    }

    /// Ends the run. Until the next one starts, no time passes for the budget.
    pub(super) fn stop(&self) {
        *self.deadline.lock() = None;
    }

    /// Returns `true` if the run has lasted for `time` or longer; `false` between two runs. It started with `limits`.
    pub(super) fn has_lasted(&self, time: Duration, limits: &Limits) -> bool {
        let passed = |deadline| Self::now().checked_add(limits.time).is_none_or(|now| now >= deadline + time);
        self.deadline.lock().is_some_and(passed)
    }

    /// Spends `steps`, and checks all limits.
    ///
    /// # Errors
    /// An error for Lua if a limit is exceeded, now or earlier in the run.
    pub(super) fn charge(&self, steps: u64) -> mlua::Result<()> {
        let left = self.steps_left.load(Ordering::Relaxed);
        self.steps_left.store(left.saturating_sub(steps), Ordering::Relaxed);
        let is_late = || self.deadline.lock().is_some_and(|deadline| Self::now() >= deadline);
        if left <= steps || self.is_exceeded() || is_late() {
            self.is_exceeded.store(true, Ordering::Relaxed);
            return Err(mlua::Error::runtime("context deadline exceeded"));
        }
        if self.is_out_of_memory() {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        Ok(())
    }

    /// Returns `true` once time or steps ran out.
    pub(super) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Returns `true` once an allocation failed, or a result was too large.
    pub(super) fn is_out_of_memory(&self) -> bool {
        self.is_out_of_memory.load(Ordering::Relaxed)
    }

    /// Records that an allocation failed, or that a result was too large. Each further step of the run fails too.
    pub(super) fn set_out_of_memory(&self) {
        self.is_out_of_memory.store(true, Ordering::Relaxed);
    }

    /// Records the script's line for the error, unless the run has one already.
    pub(super) fn set_line(&self, line: Option<usize>) {
        let _ = self.line.compare_exchange(0, line.unwrap_or(0), Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(super) fn line(&self) -> Option<usize> {
        Some(self.line.load(Ordering::Relaxed)).filter(|line| *line > 0)
    }

    /// Restarts `math.random` from a seed that the script chose.
    pub(super) fn seed_random(&self, seed: u64) {
        self.random.store(RANDOM_SEED ^ seed, Ordering::Relaxed);
    }

    /// Returns the next number of `math.random`, in `0.0..1.0`.
    pub(super) fn random(&self) -> f64 {
        let state =
            self.random.load(Ordering::Relaxed).wrapping_mul(RANDOM_SEED).wrapping_add(1_442_695_040_888_963_407);
        self.random.store(state, Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "32 bits fit a double")]
        let upper_bits = (state >> 32) as f64;
        upper_bits / 4_294_967_296.0
    }
}
