//! String formats of `OpenAPI` schemas.
//!
//! Upstream: `pkg/validation/strfmt` of kube-openapi. An API server ignores a format that it does not know. Needs the
//! feature `formats`.
//!
//! ```
//! use kctl_apimachinery::formats;
//!
//! assert!(formats::matches("date-time", "2026-01-01T00:00:00Z"));
//! assert!(!formats::matches("ipv4", "256.0.0.1"));
//! assert!(formats::matches("unknown", "any string"));
//! ```

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::{LazyLock, Mutex, PoisonError},
};

use jiff::SignedDuration;
use regex::Regex;

use crate::{duration, url::Url};

/// The compiled patterns of this file. Compiling takes longer than matching.
static COMPILED: LazyLock<Mutex<HashMap<&'static str, Option<Regex>>>> = LazyLock::new(Mutex::default);

/// A DNS subdomain of RFC 1123.
const SUBDOMAIN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Returns `true` for a format that API servers check. Dashes in its name are ignored.
///
/// ```
/// use kctl_apimachinery::formats::is_known;
///
/// assert!(is_known("date-time") && is_known("datetime") && !is_known("ip"));
/// ```
#[must_use]
pub fn is_known(format: &str) -> bool {
    check_of(format).is_some()
}

/// Returns `true` if a string has a format. An unknown format matches any string.
///
/// ```
/// use kctl_apimachinery::formats::matches;
///
/// assert!(matches("uuid", "6d4b75cb-0000-4000-8000-00000000002a"));
/// assert!(!matches("hostname", "-example.com"));
/// ```
#[must_use]
pub fn matches(format: &str, text: &str) -> bool {
    check_of(format).is_none_or(|check| check(text))
}

