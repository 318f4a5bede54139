//! What texts are addresses and networks, and why others are none, in the words of Go. Upstream: `net/netip`, and
//! `pkg/cel/library/ip.go` and `cidr.go` of apiserver.

use kube_cel::cel::Value as Cel;

use super::{NO_OVERLOAD, Said, Target};
use crate::go::quote;

/// What a function says of a text that should be an address or a network; none where the library knows better.
pub(super) fn called(function: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<Said> {
    let [Cel::String(text)] = arguments else { return None };
    match (function, target) {
        ("isIP", Target::None) => Some(Ok(Cel::Bool(ip(text).is_none()))),
        ("isCIDR", Target::None) => Some(Ok(Cel::Bool(cidr(text).is_none()))),
        ("ip", Target::None) | ("isCanonical", Target::Library("ip")) => ip(text).map(Err),
        ("cidr", Target::None) | ("containsCIDR", Target::Value(Cel::Opaque(_))) => cidr(text).map(Err),
        ("containsIP", Target::Value(Cel::Opaque(_))) => ip(text).map(|_| Err(NO_OVERLOAD.into())),
        _ => None,
    }
}

/// Why a text is no address (`parseIPAddr`).
fn ip(text: &str) -> Option<String> {
    let shown = quote(text);
    match address(text) {
        Err(why) => Some(format!("IP Address {shown} parse error during conversion from string: {why}")),
        Ok(Address { has_zone: true, .. }) => Some(format!("IP address {shown} with zone value is not allowed")),
        Ok(found) if found.is_mapped() => Some(format!("IPv4-mapped IPv6 address {shown} is not allowed")),
        Ok(_) => None,
    }
}

/// Why a text is no network (`parseCIDR`, `netip.ParsePrefix`).
fn cidr(text: &str) -> Option<String> {
    let of = "network address parse error during conversion from string";
    let said = |why: &str| Some(format!("{of}: {of}: netip.ParsePrefix({}): {why}", quote(text)));
    let Some((address_part, bits)) = text.rsplit_once('/') else { return said("no '/'") };
    let found = match address(address_part) {
        Ok(found) => found,
        Err(why) => return said(&why),
    };
    if found.has_zone {
        return said("IPv6 zones cannot be present in a prefix");
    }
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (bits.len() > 1 && bits.starts_with('0')) || bits.len() > 18 {
        return said(&format!("bad bits after slash: {}", quote(bits)));
    }
    let bits_max = if found.is_six { 128 } else { 32 };
    if !bits.parse().is_ok_and(|bits: u32| bits <= bits_max) {
        return said("prefix length out of range");
    }
    let mapped = format!("{of}: IPv4-mapped IPv6 address {} is not allowed", quote(text));
    found.is_mapped().then_some(mapped)
}

/// What is known of an address.
#[derive(Default)]
pub(super) struct Address {
    pub(super) is_six: bool,
    has_zone: bool,
    /// Its groups of four digits, where there are eight.
    groups: Vec<u16>,
}

impl Address {
    /// Whether it is one of four numbers, written as one of eight.
    fn is_mapped(&self) -> bool {
        self.is_six && self.groups.get(..6) == Some(&[0, 0, 0, 0, 0, 0xffff])
    }
}

/// Reads an address as `netip.ParseAddr` does, or says why it is none.
pub(super) fn address(text: &str) -> Result<Address, String> {
    let said = |why: String| format!("ParseAddr({}): {why}", quote(text));
    match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        None => Err(said("unable to parse IP".into())),
        Some(b'%') => Err(said("missing IPv6 address".into())),
        Some(b'.') => of_four(text).map_err(said).map(|_| Address::default()),
        Some(_) => of_eight(text).map_err(said),
    }
}

fn at(why: &str, rest: &str) -> String {
    format!("{why} (at {})", quote(rest))
}

/// An address of eight groups (`parseIPv6`).
fn of_eight(text: &str) -> Result<Address, String> {
    let (mut rest, has_zone) = match text.split_once('%') {
        Some((_, "")) => return Err("zone must be a non-empty string".into()),
        Some((rest, _)) => (rest, true),
        None => (text, false),
    };
    let mut groups: Vec<u16> = Vec::new();
    let mut gap = None;
    if let Some(after) = rest.strip_prefix("::") {
        (gap, rest) = (Some(0), after);
    }
    while groups.len() < 8 && !(rest.is_empty() && gap == Some(groups.len())) {
        let n_digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let group = match n_digits {
            0 => return Err(at("each colon-separated field must have at least one digit", rest)),
            1..=4 => u16::from_str_radix(&rest[..n_digits], 16).unwrap_or_default(),
            _ => return Err(at("each group must have 4 or less digits", rest)),
        };
        if rest[n_digits..].starts_with('.') {
            let last = last_of_eight(rest, groups.len(), gap.is_some())?;
            groups.extend(last);
            rest = "";
            break;
        }
        groups.push(group);
        rest = &rest[n_digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else { return Err(at("unexpected character, want colon", rest)) };
        if after.is_empty() {
            return Err(at("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(at("multiple :: in address", rest));
            }
            (gap, rest) = (Some(groups.len()), after);
        }
    }
    if !rest.is_empty() {
        return Err(at("trailing garbage after address", rest));
    }
    match gap {
        None if groups.len() < 8 => return Err("address string too short".into()),
        Some(_) if groups.len() >= 8 => return Err("the :: must expand to at least one field of zeros".into()),
        Some(gap) => {
            let missing = 8 - groups.len();
            groups.splice(gap..gap, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    Ok(Address { is_six: true, has_zone, groups })
}

/// The last two groups, written as an address of four numbers.
fn last_of_eight(rest: &str, n_groups: usize, has_gap: bool) -> Result<[u16; 2], String> {
    if !has_gap && n_groups != 6 {
        return Err(at("embedded IPv4 address must replace the final 2 fields of the address", rest));
    }
    if n_groups > 6 {
        return Err(at("too many hex fields to fit an embedded IPv4 at the end of the address", rest));
    }
    let [a, b, c, d] = of_four(rest)?.map(u16::from);
    Ok([a << 8 | b, c << 8 | d])
}

/// An address of four numbers (`parseIPv4Fields`).
fn of_four(text: &str) -> Result<[u8; 4], String> {
    let bytes = text.as_bytes();
    let mut fields = [0; 4];
    let (mut value, mut n_digits, mut n_fields) = (0_u8, 0, 0);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if n_digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".into());
                }
                let more = value.checked_mul(10).and_then(|value| value.checked_add(byte - b'0'));
                value = more.ok_or("IPv4 field has value >255")?;
                n_digits += 1;
            }
            b'.' => {
                if index == 0 || index + 1 == bytes.len() || bytes[index - 1] == b'.' {
                    return Err(at("IPv4 field must have at least one digit", &text[index..]));
                }
                if n_fields == 3 {
                    return Err("IPv4 address too long".into());
                }
                fields[n_fields] = value;
                n_fields += 1;
                (value, n_digits) = (0, 0);
            }
            // What was before are digits and points: a letter begins here.
            _ => return Err(at("unexpected character", &text[index..])),
        }
    }
    fields[3] = value;
    if n_fields < 3 { Err("IPv4 address too short".into()) } else { Ok(fields) }
}
