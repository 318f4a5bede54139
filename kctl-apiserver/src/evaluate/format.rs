//! `string.format(list)`. Upstream: `cel-go`, `ext/formatting.go`, with numbers grouped as in American English.
//!
//! A clause is `%`, an optional precision such as `.2`, and a letter:
//!
//! | letter | takes | prints |
//! |---|---|---|
//! | `s` | any value | its string form; lists and maps with their items |
//! | `d` | integers | decimal |
//! | `f` | doubles | fixed point, grouped by thousands |
//! | `e` | doubles | scientific |
//! | `b` | integers, booleans | binary |
//! | `o` | integers | octal |
//! | `x`, `X` | integers, strings, bytes | hexadecimal |

use std::sync::Arc;

use kube_cel::cel::{Value as Cel, objects::Key};

use super::{EvalResult, convert, steps, type_name};

/// Digits after the decimal point of `%f` and `%e` without a precision.
const PRECISION: usize = 6;
/// Largest accepted precision; a larger one is an invalid clause. Bounds the memory that one clause can take.
const PRECISION_MAX: usize = 10_000;

/// Replaces each clause of `text` with the next value. `%%` is a percent sign. Surplus values are ignored.
///
/// Too few values are an error. The size of the result so far is checked before each clause, so
/// that a format with many clauses cannot exhaust memory.
pub(super) fn format(text: &str, values: &[Cel]) -> EvalResult {
    let mut out = String::new();
    let mut rest = text;
    let mut values = values.iter();
    while let Some((before, clause)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let value = values.next().ok_or("format: fewer values than clauses")?;
        let (precision, letter, after) = clause_of(clause)?;
        steps::check_text(out.len())?;
        let invalid = || format!("format: %{letter} does not take a value of type {}", type_name(value));
        out.push_str(&format_value(letter, precision, value).ok_or_else(invalid)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(Cel::String(Arc::new(out)))
}

/// Parses the clause after a `%`: returns its precision, its letter and the rest of the string.
fn clause_of(clause: &str) -> EvalResult<(Option<usize>, char, &str)> {
    let invalid = || {
        format!("format: invalid clause %{clause:?}, expected a precision such as .2 and one of s, d, f, e, b, x, X, o")
    };
    let (precision, clause) = match clause.strip_prefix('.') {
        None => (None, clause),
        Some(rest) => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(invalid)?;
            let precision = rest[..end].parse().ok().filter(|precision| *precision <= PRECISION_MAX);
            (Some(precision.ok_or_else(invalid)?), &rest[end..])
        }
    };
    let letter = clause.chars().next().unwrap_or_default();
    if !"sdfebxXo".contains(letter) {
        return Err(invalid().into());
    }
    Ok((precision, letter, &clause[letter.len_utf8()..]))
}

/// Formats a value by the letter of a clause; `None` if the letter does not accept a value of this type. Negative
/// integers are written with their sign, never as two's complement.
fn format_value(letter: char, precision: Option<usize>, value: &Cel) -> Option<String> {
    Some(match (letter, value) {
        ('s', _) => return string(value),
        ('d', Cel::Int(number)) => number.to_string(),
        ('d', Cel::UInt(number)) => number.to_string(),
        ('f', _) => format_fixed(float(value)?, precision.unwrap_or(PRECISION)),
        // Upstream uses the precision as the width, so there are always six digits.
        ('e', _) => scientific(float(value)?),
        ('b', Cel::Bool(value)) => u8::from(*value).to_string(),
        ('b', Cel::Int(number)) => put_sign(*number, format!("{:b}", number.unsigned_abs())),
        ('b', Cel::UInt(number)) => format!("{number:b}"),
        ('o', Cel::Int(number)) => put_sign(*number, format!("{:o}", number.unsigned_abs())),
        ('o', Cel::UInt(number)) => format!("{number:o}"),
        ('X', _) => format_value('x', precision, value)?.to_ascii_uppercase(),
        ('x', Cel::Int(number)) => put_sign(*number, format!("{:x}", number.unsigned_abs())),
        ('x', Cel::UInt(number)) => format!("{number:x}"),
        ('x', Cel::String(text)) => hex(text.as_bytes()),
        ('x', Cel::Bytes(bytes)) => hex(bytes),
        _ => return None,
    })
}

/// Puts the minus sign before the digits of an absolute value.
fn put_sign(number: i64, digits: String) -> String {
    if number < 0 { format!("-{digits}") } else { digits }
}

/// Returns two lowercase digits for each byte.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Returns a double; the strings `NaN`, `Infinity` and `-Infinity` are converted.
fn float(value: &Cel) -> Option<f64> {
    match value {
        Cel::Float(number) => Some(*number),
        Cel::String(text) if text.as_str() == "NaN" => Some(f64::NAN),
        Cel::String(text) if text.as_str() == "Infinity" => Some(f64::INFINITY),
        Cel::String(text) if text.as_str() == "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// Returns the spelling of NaN and infinities in upstream's locale; `None` for finite numbers.
fn non_finite(number: f64) -> Option<&'static str> {
    match number {
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => number.is_nan().then_some("NaN"),
    }
}

/// Drops the sign of a negative zero, which is not printed.
fn unsigned_if_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// Formats a number for `%f`, with a comma between groups of three digits.
fn format_fixed(number: f64, precision: usize) -> String {
    if let Some(odd) = non_finite(number) {
        return odd.to_owned();
    }
    let text = format!("{:.precision$}", unsigned_if_zero(number));
    let (whole, fraction) = text.find('.').map_or((text.as_str(), ""), |offset| text.split_at(offset));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let grouped: Vec<String> =
        digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    format!("{sign}{}{fraction}", grouped.join(","))
}

/// Formats a number for `%e`, with a superscript exponent of at least two digits such as `×10⁰³`.
fn scientific(number: f64) -> String {
    if let Some(odd) = non_finite(number) {
        return odd.to_owned();
    }
    let text = format!("{:.PRECISION$e}", unsigned_if_zero(number));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10).unwrap_or_default() as usize);
    let exponent: String = format!("{exponent:0>2}").chars().filter_map(raised).collect();
    format!("{digits}×10{sign}{exponent}")
}