/// Returns `true` if a pattern of this file occurs in a string.
fn fits(pattern: &'static str, text: &str) -> bool {
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = compiled.entry(pattern).or_insert_with(|| Regex::new(pattern).ok());
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// A check of a string.
type Check = fn(&str) -> bool;

/// Returns the check of a format. Dashes in its name are ignored.
fn check_of(format: &str) -> Option<Check> {
    Some(match format.replace('-', "").as_str() {
        "datetime" => is_date_time,
        "date" => is_date,
        "duration" => |text| parse_duration(text).is_some(),
        "byte" => |text| fits(BASE64, text),
        "password" => |_| true,
        "email" => |text| fits(EMAIL, text),
        "uuid" => |text| fits("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text),
        "uuid3" => |text| fits("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text),
        "uuid4" => |text| fits("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", text),
        "uuid5" => |text| fits("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$", text),
        "ipv4" => is_ipv4,
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "uri" => Url::is_of_request,
        "hostname" => is_hostname,
        "mac" => is_mac,
        "bsonobjectid" => |text| fits("^[0-9a-fA-F]{24}$", text),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| fits("^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$", text),
        "hexcolor" => |text| fits("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", text),
        "rgbcolor" => |text| fits(RGB, text),
        "k8sshortname" => |text| text.len() <= 63 && fits("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", text),
        "k8slongname" => |text| text.len() <= 253 && fits(SUBDOMAIN, text),
        _ => return None,
    })
}

/// Standard Base64 with padding.
const BASE64: &str = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
/// An address with an optional display name; much laxer than RFC 5322.
const EMAIL: &str = "^([^<>@]*<)?[^<>@ \\t\\n\\f\\r]+@[^<>@ \\t\\n\\f\\r]+>?$";
/// `rgb(r,g,b)` with numbers from 0 to 255.
const RGB: &str = "^rgb\\([ \\t\\n\\f\\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \\t\\n\\f\\r]*,[ \\t\\n\\f\\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \\t\\n\\f\\r]*,[ \\t\\n\\f\\r]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[ \\t\\n\\f\\r]*\\)$";
/// A host name, whose labels may have letters and symbols of any script.
const HOSTNAME: &str = "^([a-zA-Z0-9\\p{S}\\p{L}](-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?|([a-zA-Z0-9\\p{S}\\p{L}]([a-zA-Z0-9\\-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?\\.)+[a-zA-Z\\p{L}]{2,63})$";

/// Returns `true` for a date of the calendar.
fn is_date(text: &str) -> bool {
    fits("^[0-9]{4}-[0-9]{2}-[0-9]{2}$", text) && text.parse::<jiff::civil::Date>().is_ok()
}

/// Returns `true` for a time of RFC 3339.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let Some((date, time)) = text.split_once('t') else { return false };
    let time_of_day = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$";
    is_date(date) && fits(time_of_day, time)
}

/// Parses the format `duration`: Go's format, or numbers with names of units anywhere in the string
/// (`strfmt.ParseDuration`).
///
/// ```
/// use kctl_apimachinery::formats::parse_duration;
///
/// assert_eq!(parse_duration("2 days 3h").unwrap().as_hours(), 51);
/// assert!(parse_duration("soon").is_none());
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    duration::parse(text).or_else(|| {
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

/// Names of units, with their length in nanoseconds. A word that starts with the last name of a unit is also accepted.
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

/// Returns the pairs of a number and the word that follows it, with or without space between them.
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
    let is_byte = |part: &&str| part.bytes().all(|digit| digit.is_ascii_digit()) && part.parse::<u8>().is_ok();
    parts.len() == 4 && parts.iter().all(is_byte)
}

/// Returns `true` for a MAC address of 6, 8 or 20 bytes (`net.ParseMAC`). All separators equal the first one.
fn is_mac(text: &str) -> bool {
    let (separator, n_digits) = match text.as_bytes().get(2) {
        Some(b':') => (':', 2),
        Some(b'-') => ('-', 2),
        _ => ('.', 4),
    };
    let groups: Vec<&str> = text.split(separator).collect();
    let is_group = |group: &&str| group.len() == n_digits && group.bytes().all(|digit| digit.is_ascii_hexdigit());
    [6, 8, 20].contains(&(groups.len() * n_digits / 2)) && groups.iter().all(is_group)
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
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && fits(HOSTNAME, text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_match_upstream() {
        let infiniband = ["00"; 20].join(":");
        for (format, valid, invalid) in [
            (
                "date-time",
                &["2026-01-01T00:00:00Z", "2026-01-01t00:00:00.5+01:00"][..],
                &["2026-01-01", "2026-02-30T00:00:00Z"][..],
            ),
            ("date", &["2026-02-28"], &["2026-02-29", "26-01-01", "2026-1-1"]),
            ("duration", &["1h30m", "2 days", "3w"], &["", "soon", "1"]),
            ("byte", &["YQ==", "YWI="], &["", "YQ", "YQ=", "!!!!"]),
            ("email", &["a@example.com", "A <a@example.com>"], &["a", "@example.com"]),
            ("uuid", &["6d4b75cb-0000-4000-8000-00000000002A", "6d4b75cb000040008000000000000000"], &["6d4b75cb", "x"]),
            ("uuid4", &["6d4b75cb-0000-4000-8000-00000000002a"], &["6d4b75cb-0000-3000-8000-00000000002a"]),
            ("ipv4", &["127.0.0.1", "010.0.0.1"], &["256.0.0.1", "1.2.3", "+1.2.3.4", "१.2.3.4"]),
            ("ipv6", &["::1", "2001:db8::1"], &["127.0.0.1", ":::"]),
            ("cidr", &["10.0.0.0/8", "::/128"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8"]),
            (
                "uri",
                &["https://example.com", "/a", "/a b", "urn:a:b", "*"],
                &["a b", "example", "::", "/%zz", "https://example.com:port", "https://[::1", "https://a b/"],
            ),
            ("hostname", &["example.com", "web", "ü.example"], &["-a", "a..b"]),
            (
                "mac",
                &["00:00:5E:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", infiniband.as_str()],
                &["", "00", "00:00:5e:00:53", "00:00-5e:00:53:01", "00:00:5e:00:53:0g", "0000.5e00", "00005e005301"],
            ),
            ("isbn", &["978-3-16-148410-0", "0-306-40615-2"], &["978-3-16-148410-1", "0"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
            ("hexcolor", &["#fff", "00ff00"], &["#ff", "red"]),
            ("rgbcolor", &["rgb(0, 128,255)"], &["rgb(0,0,256)", "rgb(0,0)"]),
            ("ssn", &["123-45-6789"], &["१23-45-6789", "123456789"]),
            ("k8s-short-name", &["web"], &["web.v1", "-a"]),
            ("k8s-long-name", &["web.v1"], &["Web", "a..b"]),
            ("password", &["any"], &[]),
        ] {
            for text in valid {
                assert!(matches(format, text), "{format}: {text:?}");
            }
            for text in invalid {
                assert!(!matches(format, text), "{format}: {text:?}");
            }
        }
    }

    #[test]
    fn all_patterns_compile() {
        for format in ["byte", "email", "uuid", "uuid3", "uuid4", "uuid5", "hostname", "rgbcolor"] {
            let _compiled = matches(format, "0123456789");
        }
        let compiled = COMPILED.lock().unwrap();
        assert!(compiled.values().all(Option::is_some), "{compiled:?}");
    }
}
