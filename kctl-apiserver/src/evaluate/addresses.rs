//! IP addresses and CIDRs in expressions. Upstream: `pkg/cel/library/ip.go` and `cidr.go` of apiserver.
//!
//! `kube-cel` implements the functions. This module first rejects strings that Go's `netip` rejects: addresses with
//! zones (`fe80::1%eth0`) and IPv4-mapped addresses.

use std::net::IpAddr;

use kube_cel::cel::Value as Cel;

use super::{EvalResult, NO_OVERLOAD, Target};

/// Returns the result of a function that takes an address or a CIDR as a string; `None` if `kube-cel` has to evaluate it.
///
/// Only errors and the results of `isIP` and `isCIDR` are returned here. `kube-cel` evaluates all other calls.
pub(super) fn call(function: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let [Cel::String(text)] = arguments else { return None };
    let invalid = |what: &str| Some(Err(format!("{text:?} is not a valid {what}").into()));
    match (function, target) {
        ("isIP", Target::None) => Some(Ok(Cel::Bool(is_ip(text)))),
        ("isCIDR", Target::None) => Some(Ok(Cel::Bool(is_cidr(text)))),
        ("ip", Target::None) | ("isCanonical", Target::Library("ip")) if !is_ip(text) => invalid("IP address"),
        ("cidr", Target::None) | ("containsCIDR", Target::Value(Cel::Opaque(_))) if !is_cidr(text) => invalid("CIDR"),
        ("containsIP", Target::Value(Cel::Opaque(_))) if !is_ip(text) => Some(Err(NO_OVERLOAD.into())),
        _ => None,
    }
}

/// Returns `true` for an address without a zone that is not an IPv4-mapped IPv6 address (`parseIPAddr`).
fn is_ip(text: &str) -> bool {
    text.parse().is_ok_and(|address: IpAddr| address.to_canonical() == address)
}

/// Returns `true` for an address with the length of a prefix, which has no sign and no leading zeros
/// (`netip.ParsePrefix`).
fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.rsplit_once('/') else { return false };
    let bits_max = if address.contains(':') { 128 } else { 32 };
    let is_plain = bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
    is_ip(address) && is_plain && bits.parse().is_ok_and(|bits: u8| bits <= bits_max)
}
