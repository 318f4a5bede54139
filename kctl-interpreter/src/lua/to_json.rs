//! Converts Lua tables to JSON values, as the library does that Karmada uses (`jsonValue.MarshalJSON` in `json.go` of
//! `layeh.com/gopher-json`).

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};

use mlua::{BString, FromLua, Lua, Table, Value as LuaValue};
use serde_json::{Number, Value};

use super::{number, to_lua::DEPTH_MAX};

/// The reason why a Lua value has no JSON form.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeError {
    #[error("cannot encode sparse array")]
    SparseArray,
    #[error("cannot encode mixed or invalid key types")]
    InvalidKeys,
    /// Also for a table that is referenced twice: Karmada rejects it, and a script that works here should work there.
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

/// Turns a table into JSON. A table without keys becomes `[]`; the repair of empty tables decides later if it was an object.
///
/// # Errors
/// The table has no JSON form, or it has more than `bytes_max` bytes.
pub(super) fn to_json(lua: &Lua, table: &Table, bytes_max: usize) -> Result<Value, EncodeError> {
    let mut encoder = Encoder { lua, visited: VISITED.take(), bytes_left: bytes_max, bytes_max };
    let encoded = encoder.table(table, 0);
    encoder.visited.clear();
    if encoder.visited.capacity() <= VISITED_KEPT_MAX {
        VISITED.set(encoder.visited);
    }
    encoded
}

type Visited = HashSet<*const c_void, BuildHasherDefault<Address>>;

thread_local! {
    /// A buffer for the addresses of visited tables, kept for the next object: allocating its few kilobytes again would
    /// be slow.
    static VISITED: Cell<Visited> = Cell::default();
}

/// Maximum number of tables for which the buffer is kept. A larger buffer is freed.
const VISITED_KEPT_MAX: usize = 4096;

struct Encoder<'a> {
    lua: &'a Lua,
    visited: Visited,
    /// Strings are shared in Lua and copied here, so the memory of the state does not bound the result.
    bytes_left: usize,
    bytes_max: usize,
}

/// Hashes an address by a multiplication: a script does not choose where its tables are.
#[derive(Default)]
struct Address(u64);

impl Hasher for Address {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, address: u64) {
        // Multiplying by the golden ratio spreads addresses that differ in few bits. The map uses the upper and the
        // lower bits of the hash.
        self.0 = (self.0 ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }

