//! One Lua state with one compiled script: calls a function on JSON values within limits, and
//! leaves nothing behind.
//!
//! A run gets fresh globals, loads the chunk into them, and calls the function. The memory limit holds while the script
//! runs, and is lifted for conversions. These bound the depth of arguments, and the depth and the bytes of results.

use std::{sync::Arc, time::Duration};

use mlua::state::{GcIncParams, GcMode};
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Value as LuaValue, VmState};
use serde_json::Value;

use super::compile::{describe, load};
use super::concat;
use super::error::{ErrorClass, ScriptError};
use super::jump;
use super::library;
use super::limits::{Budget, Limits, hook_interval};
use super::order;
use super::script::Script;
use super::to_json::{EncodeError, to_json};
use super::to_lua::to_lua;

/// One value that a function returned.
pub(super) enum Returned {
    /// A boolean.
    Bool(bool),
    /// A number; Lua has only doubles.
    Number(f64),
    /// A table, as JSON. Its empty tables are all `[]`.
    Table(Value),
    /// Any other value, by the name of its type.
    Other(&'static str),
}

impl Returned {
    /// Returns the name of the type, for messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::Table(_) => "table",
            Self::Other(name) => name,
        }
    }
}

/// A Lua state that belongs to one script, so that two customizations never share one.
pub(super) struct State {
    /// The state.
    lua: Lua,
    /// The budget of the run, which hook and library share.
    budget: Arc<Budget>,
    /// Returns the globals and the string library of a run.
    fresh: Function,
    /// Gives a table that the script builds an order of its keys.
    ordered: Function,
    /// Is inserted between the operands of `..`, to format numbers as gopher-lua does.
    dots: mlua::AnyUserData,
    /// The compiled source.
    chunk: Function,
}

/// The size, in percent of the live memory, at which the next garbage collection begins.
///
/// Lua 5.1 does not collect when memory runs out. With its default of 200 a script could only use
/// half of the limit.
const GC_PAUSE: i32 = 120;

/// Bytes that a state may keep until its next run without a collection.
const GARBAGE_BYTES_MAX: usize = 1 << 20;

impl State {
    /// Returns `true` if a run since the last [`State::reset`] lasted for `time` or longer.
    pub(super) fn has_lasted(&self, time: Duration, limits: &Limits) -> bool {
        self.budget.has_lasted(time, limits)
    }

