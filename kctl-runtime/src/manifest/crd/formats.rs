//! Checks values against formats, as far as API servers do (kube-openapi, `pkg/validation/strfmt`).
//!
//! A format is checked only for defaults, because an API server rejects a CRD whose default is not valid. Values of
//! objects are checked by the API server alone. Hyphens in the name of a format do not count, and unknown formats accept
//! every value: `date-time` is `datetime`, and `ip` accepts anything.
//!
//! Numbers of books and credit cards are not checked here.

use std::net::Ipv6Addr;

use k8s_openapi::jiff::{Timestamp, civil::Date};
use serde_json::Value;

/// Returns why a value does not have the format of its schema.
pub(super) fn wrong(schema: &Value, given: &Value) -> Option<String> {
    let format = schema["format"].as_str()?;
    let fits = match given {
        Value::String(text) => fits_text(&format.replace('-', ""), text),
        Value::Number(number) if format == "int32" => {
            number.as_f64().is_none_or(|number| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number))
        }
        Value::Number(number) if format == "float" => {
            number.as_f64().is_none_or(|number| number.abs() <= f64::from(f32::MAX))
        }
        _ => true,
    };
    (!fits).then(|| format!("it is not a valid {format}"))
}

/// Returns `true` if a string has a format, given without hyphens.
fn fits_text(format: &str, text: &str) -> bool {
    match format {
        "datetime" => text.parse::<Timestamp>().is_ok(),
        "date" => text.parse::<Date>().is_ok(),
        "ipv4" => is_address(text),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_network(text),
        "hostname" if text.len() > 255 => false,
        "k8sshortname" if text.len() > 63 => false,
        "k8slongname" if text.len() > 253 => false,
        "byte" if !text.len().is_multiple_of(4) || text.is_empty() => false,
        _ => fits_pattern(format, text),
    }
}

/// Returns `true` for an IPv4 address. Leading zeros are accepted, as by old versions of Go.
fn is_address(text: &str) -> bool {
    let is_part = |part: &str| part.chars().all(|digit| digit.is_ascii_digit()) && part.parse::<u8>().is_ok();
    text.split('.').count() == 4 && text.split('.').all(is_part)
}

fn is_network(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = match address.parse::<Ipv6Addr>() {
        Ok(_) => 128,
        Err(_) if is_address(address) => 32,
        Err(_) => return false,
    };
    bits.chars().all(|digit| digit.is_ascii_digit()) && bits.parse().is_ok_and(|bits: u32| bits <= bits_max)
}

/// Patterns of formats that are not parsed.
#[cfg(feature = "rules")]
const PATTERNS: &[(&str, &str)] = &[
    ("bsonobjectid", "^[0-9a-fA-F]{24}$"),
    ("byte", "^[A-Za-z0-9+/]+={0,2}$"),
    // A Go duration, or a number with the name of a unit.
    (
        "duration",
        "^[+-]?(0|([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$|(?i)[0-9]+\\s*(nano|micro|milli|(ns|us|µs|ms|[smhdw]|hrs?|secs?|mins?|wks?|(second|minute|hour|day|week)s?)([^a-z]|$))",
    ),
    ("email", "^([^<>@]*<)?[^<>@\\s]+@[^<>@\\s]+>?$"),
    ("hexcolor", "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    (
        "hostname",
        "^([\\pS\\pL0-9]([\\pS\\pL0-9-]{0,61}[\\pS\\pL0-9])?|([\\pS\\pL0-9]([\\pS\\pL0-9-]{0,61}[\\pS\\pL0-9])?\\.)+[a-zA-Z\\pL]{2,63})$",
    ),
    ("k8sshortname", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
    ("k8slongname", "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
    ("mac", "(?i)^([0-9a-f]{2}([:-][0-9a-f]{2}){5}(([:-][0-9a-f]{2}){2})?|[0-9a-f]{4}(\\.[0-9a-f]{4}){2,3})$"),
    ("rgbcolor", "^rgb\\((\\s*([1-9]?[0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\s*[,)]){3}$"),
    ("ssn", "^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$"),
    ("uri", "^(/|[A-Za-z][A-Za-z0-9+.-]*:)[^\\x00-\\x20\\x7f]*$"),
    ("uuid", "(?i)^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$"),
    ("uuid3", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$"),
    ("uuid4", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
    ("uuid5", "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$"),
];

#[cfg(feature = "rules")]
fn fits_pattern(format: &str, text: &str) -> bool {
    let known = PATTERNS.iter().find(|(name, _)| *name == format);
    known.and_then(|(_, pattern)| regex::Regex::new(pattern).ok()).is_none_or(|pattern| pattern.is_match(text))
}

#[cfg(not(feature = "rules"))]
fn fits_pattern(_format: &str, _text: &str) -> bool {
    true
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(feature = "rules")]
    fn every_pattern_is_one() {
        for (format, pattern) in super::PATTERNS {
            assert!(regex::Regex::new(pattern).is_ok(), "{format}: {pattern}");
        }
    }
}