    fn write_usize(&mut self, address: usize) {
        self.write_u64(address as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Number of fields for which space is reserved at the start: as many as a usual table has.
const FIELDS_USUAL: usize = 8;

/// Minimum number of bytes that each value is charged: the size of a [`Value`].
const VALUE_BYTES: usize = size_of::<Value>();

impl Encoder<'_> {
    fn charge_bytes(&mut self, bytes: usize) -> Result<(), EncodeError> {
        self.bytes_left =
            self.bytes_left.checked_sub(bytes + VALUE_BYTES).ok_or(EncodeError::TooLarge(self.bytes_max))?;
        Ok(())
    }

    fn encode_leaf(&mut self, value: &LuaValue) -> Result<Value, EncodeError> {
        match value {
            LuaValue::Boolean(value) => Ok(Value::Bool(*value)),
            LuaValue::Number(value) => number_to_json(*value),
            #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
            LuaValue::Integer(value) => number_to_json(*value as f64),
            LuaValue::String(value) => self.string(value).map(Value::String),
            value => Err(EncodeError::InvalidType(value.type_name())),
        }
    }

    fn string(&mut self, string: &mlua::LuaString) -> Result<String, EncodeError> {
        let bytes = string.as_bytes();
        self.charge_bytes(bytes.len())?;
        Ok(str::from_utf8(&bytes).map_or_else(|_| decode_lossy(&bytes), str::to_owned))
    }

    /// Visits the fields of a table in one call, which costs much less than one call for each field. Such calls must
    /// not nest, because C calls in Lua can nest only a few levels deep. So nested tables are visited after the call
    /// has returned.
    fn walk<K: FromLua>(
        &mut self,
        table: &Table,
        mut visit: impl FnMut(&mut Self, K, LuaValue) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut failure = None;
        let walked = table.for_each(|key, value| {
            visit(self, key, value).map_err(|error| {
                failure = Some(error);
                mlua::Error::StackError
            })
        });
        match (failure, walked) {
            (Some(failure), _) => Err(failure),
            (None, Err(mlua::Error::FromLuaConversionError { .. })) => Err(EncodeError::InvalidKeys),
            (None, walked) => Ok(walked?),
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<Value, EncodeError> {
        if depth > DEPTH_MAX {
            return Err(EncodeError::TooDeep);
        }
        if !self.visited.insert(table.to_pointer()) {
            return Err(EncodeError::Nested);
        }
        self.charge_bytes(0)?;
        let n_array = table.raw_len();
        if n_array > 0 { self.encode_array(table, n_array, depth) } else { self.object(table, depth) }
    }

    fn encode_array(&mut self, table: &Table, n_array: usize, depth: usize) -> Result<Value, EncodeError> {
        let (mut values, mut nested) = (Vec::with_capacity(n_array.min(FIELDS_USUAL)), Vec::new());
        let (mut n_keys, mut has_other) = (0, false);
        self.walk(table, |encoder, key: LuaValue, value| {
            n_keys += 1;
            let LuaValue::Integer(idx) = key else {
                has_other |= !key.is_number();
                return Ok(());
            };
            encoder.charge_bytes(0)?;
            let value = match value {
                LuaValue::Table(value) => {
                    nested.push((idx, (nested.len() < HELD_MAX).then_some(value)));
                    Value::Null
                }
                value => encoder.encode_leaf(&value)?,
            };
            values.push((idx, value));
            Ok(())
        })?;
        // Lua iterates over its array part in order, and over its hash part in any order.
        if !values.is_sorted_by_key(|(idx, _)| *idx) {
            values.sort_unstable_by_key(|(idx, _)| *idx);
        }
        // The length of a table with holes is any of its borders. Elements beyond that border show in the number of
        // keys.
        let n_listed = (1..).zip(&values).take_while(|(expected, (idx, _))| expected == idx).count();
        if has_other && n_listed >= n_array {
            return Err(EncodeError::InvalidKeys);
        }
        if n_listed != n_array || n_keys != n_array {
            return Err(EncodeError::SparseArray);
        }
        let mut values: Vec<Value> = values.into_iter().map(|(_, value)| value).collect();
        for (idx, nested_table) in nested {
            let value = nested_table.map_or_else(|| table.raw_get(idx), Ok)?;
            let index = usize::try_from(idx - 1).map_err(|_| EncodeError::SparseArray)?;
            values[index] = self.table(&value, depth + 1)?;
        }
        Ok(Value::Array(values))
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<Value, EncodeError> {
        let (mut fields, mut nested, mut doubtful) = (Vec::with_capacity(FIELDS_USUAL), Vec::new(), Vec::new());
        // Keys are read as bytes, without a reference into Lua. A number becomes its decimal string.
        self.walk(table, |encoder, key: BString, value| {
            encoder.charge_bytes(key.len())?;
            if matches!(&**key, [b'0'..=b'9' | b'-', ..] | b"inf" | b"nan") {
                doubtful.push(key.clone());
            }
            let value = match value {
                LuaValue::Table(value) => {
                    let nested_table = if nested.len() < HELD_MAX { Ok(value) } else { Err(key.clone()) };
                    nested.push((fields.len(), nested_table));
                    Value::Null
                }
                value => encoder.encode_leaf(&value)?,
            };
            let key = String::from_utf8(key.into()).unwrap_or_else(|error| decode_lossy(error.as_bytes()));
            fields.push((key, value));
            Ok(())
        })?;
        self.check_keys(table, &doubtful, fields.len())?;
        for (index, nested_table) in nested {
            let value = nested_table.or_else(|key| self.raw_get(table, &key))?;
            fields[index].1 = self.table(&value, depth + 1)?;
        }
        Ok(if fields.is_empty() { Value::Array(Vec::new()) } else { Value::Object(fields.into_iter().collect()) })
    }

    /// Checks that no key was a number.
    ///
    /// Keys arrive as bytes, and a number as its digits. So each key that looks like a number is looked up among the
    /// string keys. A number is not found there, or it is found for two keys.
    fn check_keys(&self, table: &Table, doubtful: &[BString], n_keys: usize) -> Result<(), EncodeError> {
        let (mut n_numbers, mut names) = (0, HashSet::new());
        for key in doubtful {
            let is_name = names.insert(key) && !self.raw_get::<LuaValue>(table, key)?.is_nil();
            n_numbers += usize::from(!is_name);
        }
        match n_numbers {
            0 => Ok(()),
            n if n == n_keys => Err(EncodeError::SparseArray),
            _ => Err(EncodeError::InvalidKeys),
        }
    }

    /// Returns the value of a string key, without metamethods.
    fn raw_get<V: FromLua>(&self, table: &Table, key: &[u8]) -> mlua::Result<V> {
        match str::from_utf8(key) {
            Ok(key) => table.raw_get(key),
            Err(_) => table.raw_get(self.lua.create_string(key)?),
        }
    }
}

/// Maximum number of nested tables that are referenced until a walk is over; further ones are read again. The stack of
/// references has room for 8000, and a value for [`DEPTH_MAX`] walks.
const HELD_MAX: usize = 32;

/// Decodes bytes as UTF-8. Each invalid byte becomes a replacement character, as in Go.
fn decode_lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Up to this value every whole number has an exact double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0; // 2^53

/// Writes a whole number that fits without a point, as Go prints doubles: with the fewest digits that identify the
/// double. So beyond 2^53 a reader may get another number than the exact one.
fn number_to_json(value: f64) -> Result<Value, EncodeError> {
    if value.abs() > EXACT_MAX
        && let Ok(int) = value.to_string().parse::<i64>()
    {
        return Ok(Value::from(int));
    }
    if let Some(int) = number::as_int(value).filter(|_| value.abs() <= EXACT_MAX) {
        return Ok(Value::from(int));
    }
    Number::from_f64(value).map(Value::Number).ok_or_else(|| EncodeError::NotFinite(number::text(value)))
}

#[cfg(test)]
mod tests {
    use mlua::Lua;
    use serde_json::{Value, json};

    use super::{DEPTH_MAX, EncodeError, HELD_MAX, decode_lossy, to_json};
    use crate::lua::to_lua::to_lua;

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
            (
                "{['8080'] = 'a', ['-1'] = {1}, inf = 1, ['0\\255'] = {2}}",
                json!({"8080": "a", "-1": [1], "inf": 1, "0\u{fffd}": [2]}),
            ),
            ("{a = nil, b = 1}", json!({"b": 1})),
            ("{2^53, 1e21, -0.0}", json!([9_007_199_254_740_992_i64, 1e21, 0])),
            // The numbers are printed as in Go: 2^62 is 4611686018427387904, and 2^63 is read as a double again.
            (
                "{2^62, -2^62, 1e18, 2^63}",
                json!([
                    4_611_686_018_427_388_000_i64,
                    -4_611_686_018_427_388_000_i64,
                    1_000_000_000_000_000_000_i64,
                    9_223_372_036_854_775_808.0
                ]),
            ),
            ("{'\\255a\\226\\130'}", json!(["\u{fffd}a\u{fffd}\u{fffd}"])),
            (
                "{name = 'x', inf = {1}, nan = 1, infinity = 2}",
                json!({"name": "x", "inf": [1], "nan": 1, "infinity": 2}),
            ),
            // In hash order these keys come last to first.
            (
                "(function() local t = {} for i = 5, 1, -1 do t[i] = {i} end return t end)()",
                json!([[1], [2], [3], [4], [5]]),
            ),
        ] {
            assert_eq!(encode(source).unwrap(), expected, "{source}");
        }
        assert_eq!(decode_lossy("é".as_bytes()), "é");
    }

    #[test]
    fn tables_without_a_json_form_are_errors() {
        for (source, expected) in [
            ("{1, 2, nil, 4}", "cannot encode sparse array"),
            ("{[2] = 1}", "cannot encode sparse array"),
            ("{[1.5] = 1}", "cannot encode sparse array"),
            ("{[2] = 1, ['2'] = 1}", "cannot encode mixed or invalid key types"),
            ("{[2] = {}, ['2'] = {}}", "cannot encode mixed or invalid key types"),
            ("{[-1/0] = 1, x = 1}", "cannot encode mixed or invalid key types"),
            ("{[2] = {}, [3] = {}}", "cannot encode sparse array"),
            ("{1, x = 2}", "cannot encode mixed or invalid key types"),
            ("{nan = 1, [-1/0] = 1, inf = 1}", "cannot encode mixed or invalid key types"),
            ("{1, 2, [0] = 0}", "cannot encode sparse array"),
            ("{1, 2, [1.5] = 0}", "cannot encode sparse array"),
            ("{{}, {}, nil, {}}", "cannot encode sparse array"),
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
    fn evicted_tables_are_read_again() {
        for (source, expected) in [
            ("function(t, i) t[i] = {i} end", json!([[1], [2], [3]])),
            ("function(t, i) t['k' .. i] = {i} end", json!({"k1": [1], "k2": [2], "k3": [3]})),
            ("function(t, i) t[('\\255'):rep(i)] = {i} end", json!({"\u{fffd}": [1], "\u{fffd}\u{fffd}": [2]})),
        ] {
            let n = 4 * HELD_MAX;
            let found =
                encode(&format!("(function(f) local t = {{}} for i = 1, {n} do f(t, i) end return t end)({source})"));
            let found = found.unwrap();
            let n_found = found.as_array().map(Vec::len).or(found.as_object().map(serde_json::Map::len));
            assert_eq!(n_found, Some(n), "{source}");
            let has = |pointer: &str, expected: &Value| found.pointer(pointer) == Some(expected);
            match expected {
                Value::Array(values) => {
                    assert!(values.iter().enumerate().all(|(idx, value)| has(&format!("/{idx}"), value)), "{source}");
                }
                expected => {
                    let fields = expected.as_object().unwrap();
                    assert!(fields.iter().all(|(key, value)| has(&format!("/{key}"), value)), "{source}");
                }
            }
        }
    }

    #[test]
    fn json_round_trip_loses_only_nulls_and_digits() {
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
