//! The proxy to an API server, from the kubeconfig or the environment, by the rules of Go's
//! `httpproxy`, which kubectl follows.
//!
//! kube's own client compares `NO_PROXY` with the address of the proxy.

use std::{fmt, net::IpAddr};

use http::Uri;
use kctl_runtime::reconcile::{Error, Result};

/// Supported schemes. `socks5` and `socks5h` are the same: the proxy resolves names.
const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

/// A proxy, and where its URL comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Proxy {
    pub(super) url: Uri,
    /// A flag, a variable, or the kubeconfig.
    from: String,
}

impl fmt::Display for Proxy {
    /// Prints the URL without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_secret, host)| host);
        write!(f, "{}://{host} ({})", self.url.scheme_str().unwrap_or_default(), self.from)
    }
}

impl Proxy {
    /// Parses the URL of a proxy. Without a scheme it is `http`, as in Go.
    pub(super) fn parse(text: &str, from: &str) -> Result<Self> {
        // The URL may contain a password, so the message does not repeat it.
        let wrong =
            |why: &str| Error::from(format!("{from}: {why}; write for example `http://proxy.example.com:3128`"));
        let with_scheme = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url: Uri = with_scheme.parse().map_err(|error| wrong(&format!("not the URL of a proxy: {error}")))?;
        let scheme = url.scheme_str().unwrap_or_default();
        if !SCHEMES.contains(&scheme) {
            return Err(wrong(&format!("`{scheme}` is not a proxy scheme; use one of {}", SCHEMES.join(", "))));
        }
        Ok(Self { url, from: from.into() })
    }
}

/// Returns the proxy that the environment has for this server, if any.
pub(super) fn proxy_from_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>> {
    let names =
        if server.scheme_str() == Some("http") { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    let set =
        |name: &&str| variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name.to_string(), value));
    let Some((name, value)) = names.iter().find_map(set) else { return Ok(None) };
    let exceptions = ["NO_PROXY", "no_proxy"].iter().find_map(set).map(|(_name, value)| value);
    if is_direct(server, exceptions.as_deref().unwrap_or_default()) {
        return Ok(None);
    }
    Proxy::parse(value.trim(), &name).map(Some)
}

/// Returns `true` if `NO_PROXY` excludes a server. Loopback addresses are always excluded.
fn is_direct(server: &Uri, exceptions: &str) -> bool {
    let host = server.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_lowercase();
    let ip: Option<IpAddr> = host.parse().ok();
    if host == "localhost" || ip.is_some_and(|ip| ip.is_loopback()) {
        return true;
    }
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let exceptions = exceptions.split(',').map(|part| part.trim().to_lowercase());
    exceptions.filter(|part| !part.is_empty()).any(|part| part == "*" || matches_no_proxy(&part, &host, ip, port))
}