/// Formats a value for `%s`; `None` for a value without a string form, such as a type. Map entries are sorted, so that
/// the result is deterministic.
fn string(value: &Cel) -> Option<String> {
    match value {
        Cel::Null => Some("null".into()),
        Cel::List(items) => {
            let items: Option<Vec<String>> = items.iter().map(part).collect();
            Some(format!("[{}]", items?.join(", ")))
        }
        Cel::Map(map) if type_name(value) == "map" => {
            let entry = |(key, value): (&Key, &Cel)| {
                let value = part(value)?;
                Some(if let Key::String(text) = key { format!("{text:?}:{value}") } else { format!("{key}:{value}") })
            };
            let mut entries: Vec<String> = map.map.iter().map(entry).collect::<Option<_>>()?;
            entries.sort();
            Some(format!("{{{}}}", entries.join(", ")))
        }
        Cel::Map(map) => map.map.values().next().map_or(Some(String::new()), string),
        _ => convert::text(value),
    }
}

/// Formats a value within a list or a map, where strings are quoted, and times and bytes written as expressions.
fn part(value: &Cel) -> Option<String> {
    if let Cel::Float(number) = value
        && number.is_finite()
    {
        return Some(format!("{number:.PRECISION$}"));
    }
    let text = string(value)?;
    Some(match value {
        Cel::String(_) | Cel::Float(_) => format!("{text:?}"),
        Cel::Bytes(_) => format!("b{text:?}"),
        Cel::Timestamp(_) => format!("timestamp({text:?})"),
        Cel::Duration(_) => format!("duration({text:?})"),
        _ => text,
    })
}