    /// Creates a state and compiles the script.
    ///
    /// The limits of a run do not hold yet: [`SOURCE_BYTES_MAX`](super::SOURCE_BYTES_MAX) bounds the work.
    ///
    /// # Errors
    /// The source does not compile.
    pub(super) fn new(script: &Script, limits: &Limits) -> Result<Self, ScriptError> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default())
            .map_err(|error| describe(&error, script.function(), limits, None))?;
        let budget = Arc::new(Budget::new());
        let state = Self::build(lua, budget, script);
        state.map_err(|error| describe(&error, script.function(), limits, None))
    }

    /// Installs the library, rewrites and compiles the source, and starts the hook.
    fn build(lua: Lua, budget: Arc<Budget>, script: &Script) -> mlua::Result<Self> {
        let (fresh, ordered, dots) = library::install(&lua, &budget)?;
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(GC_PAUSE)));
        let source = jump::rewrite(script.source());
        let ordered_source = order::rewrite(&source);
        // A source with, for example, a hundred concatenations in a row may exceed a limit of Lua once it is rewritten.
        // Then its numbers are formatted as in C, or its tables lose their order as well.
        let chunk = load(&lua, &with_arguments(&concat::rewrite(&ordered_source)))
            .or_else(|_| load(&lua, &with_arguments(&ordered_source)))
            .or_else(|_| load(&lua, &source))?;
        watch(&lua, Arc::clone(&budget), hook_interval(0))?;
        Ok(Self { lua, budget, fresh, ordered, dots, chunk })
    }

    /// Loads the script into fresh globals, calls its function, and returns the first `n_results`
    /// values.
    ///
    /// # Errors
    /// The error of the script. After [`ErrorClass::Timeout`] and [`ErrorClass::Memory`] the state must not be used
    /// again; [`State::reset`] reports that.
    pub(super) fn call(
        &self,
        script: &Script,
        limits: &Limits,
        args: &[&Value],
        n_results: usize,
    ) -> Result<Vec<Returned>, ScriptError> {
        self.budget.start(limits);
        self.run_and_convert(script, limits, args, n_results).inspect_err(|error| {
            // The library records an allocation that failed below a `pcall`, but no other one.
            if error.class() == ErrorClass::Memory {
                self.budget.set_out_of_memory();
            }
        })
    }

    /// Runs the script, and converts its first `n_results` values.
    fn run_and_convert(
        &self,
        script: &Script,
        limits: &Limits,
        args: &[&Value],
        n_results: usize,
    ) -> Result<Vec<Returned>, ScriptError> {
        let values = self.run(script, limits, args).map_err(|failure| match failure {
            Failure::Lua(error) => describe(&error, script.function(), limits, Some(&self.budget)),
            Failure::Script(error) => error,
        })?;
        let mut values = values.into_iter();
        let results = (0..n_results)
            .map(|_| convert_result(&self.lua, values.next().unwrap_or(LuaValue::Nil), limits))
            .collect::<Result<Vec<_>, _>>();
        results.map_err(|error| match error {
            EncodeError::Lua(error) => describe(&error, script.function(), limits, Some(&self.budget)),
            EncodeError::TooLarge(_) => ScriptError::Memory {
                function: script.function().to_owned(),
                line: None,
                limit_bytes: limits.memory_bytes,
            },
            error => ScriptError::WrongResult {
                function: script.function().to_owned(),
                message: format!("encode lua result to json failed: {error}"),
            },
        })
    }

    /// Runs the script under its memory limit. The limit is lifted for conversions: their steps
    /// then need no protected calls, which doubles their speed. The memory that they allocated
    /// counts once the script starts.
    fn run(&self, script: &Script, limits: &Limits, args: &[&Value]) -> Result<MultiValue, Failure> {
        self.lua.set_memory_limit(0)?;
        // Everything that conversions allocate is still in use, so collecting garbage would be wasted time.
        self.lua.gc_stop();
        let (env, strings): (mlua::Table, mlua::Table) = self.fresh.call(())?;
        // A script may replace methods of strings, so each run gets its own.
        self.lua.set_type_metatable::<mlua::LuaString>(Some(strings));
        self.chunk.set_environment(env.clone())?;
        let args = args.iter().map(|arg| to_lua(&self.lua, arg, 0)).collect::<mlua::Result<MultiValue>>()?;
        self.lua.gc_restart();
        self.lua.set_memory_limit(limits.memory_bytes)?;
        self.chunk.call::<()>((&self.ordered, &self.dots))?;
        let name = script.function();
        let missing =
            |message: String| Failure::Script(ScriptError::Runtime { function: name.to_owned(), line: None, message });
        let function = match env.raw_get::<LuaValue>(name)? {
            LuaValue::Function(function) => function,
            LuaValue::Nil => return Err(missing(format!("not found function {name}: define it, as a global"))),
            value => return Err(missing(format!("{name} is not a function: {}", value.type_name()))),
        };
        let values = function.call(args)?;
        self.lua.set_memory_limit(0)?;
        self.lua.gc_stop();
        Ok(values)
    }

    /// Ends the run. Returns `true` if the state can serve another run, after freeing the garbage of the last one.
    pub(super) fn reset(&self) -> bool {
        // A call without an input starts no run. It must not count the time since the last one.
        self.budget.stop();
        if self.budget.is_exceeded() || self.budget.is_out_of_memory() {
            return false;
        }
        self.lua.used_memory() < GARBAGE_BYTES_MAX || self.free_garbage().is_ok()
    }

    /// Frees the globals of the last run with its other garbage: the chunk refers to them until the next run.
    fn free_garbage(&self) -> mlua::Result<()> {
        self.chunk.set_environment(self.lua.create_table()?)?;
        self.lua.gc_collect()
    }
}

/// Installs a hook that charges the budget after every `interval` instructions, and adapts the
/// interval to the size of the state.
fn watch(lua: &Lua, budget: Arc<Budget>, interval: u32) -> mlua::Result<()> {
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(interval), move |lua, _| {
        if let Err(error) = budget.charge(u64::from(interval)) {
            budget.set_line(library::script_line(lua));
            return Err(error);
        }
        let needed = hook_interval(lua.used_memory());
        if needed != interval {
            watch(lua, Arc::clone(&budget), needed)?;
        }
        Ok(VmState::Continue)
    })
}

/// Prepends the names that the rewritten source uses, as arguments of the chunk.
fn with_arguments(source: &str) -> String {
    format!("local {}, {} = ...; {source}", order::ORDERED, concat::DOTS)
}

/// The error of a run: one of Lua, still to be described, or one that is described already.
enum Failure {
    Lua(mlua::Error),
    Script(ScriptError),
}

impl From<mlua::Error> for Failure {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

/// Converts a returned value, with the memory limit as the bound of a table.
fn convert_result(lua: &Lua, value: LuaValue, limits: &Limits) -> Result<Returned, EncodeError> {
    Ok(match value {
        LuaValue::Boolean(value) => Returned::Bool(value),
        LuaValue::Number(value) => Returned::Number(value),
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        LuaValue::Integer(value) => Returned::Number(value as f64),
        LuaValue::Table(table) => Returned::Table(to_json(lua, &table, limits.memory_bytes)?),
        value => Returned::Other(value.type_name()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn idle_state_drops_large_globals() {
        let source = "list = {} for i = 1, 5e4 do list[i] = 'x' .. i end function ReflectStatus(o) return {} end";
        let (limits, object) = (Limits::default().time(Duration::from_secs(60)), json!({ "kind": "Widget" }));
        let script = Script::compile(source, "ReflectStatus").unwrap();
        let state = State::new(&script, &limits).unwrap();
        let _results = state.call(&script, &limits, &[&object], 1).unwrap();
        assert!(state.lua.used_memory() > GARBAGE_BYTES_MAX, "the globals are large");
        assert!(state.reset(), "no limit was exceeded");
        let n_bytes = state.lua.used_memory();
        assert!(n_bytes < GARBAGE_BYTES_MAX, "{n_bytes} bytes are still in use");
    }
}
