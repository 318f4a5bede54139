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
        let line = script_line(self.lua);
        let position = line.map(|line| format!("<string>:{line}: ")).unwrap_or_default();
        mlua::Error::RuntimeError(format!("{position}{message}"))
    }

    pub(super) fn type_error(&self, n: usize, expected: &str) -> mlua::Error {
        let (name, got) = (self.name, type_name(self.value(n)));
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
            value => match as_number(value) {
                Some(number) => self.lua.create_string(number::text(number)),
                None => Err(self.type_error(n, "string")),
            },
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
        let number = match self.value(n) {
            Value::String(text) => text.to_str().ok().and_then(|text| number::parse(&text)),
            value => as_number(value),
        };
        number.ok_or_else(|| self.type_error(n, "number"))
    }

    /// Returns a number, cut to an integer; strings are not read.
    pub(super) fn int(&self, n: usize) -> mlua::Result<i64> {
        as_number(self.value(n)).map(number::truncate).ok_or_else(|| self.type_error(n, "number"))
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

/// Returns the script's line that runs, if the script is near the top of the stack.
pub(in crate::lua) fn script_line(lua: &Lua) -> Option<usize> {
    (0..LEVELS_MAX).find_map(|level| {
        lua.inspect_stack(level, |debug| {
            let is_script = debug.source().short_src.is_some_and(|source| source == "<string>");
            is_script.then(|| debug.current_line()).flatten()
        })?
    })
}

/// Returns a number; mlua hands integral ones over as integers.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(value) => Some(*value),
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        Value::Integer(value) => Some(*value as f64),
        _ => None,
    }
}

/// Returns the name of `type`.
pub(super) fn type_name(value: &Value) -> &'static str {
    if value.is_integer() { "number" } else { value.type_name() }
}

/// Returns the text of any value, as `tostring`.
pub(super) fn display(value: &Value) -> String {
    match value {
        Value::Nil => "nil".to_owned(),
        Value::Boolean(value) => value.to_string(),
        Value::String(value) => value.to_string_lossy(),
        value => {
            as_number(value).map_or_else(|| format!("{}: {:p}", value.type_name(), value.to_pointer()), number::text)
        }
    }
}

/// Returns the one result of a function.
pub(super) fn one(value: Value) -> MultiValue {
    MultiValue::from_iter([value])
}
