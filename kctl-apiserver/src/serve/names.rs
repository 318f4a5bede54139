//! The names and addresses in the server's certificate that clients may use to reach it.
//!
//! A server that listens on all addresses (`0.0.0.0`, `::`) has all addresses of the machine. They are read once, at
//! the start.
//!
//! `authenticate.rs` accepts the same set as the host of a request, so a client that verifies the certificate is
//! accepted too.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
};

/// The number of machine addresses in a certificate. A machine with more is a node with thousands of Pods or bridges;
/// the rest is left out.
const ADDRESSES_LEN_MAX: usize = 64;

/// The DNS names and addresses of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateNames {
    /// DNS names that clients may use to reach the server.
    pub(super) dns: BTreeSet<String>,
    /// Addresses that clients may use to reach the server.
    pub(super) addresses: BTreeSet<IpAddr>,
}

impl CertificateNames {
    /// Returns the names of a server that listens on an address, with further ones of the user. DNS names are stored in
    /// lower case. Brackets of IPv6 addresses are removed.
    pub(super) fn for_address(address: IpAddr, more: &[String]) -> Self {
        let mut names = Self::default();
        names.dns.insert("localhost".into());
        names.addresses.insert(address);
        if address.is_unspecified() {
            names.addresses.extend([IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]);
            names.addresses.extend(machine_addresses());
            names.dns.extend(host_name());
        }
        for name in more {
            match name.trim_matches(['[', ']']).parse() {
                Ok(address) => drop(names.addresses.insert(address)),
                Err(_) => drop(names.dns.insert(name.to_ascii_lowercase())),
            }
        }
        names
    }

    /// Returns `true` if a client may reach the server by this host. IPv6 addresses are passed without brackets. A
    /// wildcard of `--tls-san` matches one label, as in certificates: `*.example.com` matches `api.example.com`, but
    /// neither `example.com` nor `a.b.example.com`.
    pub(super) fn has(&self, host: &str) -> bool {
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let host = host.to_ascii_lowercase();
        let wildcard = host.split_once('.').map(|(_label, domain)| format!("*.{domain}"));
        self.dns.contains(&host) || wildcard.is_some_and(|wildcard| self.dns.contains(&wildcard))
    }
}

/// Returns the addresses of the machine that can be read. Only Linux has these tables. Elsewhere only the two addresses
/// of `outbound` are used.
fn machine_addresses() -> BTreeSet<IpAddr> {
    let table = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let found = v4(&table("/proc/net/fib_trie")).into_iter().chain(v6(&table("/proc/net/if_inet6")));
    let mut addresses: BTreeSet<IpAddr> = found.take(ADDRESSES_LEN_MAX).collect();
    addresses.extend(outbound());
    addresses
}

/// Returns the local addresses in Linux's `/proc/net/fib_trie`. The line after an address has its type. The table is a
/// tree, in which an address of the machine looks like this:
///
/// ```text
///    |-- 192.168.1.7
///       /32 host LOCAL
/// ```
fn v4(table: &str) -> Vec<IpAddr> {
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let is_local = |two: &&[&str]| two[1].contains("/32 host LOCAL");
    let address = |two: &[&str]| two[0].rsplit(' ').next()?.parse().ok();
    lines.windows(2).filter(is_local).filter_map(address).collect()
}

/// Returns the addresses in Linux's `/proc/net/if_inet6`, except link-local ones, which a URL can't name. Each line
/// begins with the address as 32 hexadecimal digits without colons.
fn v6(table: &str) -> Vec<IpAddr> {
    let address = |line: &str| u128::from_str_radix(line.split(' ').next()?, 16).ok().map(Ipv6Addr::from);
    let is_link_local = |address: &Ipv6Addr| address.segments()[0] & 0xffc0 == 0xfe80;
    table.lines().filter_map(address).filter(|address| !is_link_local(address)).map(IpAddr::V6).collect()
}

/// Returns the source addresses of connections, where the machine has no table of addresses. No packet is sent:
/// `192.0.2.0/24` and `2001:db8::/32` are reserved for documentation.
fn outbound() -> impl Iterator<Item = IpAddr> {
    let from = |own: IpAddr, other: IpAddr| {
        let socket = UdpSocket::bind((own, 0)).ok()?;
        socket.connect((other, 9)).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    let v4 = from(Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into());
    let v6 = from(Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into());
    [v4, v6].into_iter().flatten()
}

/// Returns the host name, if it is a valid DNS name. The kernel's name may be a full domain name or its first label; it
/// is used unchanged.
fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_ascii_lowercase();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tables_list_machine_addresses() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.1.2.0\n        \
                     /24 link UNICAST\n     |-- 10.1.2.3\n        /32 host LOCAL\n     |-- 10.1.2.255\n        \
                     /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(v4(table), ["10.1.2.3", "127.0.0.1"].map(|address| address.parse::<IpAddr>().unwrap()));
        let table =
            "fe800000000000000042acfffe110002 02 40 20 80 eth0\n20010db8000000000000000000000007 02 40 00 80 eth0\n";
        assert_eq!(v6(table), ["2001:db8::7".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn wildcard_server_is_certified_for_loopback_and_names() {
        let more = ["api.example.com".to_owned(), "192.0.2.7".to_owned(), "[2001:db8::1]".to_owned()];
        let names = CertificateNames::for_address(Ipv4Addr::UNSPECIFIED.into(), &more);
        for host in ["localhost", "127.0.0.1", "0.0.0.0", "API.example.com", "192.0.2.7", "2001:db8::1", "::1"] {
            assert!(names.has(host), "{host}");
        }
        assert!(!names.has("evil.example.com"));
        let names = CertificateNames::for_address(Ipv4Addr::LOCALHOST.into(), &["*.Example.com".to_owned()]);
        for (host, is_named) in [("api.example.COM", true), ("example.com", false), ("a.b.example.com", false)] {
            assert_eq!(names.has(host), is_named, "{host}");
        }
        let names = CertificateNames::for_address(Ipv4Addr::LOCALHOST.into(), &[]);
        assert_eq!((names.dns.len(), names.addresses.len()), (1, 1));
        assert!(names.has("localhost") && !names.has("192.0.2.7"));
    }
}
