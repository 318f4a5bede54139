//! `table.concat`, with numbers as gopher-lua formats them and a bound on its output.

use mlua::{MultiValue, Value};

use super::Library;
use super::args::{Args, as_number, single_result};
use crate::lua::number;

/// The maximum length of a string that the library builds, in bytes. Karmada has no such bound. The
/// default memory of a run is four times it.
pub(super) const OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Adds the function. `base.lua` adds the others of the table library.
pub(super) fn register(library: &Library<'_>) -> mlua::Result<()> {
    library.add("table.concat", concat)
}

/// `table.concat(list, separator, from, to)`. A single number is returned as a number, as in
/// gopher-lua.
fn concat(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let table = args.table(1)?;
    let separator = match args.value(2) {
        Value::Nil => None,
        Value::String(separator) => Some(separator.clone()),
        _ => return Err(args.type_error(2, "string")),
    };
    let separator = separator.as_ref().map(mlua::LuaString::as_bytes);
    let n = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
    let from = args.opt_int(3)?.unwrap_or(1);
    if args.values.len() == 3 && !(1..=n).contains(&from) {
        return args.text("");
    }
    let (from, to) = (from.min(n).max(1), args.opt_int(4)?.unwrap_or(n).min(n));
    if from == to
        && let number @ (Value::Number(_) | Value::Integer(_)) = table.raw_get::<Value>(from)?
    {
        // gopher-lua concatenates nothing to a single number, so it remains a number.
        return Ok(single_result(number));
    }
    let mut text: Vec<u8> = Vec::new();
    for idx in from..=to {
        let value = table.raw_get::<Value>(idx)?;
        let before = text.len();
        match (&value, as_number(&value)) {
            (Value::String(string), _) => text.extend_from_slice(&string.as_bytes()),
            (_, Some(number)) => text.extend_from_slice(number::text(number).as_bytes()),
            (value, None) => {
                let kind = value.type_name();
                return Err(
                    args.error_at_caller(format_args!("invalid value ({kind}) at index {idx} in table for concat"))
                );
            }
        }
        if idx < to
            && let Some(separator) = &separator
        {
            text.extend_from_slice(separator);
        }
        args.budget.charge(4 + (text.len() - before) as u64 / 8)?;
        if text.len() > OUTPUT_BYTES_MAX {
            return Err(
                args.error_at_caller(format_args!("table.concat: the result is longer than {OUTPUT_BYTES_MAX} bytes"))
            );
        }
    }
    args.text(text)
}
