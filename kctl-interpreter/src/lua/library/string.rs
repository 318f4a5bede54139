//! The string library, as Karmada restricts it (`pkg/util/lifted/lua/string_safe.go`): `gsub`, `rep` and `dump` raise an
//! error that names alternatives.

use mlua::{MultiValue, Value};

use super::args::{Args, single_result};
use super::pattern::{self, Capture, Match, PatternError};
use super::{Library, format};

/// The maximum number of values that one call may return: the stack of Lua 5.1 has room for them.
const RESULTS_MAX: usize = 7000;

/// Adds the functions of the library. Strings get them as methods too.
pub(super) fn register(library: &Library<'_>) -> mlua::Result<()> {
    library.add("string.byte", byte)?;
    library.add("string.char", char)?;
    library.add("string.dump", raise_unsupported)?;
    library.add("string.find", find)?;
    library.add("string.format", format::format)?;
    library.add("string.gmatch", next_match)?;
    library.add("string.gsub", raise_unsupported)?;
    library.add("string.len", |args| Ok(number(args.string(1)?.as_bytes().len())))?;
    library.add("string.lower", |args| case(args, <[u8]>::make_ascii_lowercase, |c| single(c, c.to_lowercase())))?;
    library.add("string.match", first_match)?;
    library.add("string.rep", raise_unsupported)?;
    library.add("string.reverse", |args| {
        let mut bytes = args.bounded_string(1)?.as_bytes().to_vec();
        bytes.reverse();
        args.text(bytes)
    })?;
    library.add("string.sub", sub)?;
    library.add("string.upper", |args| case(args, <[u8]>::make_ascii_uppercase, |c| single(c, c.to_uppercase())))
}

/// Raises the error of a function that Karmada disables, with an alternative.
fn raise_unsupported(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let name = args.name;
    Err(args.error_at_caller(format_args!(
        "The Lua function string.{name} is not supported: write a loop over string.find, string.sub or string.gmatch"
    )))
}

/// Returns an index or a length as the only result.
fn number(number: usize) -> MultiValue {
    #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
    single_result(Value::Number(number as f64))
}

/// Maps a character as Go does: a character whose other case has several characters is not changed.
fn single(char: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(mapped), None) => mapped,
        _ => char,
    }
}

/// `lower` and `upper`. They map Unicode characters, where C maps only ASCII.
fn case(args: &Args<'_>, ascii: fn(&mut [u8]), unicode: fn(char) -> char) -> mlua::Result<MultiValue> {
    let string = args.bounded_string(1)?;
    let mut bytes = string.as_bytes().to_vec();
    if bytes.is_ascii() {
        ascii(&mut bytes);
        return args.text(bytes);
    }
    args.text(string.to_string_lossy().chars().map(unicode).collect::<String>())
}

/// `string.byte(s, from, to)`: returns the bytes of a range as numbers.
fn byte(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let string = args.bounded_string(1)?;
    let bytes = string.as_bytes();
    let n_bytes = index(bytes.len());
    let from = args.opt_int(2)?.unwrap_or(1);
    let from = if from < 1 { n_bytes.saturating_add(from) } else { from - 1 };
    let to = args.opt_int(3)?.unwrap_or(-1);
    let to = if to < 0 { n_bytes.saturating_add(to).saturating_add(1) } else { to.min(n_bytes) };
    let to = if args.values.len() == 2 { from.saturating_add(1) } else { to };
    let from = if args.values.len() == 2 { from } else { from.max(0) };
    let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else { return Ok(MultiValue::new()) };
    let Some(slice) = bytes.get(from..to) else { return Ok(MultiValue::new()) };
    if slice.len() > RESULTS_MAX {
        return Err(args.error_at_caller("string slice too long"));
    }
    Ok(slice.iter().map(|byte| Value::Number(f64::from(*byte))).collect())
}

/// `string.char(…)`: returns a string of bytes. Only the low byte of a larger number is used.
fn char(args: &Args<'_>) -> mlua::Result<MultiValue> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "gopher-lua keeps the low byte")]
    let bytes = (1..=args.values.len()).map(|n| args.int(n).map(|int| int as u8)).collect::<mlua::Result<Vec<u8>>>()?;
    args.text(bytes)
}

/// Returns a length as an index.
fn index(n_bytes: usize) -> i64 {
    i64::try_from(n_bytes).unwrap_or(i64::MAX)
}

/// Converts an index of Lua, from 1 or negative from the end, to an offset from 0. An index before
/// the start is the start.
fn start_offset(n_bytes: usize, start: i64) -> usize {
    let offset = if start < 0 { index(n_bytes).saturating_add(start) } else { start.saturating_sub(1) };
    usize::try_from(offset).unwrap_or(0)
}

