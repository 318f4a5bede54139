//! Arguments of library functions, checked as gopher-lua checks them and with its messages (`CheckInt`, `CheckString` and
//! others in `auxlib.go`).

use mlua::{Lua, MultiValue, Value};

use crate::lua::limits::Budget;
use crate::lua::number;

/// The maximum length of a string that the library works on, in bytes: Karmada's limit
/// (`maxInputStringParamsLen` in `pkg/util/lifted/lua/string_safe.go`).
pub(super) const STRING_BYTES_MAX: usize = 1_000_000;

/// The number of stack levels that are searched for the line of the script. A library function is a
/// few levels above it at most.
const LEVELS_MAX: usize = 16;

/// One call of a library function. Arguments are numbered from 1, as in Lua.
pub(super) struct Args<'a> {
    /// The state, to create values in.
    pub(super) lua: &'a Lua,
    pub(super) budget: &'a Budget,
    /// The name of the function in messages.
    pub(super) name: &'static str,
    /// All arguments.
    pub(super) values: MultiValue,
}

impl Args<'_> {
    /// Returns an error at the line of the script that called the function.
    pub(super) fn error_at_caller(&self, message: impl std::fmt::Display) -> mlua::Error {
        let line = script_line(self.lua);
        let position = line.map(|line| format!("<string>:{line}: ")).unwrap_or_default();
        mlua::Error::RuntimeError(format!("{position}{message}"))
    }

    pub(super) fn type_error(&self, n: usize, expected: &str) -> mlua::Error {
        let (name, got) = (self.name, type_name(self.value(n)));
        self.error_at_caller(format_args!("bad argument #{n} to {name} ({expected} expected, got {got})"))
    }

    /// Returns argument `n`; nil if it is absent.
    pub(super) fn value(&self, n: usize) -> &Value {
        self.values.get(n - 1).unwrap_or(&Value::Nil)
    }

    /// Returns argument `n`, which must be present, but may be nil.
    pub(super) fn any(&self, n: usize) -> mlua::Result<&Value> {
        let name = self.name;
        self.values
            .get(n - 1)
            .ok_or_else(|| self.error_at_caller(format_args!("bad argument #{n} to {name} (value expected)")))
    }

    /// Returns a string, or a number formatted as one.
    pub(super) fn string(&self, n: usize) -> mlua::Result<mlua::LuaString> {
        match self.value(n) {
            Value::String(string) => Ok(string.clone()),
            value => match as_number(value) {
                Some(number) => self.lua.create_string(number::text(number)),
                None => Err(self.type_error(n, "string")),
            },
        }
    }

    /// Returns a string of at most [`STRING_BYTES_MAX`] bytes, and charges for its length.
    pub(super) fn bounded_string(&self, n: usize) -> mlua::Result<mlua::LuaString> {
        let string = self.string(n)?;
        let n_bytes = string.as_bytes().len();
        if n_bytes > STRING_BYTES_MAX {
            return Err(self.error_at_caller(format_args!(
                "string length {n_bytes} exceeds the maximum of {STRING_BYTES_MAX} for the string library"
            )));
        }
        // A thousand bytes cost about as much as a few instructions of the virtual machine.
        self.budget.charge(1 + n_bytes as u64 / 8)?;
        Ok(string)
    }

    /// Returns a number, or a string that is one.
    pub(super) fn number(&self, n: usize) -> mlua::Result<f64> {
        let number = match self.value(n) {
            Value::String(text) => text.to_str().ok().and_then(|text| number::parse(&text)),
            value => as_number(value),
        };
        number.ok_or_else(|| self.type_error(n, "number"))
    }

    /// Returns a number truncated to an integer. Strings are not accepted.
    pub(super) fn int(&self, n: usize) -> mlua::Result<i64> {
        as_number(self.value(n)).map(number::truncate).ok_or_else(|| self.type_error(n, "number"))
    }

    /// Returns a number truncated to an integer; `None` for nil.
    pub(super) fn opt_int(&self, n: usize) -> mlua::Result<Option<i64>> {
        if self.value(n).is_nil() { Ok(None) } else { self.int(n).map(Some) }
    }

    pub(super) fn table(&self, n: usize) -> mlua::Result<&mlua::Table> {
        self.value(n).as_table().ok_or_else(|| self.type_error(n, "table"))
    }

    /// Returns a string as the only result of a function.
    pub(super) fn text(&self, text: impl AsRef<[u8]>) -> mlua::Result<MultiValue> {
        let text = self.lua.create_string(text)?;
        Ok(single_result(Value::String(text)))
    }
}

/// Returns the running line of the script, if the script is near the top of the stack.
pub(in crate::lua) fn script_line(lua: &Lua) -> Option<usize> {
    (0..LEVELS_MAX).find_map(|level| {
        lua.inspect_stack(level, |debug| {
            let is_script = debug.source().short_src.is_some_and(|source| source == "<string>");
            is_script.then(|| debug.current_line()).flatten()
        })?
    })
}

/// Returns a number as a double. mlua passes whole numbers as integers, although Lua has only
/// doubles.
pub(super) fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(value) => Some(*value),
        #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
        Value::Integer(value) => Some(*value as f64),
        _ => None,
    }
}

/// Returns the name of a type, as `type` does.
pub(super) fn type_name(value: &Value) -> &'static str {
    if value.is_integer() { "number" } else { value.type_name() }
}

/// Formats any value, as `tostring` does.
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

/// Returns one value as the only result of a function.
pub(super) fn single_result(value: Value) -> MultiValue {
    MultiValue::from_iter([value])
}
