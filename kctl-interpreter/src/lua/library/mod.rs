//! The library that scripts see: Lua 5.1 as Karmada opens it (`setLib` in
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go`), on functions that charge the budget of the run.
//!
//! `base.lua` builds fresh globals for each run from the functions of this folder and the harmless
//! ones of Lua itself. Scripts get `table`, `string`, `math`, `os` with `time` and `date`, and
//! `require("kube")`. There is no `io`, `debug` or `coroutine`. Functions that Karmada disables,
//! such as `load` and `setmetatable`, raise its message.
//!
//! Each function counts its work in steps of the virtual machine, because the hook sees no
//! instruction while Rust or C runs. All of them are bounded in input and output.

mod args;
mod format;
mod kube;
mod os;
mod pattern;
mod string;
mod table;

use std::sync::Arc;

use mlua::{AnyUserData, Function, Lua, MultiValue, Table, Value};

use super::error::without_library_position;
use super::limits::Budget;
use super::number;
pub(super) use args::script_line;
use args::{Args, single_result};

/// Installs the library, and returns three values for the state:
///
/// - `fresh`: a function that returns the globals and the string library of a run.
/// - `ordered`: a function that gives a table an order of its keys.
/// - `dots`: a value whose `..` formats numbers as gopher-lua does.
pub(super) fn install(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<(Function, Function, AnyUserData)> {
    let library = Library { lua, budget, table: lua.create_table()? };
    base(&library)?;
    string::register(&library)?;
    table::register(&library)?;
    os::register(&library)?;
    kube::register(&library)?;
    let globals = private_globals(lua)?;
    lua.load(include_str!("base.lua")).set_name("=[kctl]").call((library.table, globals))
}

/// Moves the globals of a state to a table that scripts don't see, and returns it.
///
/// An error of a library function writes a traceback, and for each function of the stack Lua
/// searches the globals. With empty globals that is fast.
fn private_globals(lua: &Lua) -> mlua::Result<Table> {
    let (globals, private) = (lua.globals(), lua.create_table()?);
    globals.for_each(|name: Value, value: Value| private.raw_set(name, value))?;
    globals.clear()?;
    Ok(private)
}

/// The cost of a call of the library before it does anything, in instructions of the virtual
/// machine.
const CALL_STEPS: u64 = 20;

/// The cost of an error, in instructions: it writes a traceback and passes through two languages.
const ERROR_STEPS: u64 = 500;

/// The functions of Rust that `base.lua` arranges, by name.
struct Library<'a> {
    /// The state.
    lua: &'a Lua,
    /// The budget that each function charges.
    budget: &'a Arc<Budget>,
    /// The functions by name.
    table: Table,
}

impl Library<'_> {
    /// Adds a function. `name` is the key in the table for `base.lua`; its last word is the name in
    /// error messages.
    fn add<F>(&self, name: &'static str, function: F) -> mlua::Result<()>
    where
        F: Fn(&Args<'_>) -> mlua::Result<MultiValue> + Send + 'static,
    {
        let budget = Arc::clone(self.budget);
        let short = name.rsplit('.').next().unwrap_or(name);
        let function = self.lua.create_function(move |lua, values: MultiValue| {
            let charged = budget.charge(CALL_STEPS);
            let result = charged.and_then(|()| function(&Args { lua, budget: &budget, name: short, values }));
            let result = result.or_else(|error| budget.charge(ERROR_STEPS).and(Err(error)));
            if budget.is_exceeded() {
                budget.set_line(script_line(lua));
            }
            result
        })?;
        self.table.raw_set(name, function)
    }
}

/// Adds the functions that `base.lua` itself needs, and those without a library: `tonumber`,
/// `print`, `random`.
fn base(library: &Library<'_>) -> mlua::Result<()> {
    library.add("raise", |args| Err(args.error_at_caller(args.string(1)?.to_string_lossy())))?;
    library.add("charge", |args| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "base.lua passes small counts")]
        args.budget.charge(args.number(1)? as u64)?;
        Ok(MultiValue::new())
    })?;
    let budget = Arc::clone(library.budget);
    let caught = library.lua.create_function(move |lua, error: Value| pcall_result(lua, &budget, error))?;
    library.table.raw_set("caught", caught)?;
    library.add("number_text", |args| args.text(number::text(args.number(1)?)))?;
    library.add("tonumber", to_number)?;
    library.add("random", |args| Ok(single_result(Value::Number(args.budget.random()))))?;
    library.add("randomseed", |args| {
        args.budget.seed_random(args.int(1)?.unsigned_abs());
        Ok(MultiValue::new())
    })?;
    library.add("print", |args| {
        tracing::debug!(target: "kctl_interpreter::lua", "{}", format_print_arguments(&args.values));
        Ok(MultiValue::new())
    })
}

/// Returns `true` and the error as the script sees it, if the script may catch the error.
///
/// A limit may not be caught: each `pcall` on the way out raises it again, which ends the run.
/// `base.lua` does that, because an error from here would write a traceback each time.
fn pcall_result(lua: &Lua, budget: &Budget, error: Value) -> mlua::Result<(bool, Value)> {
    const END: (bool, Value) = (false, Value::Nil);
    if budget.charge(CALL_STEPS).is_err() {
        if budget.is_exceeded() {
            budget.set_line(script_line(lua));
        }
        return Ok(END);
    }
    let text = match &error {
        Value::Error(error) if matches!(root_cause(error), mlua::Error::MemoryError(_)) => {
            budget.set_out_of_memory();
            return Ok(END);
        }
        Value::Error(error) => message(error),
        Value::String(text) if *text.as_bytes() == *b"not enough memory" => {
            budget.set_out_of_memory();
            return Ok(END);
        }
        Value::String(text) => {
            let without = text.to_str().ok().and_then(|text| without_library_position(&text).map(str::to_owned));
            let Some(text) = without else { return Ok((true, error)) };
            text
        }
        _ => return Ok((true, error)),
    };
    lua.create_string(text).map(|text| (true, Value::String(text)))
}

/// Joins values as `print` does, up to [`PRINT_BYTES_MAX`]: thousands of arguments may be one long
/// string.
fn format_print_arguments(values: &MultiValue) -> String {
    let mut text = String::new();
    for (idx, value) in values.iter().enumerate() {
        if text.len() >= PRINT_BYTES_MAX {
            break;
        }
        if idx > 0 {
            text.push('\t');
        }
        match value {
            Value::String(value) => {
                let bytes = value.as_bytes();
                text.push_str(&String::from_utf8_lossy(&bytes[..bytes.len().min(PRINT_BYTES_MAX)]));
            }
            value => text.push_str(&args::display(value)),
        }
    }
    let mut end = text.len().min(PRINT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// The maximum length of one `print`, in bytes; the rest is cut. Output goes to the log at debug
/// level.
const PRINT_BYTES_MAX: usize = 4096;

/// `tonumber(value, base)`. As in gopher-lua (`baseToNumber` in `baselib.go`) a string without a point must be an integer,
/// so `1e3` gives nil. A base outside of 2 to 36 gives nil too.
fn to_number(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let base = args.opt_int(2)?.map(|base| u32::try_from(base).unwrap_or_default());
    if base.is_some_and(|base| !(2..=36).contains(&base)) {
        return Ok(single_result(Value::Nil));
    }
    match args.any(1)? {
        Value::String(text) => {
            let text = text.as_bytes();
            args.budget.charge(text.len() as u64 / 8)?;
            let number = std::str::from_utf8(&text).ok().and_then(|text| number::to_number(text, base));
            Ok(single_result(number.map_or(Value::Nil, Value::Number)))
        }
        number @ (Value::Number(_) | Value::Integer(_)) => Ok(single_result(number.clone())),
        _ => Ok(single_result(Value::Nil)),
    }
}

/// Returns the innermost error, without the wrappers that mlua adds for each callback.
pub(super) fn root_cause(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => root_cause(cause),
        error => error,
    }
}

/// Returns the message of an error as a script sees it.
pub(super) fn message(error: &mlua::Error) -> String {
    match root_cause(error) {
        mlua::Error::RuntimeError(message) => message.clone(),
        error => error.to_string(),
    }
}
