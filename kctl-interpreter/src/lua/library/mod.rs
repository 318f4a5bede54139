//! The library that scripts see: Lua 5.1 as Karmada opens it, on functions that charge the budget of the run.
//!
//! `base.lua` builds a fresh set of globals for each run from the functions here and the harmless ones of Lua itself.

mod args;
mod format;
mod kube;
mod os;
mod pattern;
mod string;
mod table;

use std::sync::Arc;

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::error::without_library_position;
use super::limits::Budget;
use super::number;
pub(super) use args::script_line;
use args::{Args, one};

/// Builds `fresh`, the function that returns the globals and the string library of a run, and `ordered`, which gives a
/// table an order of its keys.
pub(super) fn install(lua: &Lua, budget: &Arc<Budget>) -> mlua::Result<(Function, Function)> {
    let library = Library { lua, budget, table: lua.create_table()? };
    base(&library)?;
    string::register(&library)?;
    table::register(&library)?;
    os::register(&library)?;
    kube::register(&library)?;
    lua.load(include_str!("base.lua")).set_name("=[kctl]").call((library.table, lua.globals()))
}

/// What a call of the library costs before it does anything, in instructions of the virtual machine.
const CALL_STEPS: u64 = 20;

/// What an error costs: a traceback, and the way through two languages.
const ERROR_STEPS: u64 = 500;

/// The functions of Rust that `base.lua` arranges, by name.
struct Library<'a> {
    lua: &'a Lua,
    budget: &'a Arc<Budget>,
    table: Table,
}

impl Library<'_> {
    /// Adds a function: `name` is the key in the table for `base.lua`, its last word the name in error messages.
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

fn base(library: &Library<'_>) -> mlua::Result<()> {
    library.add("raise", |args| Err(args.raise(args.string(1)?.to_string_lossy())))?;
    library.add("charge", |args| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "base.lua passes small counts")]
        args.budget.charge(args.number(1)? as u64)?;
        Ok(MultiValue::new())
    })?;
    library.add("caught", |args| {
        // A limit is no error to catch: raising it again in each `pcall` on the way out ends the run.
        args.budget.charge(1)?;
        match args.value(1) {
            Value::Error(error) => {
                if matches!(root_cause(error), mlua::Error::MemoryError(_)) {
                    args.budget.set_out_of_memory();
                    args.budget.charge(1)?;
                }
                args.text(message(error))
            }
            Value::String(text) if text.as_bytes() == *b"not enough memory" => {
                args.budget.set_out_of_memory();
                Err(mlua::Error::MemoryError("not enough memory".to_owned()))
            }
            Value::String(text) => {
                let without = text.to_str().ok().and_then(|text| without_library_position(&text).map(str::to_owned));
                without.map_or_else(|| Ok(one(Value::String(text.clone()))), |text| args.text(text))
            }
            value => Ok(one(value.clone())),
        }
    })?;
    library.add("number_text", |args| args.text(number::text(args.number(1)?)))?;
    library.add("tonumber", to_number)?;
    library.add("random", |args| Ok(one(Value::Number(args.budget.random()))))?;
    library.add("randomseed", |args| {
        args.budget.seed_random(args.int(1)?.unsigned_abs());
        Ok(MultiValue::new())
    })?;
    library.add("print", |args| {
        let text = args.values.iter().map(args::display).collect::<Vec<_>>().join("\t");
        let shown: String = text.chars().take(PRINT_CHARS_MAX).collect();
        tracing::debug!(target: "kctl_interpreter::lua", "{shown}");
        Ok(MultiValue::new())
    })
}

/// Characters of one `print`; the rest is cut, for a script that prints an object in a loop.
const PRINT_CHARS_MAX: usize = 4096;

fn to_number(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let base = args.opt_int(2)?.map(|base| u32::try_from(base).unwrap_or_default());
    if base.is_some_and(|base| !(2..=36).contains(&base)) {
        return Ok(one(Value::Nil));
    }
    match args.any(1)? {
        Value::String(text) => {
            let text = text.as_bytes();
            args.budget.charge(text.len() as u64 / 8)?;
            let number = std::str::from_utf8(&text).ok().and_then(|text| number::to_number(text, base));
            Ok(one(number.map_or(Value::Nil, Value::Number)))
        }
        number @ (Value::Number(_) | Value::Integer(_)) => Ok(one(number.clone())),
        _ => Ok(one(Value::Nil)),
    }
}

/// Returns the error under those that only say where it was raised.
pub(super) fn root_cause(error: &mlua::Error) -> &mlua::Error {
    match error {
        mlua::Error::CallbackError { cause, .. } => root_cause(cause),
        error => error,
    }
}

/// Returns the text of an error as a script should see it.
pub(super) fn message(error: &mlua::Error) -> String {
    match root_cause(error) {
        mlua::Error::RuntimeError(message) => message.clone(),
        error => error.to_string(),
    }
}
