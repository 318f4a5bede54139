//! The arguments of a library function: checked as gopher-lua checks them, with its messages.

use mlua::{Lua, MultiValue, Value};

use crate::lua::limits::Budget;
use crate::lua::number;

/// Bytes of a string that the library works on; Karmada's limit.
pub(super) const STRING_BYTES_MAX: usize = 1_000_000;

/// Levels of the stack that are searched for the script's line: a library function is at most a few below it.
const LEVELS_MAX: usize = 16;

/// One call of a library function.
pub(super) struct Args<'a> {
    pub(super) lua: &'a Lua,
    pub(super) budget: &'a Budget,
    /// The name in messages.
    pub(super) name: &'static str,
    pub(super) values: MultiValue,
}

impl Args<'_> {
    /// Returns an error of the script's line that called.
    pub(super) fn raise(&self, message: impl std::fmt::Display) -> mlua::Error {
        let line = (0..LEVELS_MAX).find_map(|level| {
            self.lua.inspect_stack(level, |debug| {
                let is_script = debug.source().short_src.is_some_and(|source| source == "<string>");
                is_script.then(|| debug.current_line()).flatten()
            })?
        });
        let position = line.map(|line| format!("<string>:{line}: ")).unwrap_or_default();
        mlua::Error::RuntimeError(format!("{position}{message}"))
    }

    pub(super) fn type_error(&self, n: usize, expected: &str) -> mlua::Error {
        let (name, got) = (self.name, self.value(n).type_name());
        // The library gives errors to scripts only as strings, so none sees a name of mlua's here.
        self.raise(format_args!("bad argument #{n} to {name} ({expected} expected, got {got})"))
    }

    /// Returns argument `n`, from 1; nil if it is absent.
    pub(super) fn value(&self, n: usize) -> &Value {
        self.values.get(n - 1).unwrap_or(&Value::Nil)
    }

    pub(super) fn any(&self, n: usize) -> mlua::Result<&Value> {
        let name = self.name;
        self.values.get(n - 1).ok_or_else(|| self.raise(format_args!("bad argument #{n} to {name} (value expected)")))
    }

    /// Returns a string, or the text of a number.
    pub(super) fn string(&self, n: usize) -> mlua::Result<mlua::LuaString> {
        match self.value(n) {
            Value::String(string) => Ok(string.clone()),
            Value::Number(value) => self.lua.create_string(number::text(*value)),
            Value::Integer(value) => self.lua.create_string(value.to_string()),
            _ => Err(self.type_error(n, "string")),
        }
    }

    /// Returns a string that is short enough to work on, and charges for it.
    pub(super) fn bounded_string(&self, n: usize) -> mlua::Result<mlua::LuaString> {
        let string = self.string(n)?;
        let n_bytes = string.as_bytes().len();
        if n_bytes > STRING_BYTES_MAX {
            return Err(self.raise(format_args!(
                "string length {n_bytes} exceeds the maximum of {STRING_BYTES_MAX} for the string library"
            )));
        }
        // A thousand bytes cost about as much as a few instructions of the virtual machine.
        self.budget.charge(1 + n_bytes as u64 / 8)?;
        Ok(string)
    }

    pub(super) fn number(&self, n: usize) -> mlua::Result<f64> {
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        let number = match self.value(n) {
            Value::Number(value) => Some(*value),
            Value::Integer(value) => Some(*value as f64),
            Value::String(text) => text.to_str().ok().and_then(|text| number::parse(&text)),
            _ => None,
        };
        number.ok_or_else(|| self.type_error(n, "number"))
    }

    /// Returns a number, cut to an integer; strings are not read.
    pub(super) fn int(&self, n: usize) -> mlua::Result<i64> {
        match self.value(n) {
            Value::Number(value) => Ok(number::truncate(*value)),
            Value::Integer(value) => Ok(*value),
            _ => Err(self.type_error(n, "number")),
        }
    }

    pub(super) fn opt_int(&self, n: usize) -> mlua::Result<Option<i64>> {
        if self.value(n).is_nil() { Ok(None) } else { self.int(n).map(Some) }
    }

    pub(super) fn table(&self, n: usize) -> mlua::Result<&mlua::Table> {
        self.value(n).as_table().ok_or_else(|| self.type_error(n, "table"))
    }

    pub(super) fn text(&self, text: impl AsRef<[u8]>) -> mlua::Result<MultiValue> {
        let text = self.lua.create_string(text)?;
        Ok(one(Value::String(text)))
    }
}

/// Returns the text of any value, as `tostring`.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::Number(value) => number::text(*value),
        Value::Integer(value) => value.to_string(),
        Value::String(value) => value.to_string_lossy(),
        value => format!("{}: {:p}", value.type_name(), value.to_pointer()),
    }
}

/// Returns the one result of a function.
pub(super) fn one(value: Value) -> MultiValue {
    MultiValue::from_iter([value])
}
