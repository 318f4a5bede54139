//! Compiles sources of Lua, and converts the errors of Lua to script errors.

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib};

use super::error::{ScriptError, split_position};
use super::jump;
use super::library;
use super::limits::{Budget, Limits};

/// Compiles a source as text. Binary chunks are rejected, because Lua does not verify them.
pub(super) fn load(lua: &Lua, source: &str) -> mlua::Result<Function> {
    lua.load(source).set_name("=<string>").set_mode(ChunkMode::Text).into_function()
}

/// Checks in a temporary state that the source of a function compiles.
///
/// # Errors
/// The source is not valid Lua 5.1.
pub(super) fn check_syntax(source: &str, function: &str) -> Result<(), ScriptError> {
    let checked = Lua::new_with(StdLib::NONE, LuaOptions::default())
        .and_then(|lua| load(&lua, &jump::rewrite(source)).map(|_| ()));
    checked.map_err(|error| describe(&error, function, &Limits::default(), None))
}

/// Converts an error of Lua to a [`ScriptError`]. The budget decides first, because a script can
/// replace the message of a limit.
pub(super) fn describe(error: &mlua::Error, function: &str, limits: &Limits, budget: Option<&Budget>) -> ScriptError {
    let function = function.to_owned();
    let (line, message) = split_position(&library::message(error));
    if budget.is_some_and(Budget::is_exceeded) {
        let line = budget.and_then(Budget::line).or(line);
        return ScriptError::Timeout { function, line, limit: limits.time };
    }
    match library::root_cause(error) {
        mlua::Error::SyntaxError { .. } => ScriptError::Syntax { function, line, message },
        mlua::Error::MemoryError(_) => ScriptError::Memory { function, line, limit_bytes: limits.memory_bytes },
        _ if budget.is_some_and(Budget::is_out_of_memory) => {
            ScriptError::Memory { function, line, limit_bytes: limits.memory_bytes }
        }
        _ => ScriptError::Runtime { function, line, message },
    }
}
