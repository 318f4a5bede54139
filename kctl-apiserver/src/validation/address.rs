//! Validation of IP addresses and CIDR ranges.
//!
//! Fields with addresses are older than the strict parsers, so upstream has three rules for them:
//!
//! - `legacy` and `legacy_range`: fields that once accepted leading zeros and IPv4-mapped
//!   addresses. Both are rejected for new values, because parsers disagree about them.
//! - `endpoint`: addresses that a proxy forwards to, which must not be local to the node.
//! - `of_interface`: addresses with a prefix length, in the one canonical form.
//!
//! Upstream: `k8s.io/apimachinery/pkg/util/validation/ip.go`.

use std::net::IpAddr;

use serde_json::Value;

use crate::{
    field_errors::{Errors, text},
    names::NameRule,
};

pub(crate) use crate::names::{ADDRESS_INVALID as INVALID, parse_address as parse};

/// The message for a string that is not a CIDR range.
const RANGE: &str = "must be a CIDR range such as 10.9.8.0/24 or 2001:db8::/64";

/// Validates an IP address that all parsers read alike (`IsValidIPForLegacyField` with the feature
/// gate `StrictIPCIDRValidation`).
///
/// All failures are `FieldValueInvalid`, and at most one is reported:
///
/// - a string that is not an IPv4 or IPv6 address, the empty string included;
/// - an IPv4 address with leading zeros, such as `010.0.0.1`: some parsers read octal, others
///   decimal;
/// - an IPv4-mapped IPv6 address, such as `::ffff:10.0.0.1`: some parsers read IPv4, others IPv6.
pub(crate) fn legacy(address: &Value, path: &str, errors: &mut Errors) {
    match parse(text(address)) {
        None => errors.invalid(path, address, INVALID),
        Some(_) if has_zeros(text(address)) => errors.invalid(path, address, "must not have leading 0s"),
        Some(parsed) if is_mapped(parsed) => errors.invalid(path, address, MAPPED),
        Some(_) => {}
    }
}

/// Validates the host name of a load balancer.
///
/// An empty or absent name is valid: the cloud provider may report an IP address instead. A string
/// that parses as an IP address gets a separate error even if it is also a valid DNS subdomain,
/// which every dotted IPv4 address is.
pub(crate) fn host(name: &Value, path: &str, errors: &mut Errors) {
    if text(name).is_empty() {
        return;
    }
    errors.name(path, name, NameRule::Subdomain);
    if parse(text(name)).is_some() {
        errors.invalid(path, name, "must be a DNS name, not an IP address");
    }
}

/// The message for an IPv4-mapped IPv6 address.
const MAPPED: &str = "must not be an IPv4-mapped IPv6 address";

/// Returns `true` for an IPv4-mapped IPv6 address, `::ffff:0:0/96`.
fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some())
}

/// Returns `true` if a number of an IPv4 address has a leading zero, which some parsers read as octal.
fn has_zeros(address: &str) -> bool {
    !address.contains(':') && address.split('.').any(|part| part.len() > 1 && part.starts_with('0'))
}

/// Validates an address at which clients reach a backend (`ValidateEndpointIP`).
///
/// Rejects addresses that mean another host on every node: the unspecified, loopback, link-local unicast and link-local
/// multicast ranges. A proxy on any node must be able to forward to the address. Several errors are reported together.
/// Upstream calls this for `Endpoints` and `EndpointSlice`.
pub(crate) fn endpoint(address: &Value, path: &str, errors: &mut Errors) {
    let Some(parsed) = parse(text(address)) else {
        return errors.invalid(path, address, "must be a valid IP address");
    };
    if parsed.is_unspecified() {
        errors.invalid(path, address, &format!("may not be unspecified ({parsed})"));
    }
    if parsed.is_loopback() {
        errors.invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (is_local, is_local_group) = match parsed {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.is_unicast_link_local(), six.segments()[0] & 0xff0f == 0xff02),
    };
    if is_local {
        errors.invalid(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if is_local_group {
        errors.invalid(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// Parses a CIDR range into its address and the length of its prefix.
///
/// `None` for a string without `/`, an invalid address, or a prefix length beyond 32 (IPv4) or 128
/// (IPv6). Bits beyond the prefix may be set: `10.9.8.7/24` is parsed, since interface addresses
/// have this form. Leading zeros in the prefix length are accepted here and checked by the callers.
pub(crate) fn range(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let address = parse(address)?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    // Rust's `parse` would also accept a sign.
    let bits = Some(bits).filter(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
    Some((address, bits))
}

/// Validates a CIDR range for fields that once were lenient (`IsValidCIDRForLegacyField`).
///
/// A string that does not parse, or that has leading zeros in the address or in the prefix length, gets only that
/// error. Otherwise an IPv4-mapped address and bits beyond the prefix length are reported independently. `10.9.8.7/24`
/// fails for the latter, `10.9.8.0/24` is valid.
pub(crate) fn legacy_range(value: &Value, path: &str, errors: &mut Errors) {
    let Some((address, bits)) = range(text(value)) else { return errors.invalid(path, value, RANGE) };
    let (before, len) = text(value).split_once('/').unwrap_or_default();
    if has_zeros(before) || (len.len() > 1 && len.starts_with('0')) {
        return errors.invalid(path, value, "must not have leading 0s in IP or prefix length");
    }
    if is_mapped(address) {
        errors.invalid(path, value, "must not have an IPv4-mapped IPv6 address");
    }
    let beyond = match address {
        IpAddr::V4(four) => u128::from(u32::from(four).checked_shl(bits).unwrap_or(0)),
        IpAddr::V6(six) => u128::from(six).checked_shl(bits).unwrap_or(0),
    };
    if beyond != 0 {
        errors.invalid(path, value, "must not have bits set beyond the prefix length");
    }
}

/// Validates an address with the prefix length of its network, as a network interface has it
/// (`IsValidInterfaceAddress`), such as `10.9.8.7/24`.
///
/// The string must equal its canonical form: compressed lowercase IPv6, no leading zeros, no
/// IPv4-mapped address. The error contains the canonical form, so that a client can copy it.
pub(crate) fn of_interface(value: &Value, path: &str, errors: &mut Errors) {
    let Some((address, bits)) = range(text(value)) else {
        return errors.invalid(
            path,
            value,
            "must be an address with its prefix length, such as 10.9.8.7/24 or 2001:db8::1/64",
        );
    };
    let bits = if is_mapped(address) { bits.saturating_sub(96) } else { bits };
    let canonical = format!("{}/{bits}", address.to_canonical());
    if canonical != text(value) {
        errors.invalid(path, value, &format!("must be in canonical form ({canonical:?})"));
    }
}

/// Returns `true` if one range is a strict subset of another.
///
/// `part` and `whole` are pairs of address and prefix length, as `range` returns them. Equal ranges
/// are not a strict subset, and ranges of different IP families never contain each other. The
/// address bits are compared after shifting out all bits beyond the prefix of `whole`.
pub(crate) fn is_part(part: (IpAddr, u32), whole: (IpAddr, u32)) -> bool {
    let bits_of = |address: IpAddr| match address {
        IpAddr::V4(four) => u128::from(u32::from(four)) << 96,
        IpAddr::V6(six) => u128::from(six),
    };
    let prefix_of = |address: IpAddr| bits_of(address).checked_shr(128 - whole.1).unwrap_or(0);
    part.0.is_ipv4() == whole.0.is_ipv4() && part.1 > whole.1 && prefix_of(part.0) == prefix_of(whole.0)
}
