//! JSON values into Lua and back, as gopher-json does it.

use std::collections::HashSet;
use std::ffi::c_void;

use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use super::number;

/// Levels of nesting of a value, in and out: the depth at which `serde_json` stops reading.
pub(super) const DEPTH_MAX: usize = 128;

/// Why a value of Lua has no JSON form.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("cannot encode sparse array")]
    SparseArray,
    #[error("cannot encode mixed or invalid key types")]
    InvalidKeys,
    /// Also a table that is referenced twice: Karmada refuses it, and a script that works here should work there.
    #[error("cannot encode recursively nested tables to JSON: copy a table that the result holds twice")]
    Nested,
    #[error("cannot encode {0} to JSON")]
    InvalidType(&'static str),
    #[error("cannot encode {0} to JSON: a number must be finite")]
    NotFinite(String),
    #[error("cannot encode tables nested more than {DEPTH_MAX} deep to JSON")]
    TooDeep,
    #[error("cannot encode more than {0} bytes to JSON")]
    TooLarge(usize),
    #[error("{0}")]
    Lua(#[from] mlua::Error),
}

/// Turns JSON into a value of Lua. Numbers become doubles; `null` becomes `nil`, so that its key vanishes, and an
/// element `null` of a list too: the elements behind it move up.
///
/// # Errors
/// The memory of the state is used up, or the value is nested too deep.
pub(super) fn to_lua(lua: &Lua, value: &Value, depth: usize) -> mlua::Result<LuaValue> {
    if depth > DEPTH_MAX {
        return Err(mlua::Error::runtime(format!("the object is nested more than {DEPTH_MAX} deep")));
    }
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(value) => LuaValue::Number(value.as_f64().unwrap_or(f64::NAN)),
        Value::String(value) => LuaValue::String(lua.create_string(value)?),
        Value::Array(values) => {
            let table = lua.create_table_with_capacity(values.len(), 0)?;
            let present = values.iter().filter(|value| !value.is_null());
            for (idx, value) in present.enumerate() {
                table.raw_set(idx + 1, to_lua(lua, value, depth + 1)?)?;
            }
            LuaValue::Table(table)
        }
        Value::Object(values) => {
            let table = lua.create_table_with_capacity(0, values.len())?;
            for (key, value) in values {
                table.raw_set(key.as_str(), to_lua(lua, value, depth + 1)?)?;
            }
            LuaValue::Table(table)
        }
    })
}

/// Turns a table into JSON. A table without keys is `[]`: what it should be is for the repair of empty tables.
///
/// # Errors
/// The table has no JSON form, or it has more than `bytes_max` bytes.
pub(super) fn to_json(table: &Table, bytes_max: usize) -> Result<Value, EncodeError> {
    Encoder { visited: HashSet::new(), bytes_left: bytes_max, bytes_max }.table(table, 0)
}

struct Encoder {
    visited: HashSet<*const c_void>,
    /// Strings are shared in Lua and copied here, so the memory of the state does not bound the result.
    bytes_left: usize,
    bytes_max: usize,
}

/// Bytes that each value counts at least: the size of a [`Value`].
const VALUE_BYTES: usize = size_of::<Value>();

impl Encoder {
    fn spend(&mut self, bytes: usize) -> Result<(), EncodeError> {
        self.bytes_left =
            self.bytes_left.checked_sub(bytes + VALUE_BYTES).ok_or(EncodeError::TooLarge(self.bytes_max))?;
        Ok(())
    }

    fn value(&mut self, value: &LuaValue, depth: usize) -> Result<Value, EncodeError> {
        match value {
            LuaValue::Boolean(value) => Ok(Value::Bool(*value)),
            LuaValue::Number(value) => number_to_json(*value),
            LuaValue::Integer(value) => Ok(Value::from(*value)),
            LuaValue::String(value) => self.string(value).map(Value::String),
            LuaValue::Table(table) => self.table(table, depth + 1),
            value => Err(EncodeError::InvalidType(value.type_name())),
        }
    }

    fn string(&mut self, string: &mlua::LuaString) -> Result<String, EncodeError> {
        let bytes = string.as_bytes();
        self.spend(bytes.len())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Value, EncodeError> {
        if depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep);
        }
        if !self.visited.insert(table.to_pointer()) {
            return Err(EncodeError::Nested);
        }
        self.spend(0)?;
        let n_array = table.raw_len();
        if n_array > 0 { self.array(table, n_array, depth) } else { self.object(table, depth) }
    }

    fn array(&mut self, table: &Table, n_array: usize, depth: usize) -> Result<Value, EncodeError> {
        let mut values = Vec::new();
        for idx in 1..=n_array {
            match table.raw_get::<LuaValue>(idx)? {
                LuaValue::Nil => return Err(EncodeError::SparseArray),
                value => {
                    self.spend(0)?;
                    values.push(self.value(&value, depth)?);
                }
            }
        }
        // The length of a table with a hole is any of its borders: what is behind shows in the number of keys.
        let mut n_keys = 0;
        for pair in table.pairs::<LuaValue, LuaValue>() {
            n_keys += 1;
            if !matches!(pair?.0, LuaValue::Number(_) | LuaValue::Integer(_)) {
                return Err(EncodeError::InvalidKeys);
            }
        }
        if n_keys == n_array { Ok(Value::Array(values)) } else { Err(EncodeError::SparseArray) }
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<Value, EncodeError> {
        let mut object = Map::new();
        for pair in table.pairs::<LuaValue, LuaValue>() {
            match pair? {
                (LuaValue::String(key), value) => {
                    let key = self.string(&key)?;
                    let value = self.value(&value, depth)?;
                    object.insert(key, value);
                }
                (LuaValue::Number(_) | LuaValue::Integer(_), _) if object.is_empty() => {
                    return Err(EncodeError::SparseArray);
                }
                _ => return Err(EncodeError::InvalidKeys),
            }
        }
        Ok(if object.is_empty() { Value::Array(Vec::new()) } else { Value::Object(object) })
    }
}

/// Writes an integer that fits without a point, as Go prints doubles.
fn number_to_json(value: f64) -> Result<Value, EncodeError> {
    if let Some(int) = number::as_int(value) {
        return Ok(Value::from(int));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| EncodeError::NotFinite(number::text(value)))
}
