//! The pool of idle Lua states, which each wait for the next run of their script.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::error::ScriptError;
use super::interpret::{self, ScriptFunction, ScriptInputs};
use super::limits::Limits;
use super::script::Script;
use super::vm::State;

/// Maximum number of idle states. One holds some 200 KiB, most of it the library. Beyond this number the
/// state that is idle for longest is dropped.
const IDLE_MAX: usize = 64;

/// A script that takes longer counts as slow: ten times the usual run, and as long as a task may
/// run between two waits.
const SLOW_FROM: Duration = Duration::from_millis(1);

/// Runs scripts, and keeps up to 64 idle Lua states for their next runs.
///
/// A state is only reused by the [`Script`] for which it was compiled, and is reset between runs.
/// At the bound the state that is idle for longest is dropped. Threads can share a pool: each run
/// has its own state. See the [module](super) for an example.
pub struct Pool {
    limits: Limits,
    /// Idle states with their scripts, the one that was used last at the back. Invariant: at most [`IDLE_MAX`].
    idle: Mutex<VecDeque<(Script, State)>>,
}

impl Pool {
    /// Creates an empty pool. Every run has these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, idle: Mutex::new(VecDeque::new()) }
    }

    /// Runs the script for the operation of that name, and returns the result in the JSON form of
    /// [`Op::encode`](crate::operation::Op::encode).
    ///
    /// It blocks the thread for up to [`Limits::time`], plus the time that this limit leaves out. Call it from
    /// `tokio::task::spawn_blocking` if other tasks share the thread. Once a run of a script has taken a millisecond, a
    /// [`Registry`](crate::registry::Registry) moves the other tasks to another thread (`block_in_place`) before its
    /// next runs. It can't on a current-thread runtime.
    ///
    /// ```
    /// use kctl_interpreter::lua::{ErrorClass, ScriptInputs, Limits, Pool, Script};
    /// use serde_json::json;
    ///
    /// let pool = Pool::new(Limits::default());
    /// let script = Script::compile("function InterpretHealth(o)\n  return o.status.phase == 'Ready'\nend", "InterpretHealth")?;
    /// let object = json!({ "kind": "Widget" });
    /// let inputs = ScriptInputs { observed: Some(&object), ..ScriptInputs::default() };
    /// let error = pool.interpret("InterpretHealth", &script, &inputs).unwrap_err();
    /// assert_eq!((error.class(), error.line()), (ErrorClass::Runtime, Some(2)), "the object has no status");
    /// # Ok::<(), kctl_interpreter::lua::ScriptError>(())
    /// ```
    ///
    /// # Errors
    /// [`ScriptError`] if the script or the inputs are wrong, or the run exceeded a limit. A retry with the same object gives
    /// the same error, except after a timeout.
    pub fn interpret(&self, operation: &str, script: &Script, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let operation =
            ScriptFunction::from_name(operation).ok_or_else(|| ScriptError::unsupported_operation(operation))?;
        let state = self.take(script).map_or_else(|| State::new(script, &self.limits), Ok)?;
        let result = interpret::interpret(&state, operation, script, inputs, &self.limits);
        if state.has_lasted(SLOW_FROM, &self.limits) {
            script.set_slow();
        }
        if state.reset() {
            self.put(script, state);
        }
        result
    }

    /// Takes the most recently used idle state of a script out of the pool.
    fn take(&self, script: &Script) -> Option<State> {
        let mut idle = self.idle.lock();
        let idx = idle.iter().rposition(|(owner, _)| owner.is_same(script))?;
        idle.remove(idx).map(|(_, state)| state)
    }

    /// Keeps a state for the next run of its script. Closing a dropped state happens outside of the
    /// lock.
    fn put(&self, script: &Script, state: State) {
        let dropped = {
            let mut idle = self.idle.lock();
            idle.push_back((script.clone(), state));
            let dropped = if idle.len() > IDLE_MAX { idle.pop_front() } else { None };
            debug_assert!(idle.len() <= IDLE_MAX, "the state that is idle for longest is dropped at the bound");
            dropped
        };
        // Closing a state takes too long to do it under the lock.
        drop(dropped);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_idle = self.idle.lock().len();
        f.debug_struct("Pool").field("limits", &self.limits).field("n_idle", &n_idle).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lua::ErrorClass;

    #[test]
    fn scripts_with_equal_sources_never_share_a_state() {
        let source = "function InterpretHealth(o) return true end";
        let compile = || Script::compile(source, "InterpretHealth").unwrap();
        let (first, second) = (compile(), compile());
        let (pool, object) = (Pool::new(Limits::default()), json!({ "kind": "Widget" }));
        let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
        let run = |script: &Script| pool.interpret("InterpretHealth", script, &inputs).unwrap();
        run(&first);
        assert!(pool.take(&second).is_none(), "a script with the same source is another script");
        run(&second);
        run(&first.clone());
        assert_eq!(pool.idle.lock().len(), 2, "a clone uses the states of its script");
        assert!(pool.take(&first).is_some());
        assert!(pool.take(&first).is_none(), "the remaining state belongs to the second script");
        assert!(pool.take(&second).is_some());
    }

    #[test]
    fn idle_time_does_not_count_as_run() {
        let limits = Limits::default();
        let script = Script::compile("function InterpretHealth(o) return true end", "InterpretHealth").unwrap();
        let (pool, object) = (Pool::new(limits.clone()), json!({ "kind": "Widget" }));
        let state = State::new(&script, &limits).unwrap();
        assert!(!state.has_lasted(Duration::ZERO, &limits), "no run has started");
        let _results = state.call(&script, &limits, &[&object], 1).unwrap();
        assert!(state.has_lasted(Duration::ZERO, &limits));
        assert!(state.reset() && !state.has_lasted(Duration::ZERO, &limits), "the run has ended");
        pool.put(&script, state);
        let error = pool.interpret("InterpretHealth", &script, &ScriptInputs::default()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::WrongInput);
        assert!(!script.is_slow(), "the call ended before a run");
    }

    #[test]
    fn state_is_dropped_after_a_limit() {
        let large = "local s, t = 'x', {} for i = 1, 19 do s = s .. s end for i = 1, 100 do t[i] = s end return t";
        for (body, class, n_idle) in [
            ("return {}", None, 1),
            ("error('x')", Some(ErrorClass::Runtime), 1),
            ("local t = {} for i = 1, 1e9 do t[i] = {i} end", Some(ErrorClass::Memory), 0),
            (large, Some(ErrorClass::Memory), 0),
            ("while true do end", Some(ErrorClass::Timeout), 0),
        ] {
            let limits = Limits::default().time(Duration::from_secs(60)).steps(3_000_000).memory_bytes(8 << 20);
            let (pool, object) = (Pool::new(limits), json!({ "kind": "Widget" }));
            let script = Script::compile(&format!("function ReflectStatus(o) {body} end"), "ReflectStatus").unwrap();
            let inputs = ScriptInputs { desired: Some(&object), ..ScriptInputs::default() };
            let result = pool.interpret("InterpretStatus", &script, &inputs);
            assert_eq!(result.err().map(|error| error.class()), class, "{body}");
            assert_eq!(pool.idle.lock().len(), n_idle, "{body}");
        }
    }
}
