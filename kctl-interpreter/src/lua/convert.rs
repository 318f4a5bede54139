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
pub(super) fn to_json(lua: &Lua, table: &Table, bytes_max: usize) -> Result<Value, EncodeError> {
    Encoder { lua, visited: HashSet::new(), bytes_left: bytes_max, bytes_max }.table(table, 0)
}

struct Encoder<'a> {
    lua: &'a Lua,
    visited: HashSet<*const c_void>,
    /// Strings are shared in Lua and copied here, so the memory of the state does not bound the result.
    bytes_left: usize,
    bytes_max: usize,
}

/// Bytes that each value counts at least: the size of a [`Value`].
const VALUE_BYTES: usize = size_of::<Value>();

impl Encoder<'_> {
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
        Ok(text(&bytes))
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
        let (mut n_keys, mut has_other) = (0, false);
        table.for_each(|key: LuaValue, _: LuaValue| {
            n_keys += 1;
            has_other |= !matches!(key, LuaValue::Number(_) | LuaValue::Integer(_));
            Ok(())
        })?;
        if has_other {
            return Err(EncodeError::InvalidKeys);
        }
        if n_keys == n_array { Ok(Value::Array(values)) } else { Err(EncodeError::SparseArray) }
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<Value, EncodeError> {
        let (mut object, mut nested, mut failure) = (Map::new(), Vec::new(), None);
        // One walk costs much less than a step for each field. Tables wait until it is over: walks must not nest, since
        // C has few levels, and a reference to each table would fill the stack of references.
        let walked = table.for_each(|key: LuaValue, value: LuaValue| {
            self.field(&key, &value, depth, &mut object, &mut nested).map_err(|error| {
                failure = Some(error);
                mlua::Error::runtime("the table has no JSON form")
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        walked?;
        for key in nested {
            let value = table.raw_get(self.lua.create_string(&key)?)?;
            object.insert(text(&key), self.table(&value, depth + 1)?);
        }
        Ok(if object.is_empty() { Value::Array(Vec::new()) } else { Value::Object(object) })
    }

    /// Adds a field to the object, or the key of one that is a table to `nested`.
    fn field(
        &mut self,
        key: &LuaValue,
        value: &LuaValue,
        depth: usize,
        object: &mut Map<String, Value>,
        nested: &mut Vec<Vec<u8>>,
    ) -> Result<(), EncodeError> {
        match (key, value) {
            (LuaValue::String(key), LuaValue::Table(_)) => {
                let key = key.as_bytes().to_vec();
                self.spend(key.len())?;
                nested.push(key);
            }
            (LuaValue::String(key), value) => {
                let key = self.string(key)?;
                object.insert(key, self.value(value, depth)?);
            }
            (LuaValue::Number(_) | LuaValue::Integer(_), _) if object.is_empty() && nested.is_empty() => {
                return Err(EncodeError::SparseArray);
            }
            _ => return Err(EncodeError::InvalidKeys),
        }
        Ok(())
    }
}

/// Reads bytes as text; each byte that is no part of UTF-8 becomes a replacement character, as in Go.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Writes an integer that fits without a point, as Go prints doubles.
fn number_to_json(value: f64) -> Result<Value, EncodeError> {
    if let Some(int) = number::as_int(value) {
        return Ok(Value::from(int));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| EncodeError::NotFinite(number::text(value)))
}

#[cfg(test)]
mod tests {
    use mlua::Lua;
    use serde_json::{Value, json};

    use super::{DEPTH_MAX, EncodeError, text, to_json, to_lua};

    fn encode(source: &str) -> Result<Value, EncodeError> {
        let lua = Lua::new();
        to_json(&lua, &lua.load(source).eval()?, 1 << 20)
    }

    #[test]
    fn tables_become_lists_or_objects() {
        for (source, expected) in [
            ("{}", json!([])),
            ("{1, 'x', true}", json!([1, "x", true])),
            ("{a = 1.5, b = {c = {}}}", json!({"a": 1.5, "b": {"c": []}})),
            ("{[1] = 'a', [2] = 'b'}", json!(["a", "b"])),
            ("{['1'] = 'a'}", json!({"1": "a"})),
            ("{a = nil, b = 1}", json!({"b": 1})),
            ("{2^53, 1e21, -0.0}", json!([9_007_199_254_740_992_i64, 1e21, 0])),
            ("{'\\255a\\226\\130'}", json!(["\u{fffd}a\u{fffd}\u{fffd}"])),
        ] {
            assert_eq!(encode(source).unwrap(), expected, "{source}");
        }
        assert_eq!(text("é".as_bytes()), "é");
    }

    #[test]
    fn tables_without_a_json_form_are_errors() {
        for (source, expected) in [
            ("{1, 2, nil, 4}", "cannot encode sparse array"),
            ("{[2] = 1}", "cannot encode sparse array"),
            ("{[1.5] = 1}", "cannot encode sparse array"),
            ("{1, x = 2}", "cannot encode mixed or invalid key types"),
            ("{[true] = 1}", "cannot encode mixed or invalid key types"),
            ("{f = print}", "cannot encode function to JSON"),
            ("{1/0}", "cannot encode +Inf to JSON: a number must be finite"),
            ("{0/0}", "cannot encode NaN to JSON: a number must be finite"),
            ("(function() local t = {} return {t, t} end)()", "cannot encode recursively nested tables"),
            ("(function() local t = {} t[1] = t return t end)()", "cannot encode recursively nested tables"),
            ("(function() local t = {} for i = 1, 200 do t = {t} end return t end)()", "nested more than 128"),
            (
                "(function() local s, t = ('x'):rep(1e5), {} for i = 1, 20 do t[i] = s end return t end)()",
                "more than 1048576 bytes",
            ),
        ] {
            let error = encode(source).unwrap_err().to_string();
            assert!(error.contains(expected), "{source}: {error}");
        }
    }

    #[test]
    fn a_value_survives_but_for_nulls_and_digits() {
        let value =
            json!({"a": [1, null, 2.5], "n": null, "s": "x", "t": {"b": true}, "big": 9_007_199_254_740_993_i64});
        let lua = Lua::new();
        let table = to_lua(&lua, &value, 0).unwrap();
        let expected = json!({"a": [1, 2.5], "s": "x", "t": {"b": true}, "big": 9_007_199_254_740_992_i64});
        assert_eq!(to_json(&lua, table.as_table().unwrap(), 1 << 20).unwrap(), expected);
        let deep = (0..=DEPTH_MAX).fold(json!(1), |value, _| json!([value]));
        assert!(to_lua(&lua, &deep, 0).is_err());
    }
}