/// `string.sub(s, from, to)`.
fn sub(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let string = args.bounded_string(1)?;
    let bytes = string.as_bytes();
    let start = match args.int(2)? {
        // A number that does not fit, such as `math.huge`, becomes the least `int64` in Go. Subtracting 1 wraps to the
        // greatest.
        i64::MIN => bytes.len(),
        start => start_offset(bytes.len(), start),
    };
    let end = args.opt_int(3)?.unwrap_or(-1);
    let end = if end < 0 { index(bytes.len()).saturating_add(end).saturating_add(1) } else { end };
    let end = usize::try_from(end).unwrap_or(0).min(bytes.len());
    args.text(bytes.get(start..end).unwrap_or_default())
}

/// Searches the strings of arguments 1 and 2, which the caller has checked.
fn search(args: &Args<'_>, start: usize) -> mlua::Result<Option<Match>> {
    let (subject, pattern) = (args.string(1)?, args.string(2)?);
    let charge = |steps| args.budget.charge(steps);
    pattern::find(&subject.as_bytes(), &pattern.as_bytes(), start, charge).map_err(|error| match error {
        PatternError::Malformed(message) => args.error_at_caller(message),
        PatternError::Stopped(error) => error,
    })
}

/// Appends the captures of a match, or the whole match if it has no captures.
fn push_captures_or_match(args: &Args<'_>, found: &Match, values: &mut MultiValue) -> mlua::Result<()> {
    if found.captures.is_empty() {
        return push_captures(args, &[Capture::Span(found.start, found.end)], values);
    }
    push_captures(args, &found.captures, values)
}

fn push_captures(args: &Args<'_>, captures: &[Capture], values: &mut MultiValue) -> mlua::Result<()> {
    let string = args.string(1)?;
    let subject = string.as_bytes();
    for capture in captures.iter().copied() {
        values.push_back(match capture {
            Capture::Span(from, to) => Value::String(args.lua.create_string(&subject[from..to])?),
            #[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
            Capture::Position(offset) => Value::Number((offset + 1) as f64),
        });
    }
    Ok(())
}

/// Returns a range of offsets as two indices of Lua.
#[expect(clippy::cast_precision_loss, reason = "Lua's numbers are doubles")]
fn span(from: usize, to: usize) -> MultiValue {
    [Value::Number((from + 1) as f64), Value::Number(to as f64)].into_iter().collect()
}

/// `string.find(s, pattern, from, plain)`: returns the range of the match and its captures, or nil.
fn find(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (subject, pattern) = (args.bounded_string(1)?, args.bounded_string(2)?);
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    if pattern.is_empty() {
        return Ok(span(0, 0));
    }
    let start = start_offset(subject.len(), args.opt_int(3)?.unwrap_or(1));
    if args.values.len() == 4 && !matches!(args.value(4), Value::Nil | Value::Boolean(false)) {
        args.budget.charge(subject.len() as u64)?;
        let found = find_plain(subject.get(start..).unwrap_or_default(), &pattern);
        return found.map_or_else(
            || Ok(single_result(Value::Nil)),
            |offset| Ok(span(start + offset, start + offset + pattern.len())),
        );
    }
    let Some(found) = search(args, start)? else { return Ok(single_result(Value::Nil)) };
    let mut values = span(found.start, found.end);
    push_captures(args, &found.captures, &mut values)?;
    Ok(values)
}

/// Finds bytes in bytes in linear time, with the search of `str`.
fn find_plain(subject: &[u8], pattern: &[u8]) -> Option<usize> {
    if let (Ok(subject), Ok(pattern)) = (std::str::from_utf8(subject), std::str::from_utf8(pattern)) {
        return subject.find(pattern);
    }
    // Bytes as characters of Latin-1 keep their order and number.
    let latin_1 = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
    let subject = latin_1(subject);
    let offset = subject.find(&latin_1(pattern))?;
    Some(subject[..offset].chars().count())
}

/// `string.match(s, pattern, from)`: returns the captures of the first match, or the whole match.
fn first_match(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let n_bytes = args.bounded_string(1)?.as_bytes().len();
    args.bounded_string(2)?;
    let start = start_offset(n_bytes, args.opt_int(3)?.unwrap_or(1));
    let mut values = MultiValue::new();
    if let Some(found) = search(args, start)? {
        push_captures_or_match(args, &found, &mut values)?;
    }
    Ok(values)
}

/// One step of `gmatch`: returns the position from which the next step searches, and the captures.
/// Without a position it only checks the arguments.
fn next_match(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let Some(init) = args.opt_int(3)? else {
        args.bounded_string(1)?;
        args.bounded_string(2)?;
        return Ok(number(1));
    };
    let start = start_offset(usize::MAX, init);
    let is_anchored = args.string(2)?.as_bytes().first() == Some(&b'^');
    if is_anchored && start > 0 {
        return Ok(MultiValue::new());
    }
    let Some(found) = search(args, start)? else { return Ok(MultiValue::new()) };
    let after = if found.end == found.start { found.end + 1 } else { found.end };
    let mut values = number(after + 1);
    push_captures_or_match(args, &found, &mut values)?;
    Ok(values)
}
