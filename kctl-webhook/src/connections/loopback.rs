//! The address under which clients on the same machine reach a server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the address for clients on this machine: loopback if the server listens on all addresses.
///
/// `0.0.0.0` and `[::]` are every address of the machine. No certificate is valid for them.
///
/// ```
/// use kctl_webhook::connections::loopback_if_unspecified;
///
/// let url = format!("https://{}", loopback_if_unspecified(([0, 0, 0, 0], 6443).into()));
/// assert_eq!(url, "https://127.0.0.1:6443");
/// ```
pub fn loopback_if_unspecified(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