/// Returns `true` if one part of `NO_PROXY` matches: an address, a CIDR range, a name with its
/// subdomains, or `.name` for subdomains alone.
fn matches_no_proxy(part: &str, host: &str, ip: Option<IpAddr>, port: u16) -> bool {
    if let (Some((network, length)), Some(ip)) = (part.split_once('/'), ip) {
        return in_range(ip, network, length).unwrap_or_default();
    }
    let (name, of_port) = match part.rsplit_once(':') {
        // An IPv6 address without brackets has no port.
        Some((name, text)) if !name.contains(':') || name.ends_with(']') => (name, text.parse::<u16>().ok()),
        _ => (part, None),
    };
    if of_port.is_some_and(|excepted_port| excepted_port != port) {
        return false;
    }
    let name = name.trim_start_matches('[').trim_end_matches(']');
    if let Some(ip) = ip {
        return name.parse() == Ok(ip);
    }
    let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// Returns `true` if an address is in a CIDR range; `None` if the range is malformed.
fn in_range(ip: IpAddr, network: &str, length: &str) -> Option<bool> {
    let (network, length): (IpAddr, u32) = (network.parse().ok()?, length.parse().ok()?);
    let (ip, network, bits): (u128, u128, u32) = match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => (u128::from(ip.to_bits()), u128::from(network.to_bits()), 32),
        (IpAddr::V6(ip), IpAddr::V6(network)) => (ip.to_bits(), network.to_bits(), 128),
        _ => return Some(false),
    };
    let beyond = bits.checked_sub(length)?;
    Some(beyond == 128 || ip >> beyond == network >> beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let of = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        let found = proxy_from_environment(&server.parse().unwrap(), of).map_err(|error| error.to_string())?;
        Ok(found.map(|proxy| proxy.to_string()))
    }

    #[test]
    fn no_proxy_names_directly_reached_servers() {
        let cases = [
            ("https://api.example.com", "", false),
            ("https://api.example.com", "example.com", true),
            ("https://api.example.com", ".example.com", true),
            ("https://api.example.com", "*.example.com", true),
            ("https://API.example.com", "api.EXAMPLE.com", true),
            ("https://example.com", ".example.com", false),
            ("https://badexample.com", "example.com", false),
            ("https://api.example.com:6443", "api.example.com", true),
            ("https://api.example.com:6443", "api.example.com:6443", true),
            ("https://api.example.com:6443", "api.example.com:443", false),
            ("https://api.example.com", "api.example.com:443", true),
            ("https://kubernetes.default.svc", "localhost, 127.0.0.1,.svc,.cluster.local,", true),
            ("https://10.96.0.1", "10.96.0.1", true),
            ("https://10.96.0.1:6443", "10.96.0.1:443", false),
            ("https://10.96.0.1", "10.96.0.0/12", true),
            ("https://10.112.0.1", "10.96.0.0/12", false),
            ("https://10.96.0.1", "0.0.0.0/0", true),
            ("https://10.96.0.1", "10.96.0.0/33", false),
            ("https://10.96.0.1", "0.96.0.1", false),
            ("https://[fd00::1]:6443", "fd00::/8", true),
            ("https://[fd00::1]:6443", "fd00::1", true),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", true),
            ("https://[fd00::1]:6443", "10.0.0.0/8", false),
            ("https://api.example.com", "*", true),
            ("https://api.example.com", ",,", false),
            ("https://proxied.example.com", "proxy.corp", false),
        ];
        for (server, exceptions, is_direct) in cases {
            let found = proxy(server, &[("HTTPS_PROXY", "http://proxy.corp:3128"), ("NO_PROXY", exceptions)]).unwrap();
            let expected = if is_direct { None } else { Some("http://proxy.corp:3128 (HTTPS_PROXY)".to_owned()) };
            assert_eq!(found, expected, "{server} with NO_PROXY={exceptions}");
        }
    }

    #[test]
    fn servers_of_this_machine_need_no_exception() {
        for server in ["https://127.0.0.1:6443", "https://127.8.0.1", "https://localhost:6443", "https://[::1]:6443"] {
            assert_eq!(proxy(server, &[("HTTPS_PROXY", "http://proxy.corp:3128")]), Ok(None), "{server}");
        }
    }

    #[test]
    fn uppercase_https_proxy_overrides_lowercase_variable() {
        let (https, http) = ("https://api.example.com", "http://api.example.com");
        let both = [("HTTPS_PROXY", "http://a"), ("https_proxy", "http://b"), ("http_proxy", "http://c")];
        assert_eq!(proxy(https, &both), Ok(Some("http://a (HTTPS_PROXY)".into())));
        assert_eq!(proxy(https, &[("HTTPS_PROXY", " "), both[1]]), Ok(Some("http://b (https_proxy)".into())));
        assert_eq!(proxy(http, &both), Ok(Some("http://c (http_proxy)".into())));
        assert_eq!(proxy(https, &[both[0], ("no_proxy", "example.com")]), Ok(None));
        assert_eq!(proxy(https, &[("HTTP_PROXY", "http://c"), ("ALL_PROXY", "http://d")]), Ok(None));
    }

    #[test]
    fn proxy_url_is_validated_and_its_password_hidden() {
        let of = |value: &str| proxy("https://api.example.com", &[("HTTPS_PROXY", value)]);
        let cases = [
            ("proxy.corp:3128", "http://proxy.corp:3128 (HTTPS_PROXY)"),
            ("https://proxy.corp", "https://proxy.corp (HTTPS_PROXY)"),
            ("socks5h://proxy.corp:1080", "socks5h://proxy.corp:1080 (HTTPS_PROXY)"),
            ("http://me:secret@proxy.corp:3128", "http://proxy.corp:3128 (HTTPS_PROXY)"),
        ];
        for (value, expected) in cases {
            assert_eq!(of(value), Ok(Some(expected.into())), "{value}");
        }
        assert!(Proxy::parse("http://me:secret@proxy.corp", "x").unwrap().url.to_string().contains("me:secret@"));
        let wrong = [
            (
                "ftp://me:secret@proxy.corp",
                "HTTPS_PROXY: `ftp` is not a proxy scheme; use one of http, https, socks5, socks5h",
            ),
            ("http://me:secret@", "HTTPS_PROXY: not the URL of a proxy: "),
        ];
        for (value, begin) in wrong {
            let error = of(value).unwrap_err();
            assert!(error.starts_with(begin) && !error.contains("secret"), "{value}: {error}");
        }
    }
}
