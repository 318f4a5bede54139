//! Validation of IP addresses and CIDR ranges.
//!
//! Fields with addresses are older than the strict parsers, so upstream has two rules for them:
//!
//! - `validate_legacy_ip` and `legacy_range`: fields that once accepted leading zeros and IPv4-mapped
//!   addresses. Both are rejected for new values, because parsers disagree about them.
//! - `validate_endpoint_ip`: addresses that a proxy forwards to, which must not be local to the node.
//!
//! Upstream: `k8s.io/apimachinery/pkg/util/validation/ip.go`.

use std::net::IpAddr;

use crate::{field::Field, names::NameRule};

pub(crate) use crate::names::parse_address as parse;

/// Validates an IP address that all parsers read alike (`IsValidIPForLegacyField` with the feature gate
/// `StrictIPCIDRValidation`). Some parsers read the leading zero of `010.0.0.1` as octal, others as decimal. Some read
/// the IPv4-mapped address `::ffff:10.0.0.1` as IPv4, others as IPv6.
pub(crate) fn validate_legacy_ip(address: &Field<'_>) {
    let is_wrong = has_zeros(address.text()) || parse(address.text()).is_none_or(is_mapped);
    let detail = "must be an IP address such as 10.9.8.7 or 2001:db8::ffff, without leading 0s, not IPv4-mapped";
    address.invalid_if(is_wrong, detail);
}

/// Validates the host name of a load balancer: a DNS subdomain, but not an IP address, although every dotted IPv4
/// address is a DNS subdomain too.
///
/// An empty or absent name is valid: the cloud provider may report an IP address instead.
pub(crate) fn validate_status_host(name: &Field<'_>) {
    name.name_if_set(NameRule::Subdomain);
    name.invalid_if(parse(name.text()).is_some(), "must be a DNS name, not an IP address");
}

/// Returns `true` for an IPv4-mapped IPv6 address, `::ffff:0:0/96`.
pub(crate) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.to_ipv4_mapped().is_some())
}

/// Returns `true` if a number of an IPv4 address has a leading zero, which some parsers read as octal.
fn has_zeros(address: &str) -> bool {
    !address.contains(':') && address.split('.').any(|part| part.len() > 1 && part.starts_with('0'))
}

/// Validates an address at which clients reach a backend (`ValidateEndpointIP`). Rejects addresses that mean another
/// host on every node: a proxy on any node must be able to forward to the address. Upstream calls this for `Endpoints`
/// and `EndpointSlice`.
pub(crate) fn validate_endpoint_ip(address: &Field<'_>) {
    let is_node_local = |parsed: IpAddr| {
        let is_link_local = match parsed {
            IpAddr::V4(four) => four.is_link_local() || four.octets()[..3] == [224, 0, 0],
            IpAddr::V6(six) => six.is_unicast_link_local() || six.segments()[0] & 0xff0f == 0xff02,
        };
        is_link_local || parsed.is_unspecified() || parsed.is_loopback()
    };
    let is_wrong = parse(address.text()).is_none_or(is_node_local);
    let detail = "must be a valid IP address that is not unspecified (0.0.0.0, ::), loopback (127.0.0.0/8, ::1/128), \
                  link-local (169.254.0.0/16, fe80::/10) or link-local multicast (224.0.0.0/24, ff02::/10)";
    address.invalid_if(is_wrong, detail);
}

/// A CIDR range: an address and the length of the prefix. Bits beyond the prefix may be set, since interface addresses
/// have this form: `10.9.8.7/24`.
#[derive(Clone, Copy)]
pub(crate) struct Cidr {
    /// The address before the `/`.
    pub(crate) address: IpAddr,
    /// The number of bits that all addresses of the range share. Invariant: at most 32 (IPv4) or 128 (IPv6), so that
    /// shifts by the remaining bits do not overflow.
    pub(crate) prefix_len: u32,
}

impl Cidr {
    /// Parses a CIDR range.
    ///
    /// `None` for a string without `/`, an invalid address, or a prefix length beyond 32 (IPv4) or 128
    /// (IPv6). Leading zeros in the prefix length are accepted here and checked by the callers.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = parse(address)?;
        // Rust's `parse` would also accept a sign.
        let bits = Some(bits).filter(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()))?;
        let prefix_len = bits.parse::<u32>().ok().filter(|bits| *bits <= address_len(address))?;
        Some(Self { address, prefix_len })
    }

    /// Returns `true` if a bit beyond the prefix is set.
    fn has_host_bits(self) -> bool {
        match self.address {
            IpAddr::V4(four) => u32::from(four).checked_shl(self.prefix_len).unwrap_or(0) != 0,
            IpAddr::V6(six) => u128::from(six).checked_shl(self.prefix_len).unwrap_or(0) != 0,
        }
    }

    /// Returns `true` if the range is a strict subset of another.
    ///
    /// Equal ranges are not a strict subset, and ranges of different IP families never contain each other. The
    /// address bits are compared after shifting out all bits beyond the prefix of `whole`.
    pub(crate) fn is_strict_subset_of(self, whole: Self) -> bool {
        for range in [self, whole] {
            debug_assert!(range.prefix_len <= address_len(range.address), "`parse` rejects longer prefixes");
        }
        let bits_of = |address: IpAddr| match address {
            IpAddr::V4(four) => u128::from(u32::from(four)) << 96,
            IpAddr::V6(six) => u128::from(six),
        };
        let prefix_of = |range: Self| bits_of(range.address).checked_shr(128 - whole.prefix_len).unwrap_or(0);
        self.address.is_ipv4() == whole.address.is_ipv4()
            && self.prefix_len > whole.prefix_len
            && prefix_of(self) == prefix_of(whole)
    }
}

/// Returns the number of bits of an address.
fn address_len(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Validates a CIDR range for fields that once were lenient (`IsValidCIDRForLegacyField`): `10.9.8.0/24` is valid,
/// `10.9.8.7/24` is not.
pub(crate) fn legacy_range(value: &Field<'_>) {
    let (before, len) = value.text().split_once('/').unwrap_or_default();
    let is_strict = |range: Cidr| {
        let is_plain = len.len() == 1 || !len.starts_with('0');
        !range.has_host_bits() && !is_mapped(range.address) && !has_zeros(before) && is_plain
    };
    let detail = "must be a CIDR range such as 10.9.8.0/24 or 2001:db8::/64, without leading 0s or bits beyond the \
                  prefix length, not IPv4-mapped";
    value.invalid_if(!Cidr::parse(value.text()).is_some_and(is_strict), detail);
}
