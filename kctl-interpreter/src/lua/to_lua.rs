//! Converts JSON values to Lua values, as Karmada does (`decodeValue` in
//! `pkg/resourceinterpreter/customized/declarative/luavm/lua.go`).

use mlua::{Either, Lua, Value as LuaValue};
use serde_json::Value;

/// Levels of nesting of a value, in and out: the depth at which `serde_json` stops reading.
pub(super) const DEPTH_MAX: usize = 128;

/// Turns JSON into a value of Lua. Numbers become doubles; `null` becomes `nil`, so that its key vanishes, and an
/// element `null` of a list too: the elements after it move up.
///
/// # Errors
/// The value is nested more than [`DEPTH_MAX`] deep.
pub(super) fn to_lua(lua: &Lua, value: &Value, depth: usize) -> mlua::Result<LuaValue> {
    if depth > DEPTH_MAX {
        return Err(mlua::Error::runtime(format!("the object is nested more than {DEPTH_MAX} deep")));
    }
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(value) => LuaValue::Number(value.as_f64().unwrap_or(f64::NAN)),
        Value::String(value) => LuaValue::String(lua.create_string(value)?),
        Value::Array(values) if values.iter().any(Value::is_null) => {
            list(lua, values.iter().filter(|value| !value.is_null()), depth)?
        }
        Value::Array(values) => list(lua, values.iter(), depth)?,
        Value::Object(values) => {
            let mut failure = None;
            let fields = values.iter().map(|(key, value)| (key.as_str(), element(lua, value, depth, &mut failure)));
            let table = lua.create_table_from(fields);
            failure.map_or(table, Err).map(LuaValue::Table)?
        }
    })
}

fn list<'a>(lua: &Lua, values: impl Iterator<Item = &'a Value>, depth: usize) -> mlua::Result<LuaValue> {
    let mut failure = None;
    let table = lua.create_sequence_from(values.map(|value| element(lua, value, depth, &mut failure)));
    failure.map_or(table, Err).map(LuaValue::Table)
}

/// Returns one element of a table. Strings are borrowed, since a Lua reference to each would cost more than its copy.
/// mlua fills a table in one call that an error cannot leave, so the first error is kept in `failure`.
fn element<'a>(
    lua: &Lua,
    value: &'a Value,
    depth: usize,
    failure: &mut Option<mlua::Error>,
) -> Either<&'a str, LuaValue> {
    match value {
        Value::String(text) => Either::Left(text),
        _ if failure.is_some() => Either::Right(LuaValue::Nil),
        value => Either::Right(to_lua(lua, value, depth + 1).unwrap_or_else(|error| {
            *failure = Some(error);
            LuaValue::Nil
        })),
    }
}
