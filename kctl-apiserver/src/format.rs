//! Validates `OpenAPI` string formats. Upstream: `pkg/validation/strfmt` of kube-openapi.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, Ipv6Addr},
};

use jiff::SignedDuration;
use serde_json::{Map, Value};

use crate::pattern;

/// A DNS subdomain of RFC 1123.
const SUBDOMAIN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Returns `true` for a format that is checked. Others are ignored.
pub(crate) fn is_known(format: &str) -> bool {
    check_of(format).is_some()
}

/// The formats in the schemas of a definition that are checked nowhere, each once, sorted.
pub(crate) fn unrecognized(definition: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        collect_unrecognized(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

/// Collects the unknown formats of a schema.
fn collect_unrecognized(schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(format) = schema["format"].as_str().filter(|format| !format.is_empty()) {
        let is_known = match schema["type"].as_str().unwrap_or_default() {
            "" | "string" => is_known(format),
            "integer" => ["int32", "int64"].contains(&format),
            "number" => ["float", "double"].contains(&format),
            _ => false,
        };
        if !is_known {
            found.insert(format.to_owned());
        }
    }
    for key in ["items", "not", "additionalProperties"] {
        if schema[key].is_object() {
            collect_unrecognized(&schema[key], found);
        }
    }
    let alternatives = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    for below in alternatives.chain(schema["properties"].as_object().into_iter().flat_map(Map::values)) {
        collect_unrecognized(below, found);
    }
}

/// Returns `true` if a string has a format. Any string has an unknown format.
pub(crate) fn matches(format: &str, text: &str) -> bool {
    check_of(format).is_none_or(|check| check(text))
}

/// A check of a string.
type Check = fn(&str) -> bool;

/// Returns the check of a format. Dashes in its name are ignored.
fn check_of(format: &str) -> Option<Check> {
    Some(match format.replace('-', "").as_str() {
        "datetime" => is_date_time,
        "date" => is_date,
        "duration" => |text| duration(text).is_some(),
        "byte" => |text| pattern::matches(BASE64, text),
        "password" => |_| true,
        "email" => |text| pattern::matches(EMAIL, text),
        "uuid" => {
            |text| pattern::matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text)
        }
        "uuid3" => {
            |text| pattern::matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text)
        }
        "uuid4" => |text| {
            pattern::matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", text)
        },
        "uuid5" => |text| {
            pattern::matches("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", text)
        },
        "ipv4" => is_ipv4,
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "uri" => |text| pattern::matches("^(/|[A-Za-z][A-Za-z0-9+.-]*:)[^\\x00-\\x20\\x7f]*$", text),
        "hostname" => is_hostname,
        "mac" => |text| {
            pattern::matches(
                "(?i)^([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|[0-9a-f]{4}(\\.[0-9a-f]{4}){2,3})$",
                text,
            )
        },
        "bsonobjectid" => |text| pattern::matches("^[0-9a-fA-F]{24}$", text),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| pattern::matches("^\\d{3}[- ]\\d{2}[- ]\\d{4}$", text),
        "hexcolor" => |text| pattern::matches("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "rgbcolor" => |text| pattern::matches(RGB, text),
        "k8sshortname" => |text| text.len() <= 63 && pattern::matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", text),
        "k8slongname" => |text| text.len() <= 253 && pattern::matches(SUBDOMAIN, text),
        _ => return None,
    })
}

/// Standard Base64 with padding.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
/// An address with an optional display name; much laxer than RFC 5322.
const EMAIL: &str = "^([^<>@]*<)?[^<>@\\s]+@[^<>@\\s]+>?$";
/// `rgb(r,g,b)` with numbers from 0 to 255.
const RGB: &str = "^rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*\\)$";
const HOSTNAME: &str = "^([a-zA-Z0-9\\p{S}\\p{L}](-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?|([a-zA-Z0-9\\p{S}\\p{L}]([a-zA-Z0-9\\-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?\\.)+[a-zA-Z\\p{L}]{2,63})$";

/// Returns `true` for a date of the calendar.
fn is_date(text: &str) -> bool {
    pattern::matches("^\\d{4}-\\d{2}-\\d{2}$", text) && text.parse::<jiff::civil::Date>().is_ok()
}

/// Returns `true` for a time of RFC 3339.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    let time_of_day = "^([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(.\\d+)?(z|[+-]\\d{2}:\\d{2})$";
    is_date(date) && pattern::matches(time_of_day, time)
}

/// Parses a duration: Go's format, or numbers with names of units anywhere in the string (`ParseDuration` of strfmt).
pub(crate) fn duration(text: &str) -> Option<SignedDuration> {
    kctl_cel::duration(text).or_else(|| {
        let mut nanoseconds: Option<i64> = None;
        for (number, unit) in numbers_with_words(text) {
            let Some((_, length)) = UNITS.iter().find(|(names, _)| is_unit(&unit.to_lowercase(), names)) else {
                continue;
            };
            let part = number.parse::<i64>().ok()?.wrapping_mul(*length);
            nanoseconds = Some(nanoseconds.unwrap_or_default().wrapping_add(part));
        }
        nanoseconds.map(SignedDuration::from_nanos)
    })
}

/// Names of units, with their length in nanoseconds. A word that starts with the last name of a unit names it too.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// Returns `true` if a word names a unit.
fn is_unit(word: &str, names: &[&str]) -> bool {
    names.contains(&word) || names.last().is_some_and(|last| word.starts_with(last))
}

/// Digits that are followed by letters, with space between them or without.
fn numbers_with_words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == 'µ';
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let from = rest.find(|letter: char| letter.is_ascii_digit())?;
            let number = &rest[from..];
            let end = number.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(number.len());
            let (number, after) = number.split_at(end);
            rest = after;
            let word = after.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            let end = word.find(|letter: char| !is_letter(letter)).unwrap_or(word.len());
            if end > 0 {
                rest = &word[end..];
                return Some((number, &word[..end]));
            }
        }
    })
}

/// Returns `true` for an IPv4 address. Leading zeros are allowed, as in old versions of Go.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4 && parts.iter().all(|part| pattern::matches("^\\d+$", part) && part.parse::<u8>().is_ok())
}

/// Returns `true` for a network in CIDR notation.
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = if address.parse::<Ipv4Addr>().is_ok() || is_ipv4(address) {
        32
    } else if address.parse::<Ipv6Addr>().is_ok() {
        128
    } else {
        return false;
    };
    bits.chars().all(|c| c.is_ascii_digit()) && bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max)
}

/// Returns `true` for a host name.
fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && pattern::matches(HOSTNAME, text)
}

/// Returns the digits of a string without spaces and dashes. A final `X` is 10.
fn digits(text: &str) -> Option<Vec<u32>> {
    let text: Vec<char> = text.chars().filter(|c| !matches!(c, ' ' | '-')).collect();
    let last = text.len().checked_sub(1)?;
    text.iter().enumerate().map(|(i, c)| if i == last && *c == 'X' { Some(10) } else { c.to_digit(10) }).collect()
}

/// Checks an ISBN of 10 digits.
fn is_isbn10(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 10) else { return false };
    digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum::<u32>().is_multiple_of(11)
}

/// Checks an ISBN of 13 digits.
fn is_isbn13(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| digits.len() == 13 && digits[12] < 10) else { return false };
    digits.iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum::<u32>().is_multiple_of(10)
}

/// Checks a credit card number (Luhn).
fn is_credit_card(text: &str) -> bool {
    let Some(digits) = digits(text).filter(|digits| (13..=19).contains(&digits.len())) else { return false };
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(i, &digit)| if i % 2 == 1 { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}
