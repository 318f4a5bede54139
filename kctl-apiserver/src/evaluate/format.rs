//! `format`: values written into a text. Upstream: `cel-go`, `ext/formatting.go`, with the numbers of American English.

use std::sync::Arc;

use kube_cel::cel::{Value as Cel, objects::Key};

use super::{Said, bounds, convert, type_name};
use crate::go;

const PRECISION: usize = 6;
/// More digits than any number has.
const PRECISION_MAX: usize = 10_000;

/// The text with a value for each clause.
pub(super) fn format(text: &str, values: &[Cel]) -> Said {
    let mut out = String::new();
    let mut rest = text;
    let mut values = (0..).zip(values);
    let mut n_used = 0;
    while let Some((before, clause)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some((_, value)) = values.next() else { return Err(format!("index {n_used} out of range")) };
        n_used += 1;
        if clause.is_empty() {
            return Err("unexpected end of string".into());
        }
        let (precision, letter, after) = clause_of(clause)?;
        bounds::check_text(out.len())?;
        out.push_str(&written(letter, precision, value).map_err(|why| format!("error during formatting: {why}"))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(Cel::String(Arc::new(out)))
}

/// The precision and the letter of a clause, and what follows.
fn clause_of(clause: &str) -> Result<(Option<usize>, char, &str), String> {
    let wrong = |why: &str| format!("could not parse formatting clause: {why}");
    let (precision, clause) = match clause.strip_prefix('.') {
        None => (None, clause),
        Some(rest) => {
            let end = rest.find(|letter: char| !letter.is_ascii_digit());
            let end =
                end.ok_or_else(|| wrong("error while parsing precision: could not find end of precision specifier"))?;
            let known = rest[..end].parse().ok().filter(|precision| *precision <= PRECISION_MAX);
            let precision = known.ok_or_else(|| {
                let why = format!("strconv.Atoi: parsing {}: invalid syntax", go::quote(&rest[..end]));
                wrong(&format!("error while parsing precision: error while converting precision to integer: {why}"))
            })?;
            (Some(precision), &rest[end..])
        }
    };
    let letter = clause.chars().next().unwrap_or_default();
    if !"sdfebxXo".contains(letter) {
        return Err(wrong(&format!("unrecognized formatting clause \"{letter}\"")));
    }
    Ok((precision, letter, &clause[letter.len_utf8()..]))
}

fn written(letter: char, precision: Option<usize>, value: &Cel) -> Result<String, String> {
    let is = type_name(value);
    match (letter, value) {
        ('s', _) => string(value),
        ('d', Cel::Int(number)) => Ok(number.to_string()),
        ('d', Cel::UInt(number)) => Ok(number.to_string()),
        ('d', _) => Err(format!("decimal clause can only be used on integers, was given {is}")),
        ('f' | 'e', _) => match (float(value), letter) {
            (Some(number), 'f') => Ok(fixed(number, precision.unwrap_or(PRECISION))),
            // Upstream takes the precision for the width.
            (Some(number), _) => Ok(scientific(number)),
            (None, 'f') => Err(format!("fixed-point clause can only be used on doubles, was given {is}")),
            (None, _) => Err(format!("scientific clause can only be used on doubles, was given {is}")),
        },
        ('b', Cel::Bool(value)) => Ok(u8::from(*value).to_string()),
        ('b', Cel::Int(number)) => Ok(signed(*number, format!("{:b}", number.unsigned_abs()))),
        ('b', Cel::UInt(number)) => Ok(format!("{number:b}")),
        ('b', _) => Err(format!("only integers and bools can be formatted as binary, was given {is}")),
        ('o', Cel::Int(number)) => Ok(signed(*number, format!("{:o}", number.unsigned_abs()))),
        ('o', Cel::UInt(number)) => Ok(format!("{number:o}")),
        ('o', _) => Err(format!("octal clause can only be used on integers, was given {is}")),
        _ => {
            let text = match value {
                Cel::Int(number) => signed(*number, format!("{:x}", number.unsigned_abs())),
                Cel::UInt(number) => format!("{number:x}"),
                Cel::String(text) => hex(text.as_bytes()),
                Cel::Bytes(bytes) => hex(bytes),
                _ => {
                    let of = "only integers, byte buffers, and strings can be formatted as hex";
                    return Err(format!("{of}, was given {is}"));
                }
            };
            Ok(if letter == 'X' { text.to_ascii_uppercase() } else { text })
        }
    }
}

fn signed(number: i64, digits: String) -> String {
    if number < 0 { format!("-{digits}") } else { digits }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn float(value: &Cel) -> Option<f64> {
    match value {
        Cel::Float(number) => Some(*number),
        Cel::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// What is no number, or has no end.
fn odd(number: f64) -> Option<&'static str> {
    if number.is_nan() {
        Some("NaN")
    } else if number.is_infinite() {
        Some(if number > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// A nought has no sign here.
fn unsigned_if_zero(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// With a comma before each third digit.
fn fixed(number: f64, precision: usize) -> String {
    if let Some(odd) = odd(number) {
        return odd.to_owned();
    }
    let text = format!("{:.precision$}", unsigned_if_zero(number));
    let (whole, fraction) = text.find('.').map_or((text.as_str(), ""), |at| text.split_at(at));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let grouped: Vec<String> =
        digits.as_bytes().rchunks(3).rev().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
    format!("{sign}{}{fraction}", grouped.join(","))
}

fn scientific(number: f64) -> String {
    if let Some(odd) = odd(number) {
        return odd.to_owned();
    }
    let text = format!("{:.PRECISION$e}", unsigned_if_zero(number));
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |rest| ("⁻", rest));
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10).unwrap_or_default() as usize);
    let exponent: String = format!("{exponent:0>2}").chars().filter_map(raised).collect();
    format!("{digits}×10{sign}{exponent}")
}

/// A value as it is written, as far as it can be.
pub(super) fn shown(value: &Cel) -> String {
    string(value).unwrap_or_default()
}

fn string(value: &Cel) -> Result<String, String> {
    match value {
        Cel::Null => Ok("null".into()),
        Cel::List(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(part).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Cel::Map(map) if type_name(value) == "map" => {
            let mut entries = Vec::new();
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(text) => go::quote(text),
                    other => other.to_string(),
                };
                entries.push(format!("{key}:{}", part(value)?));
            }
            entries.sort();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Cel::Map(map) => Ok(map.map.values().next().map(string).transpose()?.unwrap_or_default()),
        _ => match convert::to("string", value) {
            Some(Ok(Cel::String(text))) => Ok(text.to_string()),
            Some(Err(why)) => Err(format!("could not convert argument {} to string", go::quote(&why))),
            _ => Err(format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
                 timestamps, was given {}",
                type_name(value)
            )),
        },
    }
}

/// A value within a list or a map.
fn part(value: &Cel) -> Result<String, String> {
    let text = match value {
        Cel::Float(number) if number.is_finite() => return Ok(format!("{number:.PRECISION$}")),
        _ => string(value)?,
    };
    Ok(match value {
        Cel::String(_) | Cel::Float(_) => go::quote(&text),
        Cel::Bytes(_) => format!("b{}", go::quote(&text)),
        Cel::Timestamp(_) => format!("timestamp({})", go::quote(&text)),
        Cel::Duration(_) => format!("duration({})", go::quote(&text)),
        _ => text,
    })
}
