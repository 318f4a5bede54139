//! Why a text is no address, no network, no URL and no version, in the words of Go. Upstream: `net/netip`, `net/url`, and
//! `github.com/blang/semver`.

use super::NO_OVERLOAD;
use crate::go::quote;

/// Why the function of that name makes nothing of a text; none where it is said otherwise.
pub(super) fn why_not(function: &str, text: &str) -> Option<String> {
    match function {
        "ip" | "ip.isCanonical" | "isCanonical" => ip(text),
        "containsIP" => Some(NO_OVERLOAD.into()),
        "cidr" | "containsCIDR" => {
            let of = "network address parse error during conversion from string";
            cidr(text).map(|why| format!("{of}: {why}"))
        }
        "url" => {
            let why = if text.is_empty() { "empty url" } else { "invalid URI for request" };
            Some(format!("URL parse error during conversion from string: parse {}: {why}", quote(text)))
        }
        "semver" => semver(text),
        _ => None,
    }
}

fn ip(text: &str) -> Option<String> {
    if text.contains('%') && text.contains(':') {
        return Some(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    if text.to_ascii_lowercase().starts_with("::ffff:") && text.contains('.') {
        return Some(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    let why = address(text)?;
    Some(format!("IP Address {} parse error during conversion from string: {why}", quote(text)))
}

fn address(text: &str) -> Option<String> {
    let said = |why: &str| Some(format!("ParseAddr({}): {why}", quote(text)));
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        None => said("unable to parse IP"),
        Some(b'%') => said("missing IPv6 address"),
        Some(b'.') => said(&of_four(text)?),
        Some(_) => None,
    }
}

/// What is wrong with an address of four numbers.
fn of_four(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut value, mut n_digits, mut n_fields) = (0_u32, 0, 0);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return Some("IPv4 field has octet with leading zero".into());
                }
                value = value * 10 + u32::from(byte - b'0');
                n_digits += 1;
                if value > 255 {
                    return Some("IPv4 field has value >255".into());
                }
            }
            b'.' => {
                if index == 0 || index + 1 == bytes.len() || bytes[index - 1] == b'.' {
                    let at = quote(&text[index..]);
                    return Some(format!("IPv4 field must have at least one digit (at {at})"));
                }
                if n_fields == 3 {
                    return Some("IPv4 address too long".into());
                }
                n_fields += 1;
                (value, n_digits) = (0, 0);
            }
            _ => {
                let at = text.get(index..).map(quote).unwrap_or_default();
                return Some(format!("unexpected character (at {at})"));
            }
        }
    }
    (n_fields < 3).then(|| "IPv4 address too short".to_owned())
}

fn cidr(text: &str) -> Option<String> {
    let of = "network address parse error during conversion from string";
    let said = |why: &str| Some(format!("{of}: netip.ParsePrefix({}): {why}", quote(text)));
    let Some((address_part, bits)) = text.rsplit_once('/') else { return said("no '/'") };
    if address_part.to_ascii_lowercase().starts_with("::ffff:") && address_part.contains('.') {
        return Some(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    if let Some(why) = address(address_part) {
        return said(&why);
    }
    if bits.parse::<u32>().is_err() || (bits.len() > 1 && !bits.starts_with(|first| ('1'..='9').contains(&first))) {
        return said(&format!("bad bits after slash: {}", quote(bits)));
    }
    let bits_max = if address_part.contains(':') { 128 } else { 32 };
    if bits.parse().is_ok_and(|bits: u32| bits > bits_max) { said("prefix length out of range") } else { None }
}

fn semver(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("Version string empty".into());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts.as_slice() else { return Some("No Major.Minor.Patch elements found".into()) };
    let patch = rest.split(['-', '+']).next().unwrap_or_default();
    [("major", *major), ("minor", *minor), ("patch", patch)].into_iter().find_map(|(name, number)| {
        let title = name[..1].to_uppercase() + &name[1..];
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            Some(format!("Invalid character(s) found in {name} number {}", quote(number)))
        } else if number.len() > 1 && number.starts_with('0') {
            Some(format!("{title} number must not contain leading zeroes {}", quote(number)))
        } else {
            None
        }
    })
}
