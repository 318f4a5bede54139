//! URLs as Go's `net/url` parses them: which strings are valid, and their parts.
//!
//! Go accepts other URLs than the URL Standard of browsers, and leaves most parts unchanged.
//!
//! ```
//! use kctl_apimachinery::url::{Url, escape};
//!
//! let url = Url::parse("https://hooks.example.com:8443/mutate?timeout=5s").unwrap();
//! assert_eq!(url.host_and_port(), ("hooks.example.com", "8443"));
//! assert_eq!(escape("a/b"), "a%2Fb");
//! ```

use std::{collections::BTreeMap, net::Ipv6Addr};

/// A parsed URL. Parts are unchanged unless noted.
///
/// ```
/// use kctl_apimachinery::url::Url;
///
/// let url = Url::parse("HTTPS://u:p@example.com/a%20b?q=1#top").unwrap();
/// assert_eq!((url.scheme.as_str(), url.user.as_deref(), url.host.as_str()), ("https", Some("u:p"), "example.com"));
/// assert_eq!((url.path.as_str(), url.query.as_str(), url.fragment.as_str()), ("/a%20b", "q=1", "top"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Url {
    /// The scheme in lower case; empty for a relative URL.
    pub scheme: String,
    /// The user information before the `@`, such as `name:password`.
    pub user: Option<String>,
    /// The host with the port, with its escapes decoded.
    pub host: String,
    /// The part after the scheme, if it does not start with a slash (`mailto:x`); `path` and `host` are empty then.
    opaque: String,
    /// The path, with its escapes.
    pub path: String,
    /// The part after the `?`, without percent-decoding; see [`parse_query`].
    pub query: String,
    /// The part after the `#`, decoded.
    pub fragment: String,
}

/// The context of a URL, which decides whether it may be relative.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The URL of a request: with a scheme, or with a path that begins with a slash.
    Request,
    /// Any URL, including relative ones.
    Reference,
}

impl Url {
    /// Parses a URL, which may be relative and have a fragment (`url.Parse`); `None` if it is invalid.
    ///
    /// ```
    /// use kctl_apimachinery::url::Url;
    ///
    /// assert!(Url::parse("/apis").is_some());
    /// assert!(Url::parse("https://example.com:port").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let url = Self::without_fragment(before, Form::Reference)?;
        Some(Self { fragment: path_unescape(fragment)?, ..url })
    }

    /// Returns `true` for the URL of a request (`url.ParseRequestURI`): absolute, or with a path that begins with a
    /// slash.
    ///
    /// ```
    /// use kctl_apimachinery::url::Url;
    ///
    /// assert!(Url::is_of_request("/apis") && !Url::is_of_request("apis"));
    /// ```
    #[must_use]
    pub fn is_of_request(text: &str) -> bool {
        Self::without_fragment(text, Form::Request).is_some()
    }

    /// Returns the problems of a webhook's URL (`ValidateWebhookURL`), each as the part and the reason.
    ///
    /// ```
    /// use kctl_apimachinery::url::Url;
    ///
    /// let problems = |url| Url::parse(url).unwrap().webhook_problems().len();
    /// assert_eq!((problems("https://example.com/a"), problems("http://user@example.com/?a=b#c")), (0, 4));
    /// ```
    #[must_use]
    pub fn webhook_problems(&self) -> Vec<(&str, &'static str)> {
        let user = self.user.as_deref();
        let checks = [
            (self.scheme != "https", self.scheme.as_str(), "'https' is the only allowed URL scheme"),
            (self.host.is_empty(), self.host.as_str(), "host must be specified"),
            (user.is_some(), user.unwrap_or_default(), "user information is not permitted in the URL"),
            (!self.fragment.is_empty(), self.fragment.as_str(), "fragments are not permitted in the URL"),
            (!self.query.is_empty(), self.query.as_str(), "query parameters are not permitted in the URL"),
        ];
        checks.into_iter().filter(|(is_wrong, ..)| *is_wrong).map(|(_, part, why)| (part, why)).collect()
    }

    /// Parses a URL in which a `#` has no meaning (`url.parse` of Go).
    fn without_fragment(text: &str, form: Form) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control()) || (text.is_empty() && form == Form::Request) {
            return None;
        }
        if text == "*" {
            return Some(Self { path: "*".into(), ..Self::default() });
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self { scheme: scheme.to_ascii_lowercase(), query: query.into(), ..Self::default() };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.into();
                return Some(url);
            }
            if form == Form::Request || rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return None;
            }
        }
        let has_authority = !scheme.is_empty() || (form == Form::Reference && !rest.starts_with("///"));
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            None => rest,
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                url.set_authority(authority)?;
                path
            }
        };
        url.path = escaped_path(path)?;
        Some(url)
    }

    /// Sets the user and the host from the part between `//` and the path (`parseAuthority`); `None` if it is invalid.
    fn set_authority(&mut self, authority: &str) -> Option<()> {
        let (user, host_part) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        self.host = host(host_part)?;
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        let is_valid = |user: &str| user.bytes().all(is_known) && unescape(user, Within::Path).is_some();
        self.user = user.map(str::to_owned);
        user.is_none_or(is_valid).then_some(())
    }

    /// Returns the host without brackets, and the port (`splitHostPort`), which may be empty.
    ///
    /// ```
    /// use kctl_apimachinery::url::Url;
    ///
    /// assert_eq!(Url::parse("http://[::1]:80/").unwrap().host_and_port(), ("::1", "80"));
    /// ```
    #[must_use]
    pub fn host_and_port(&self) -> (&str, &str) {
        let colon = self.host.rfind(':').filter(|colon| is_port(&self.host[*colon..]));
        let (host, port) = colon.map_or((self.host.as_str(), ""), |at| (&self.host[..at], &self.host[at + 1..]));
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }
}

/// Parses a query into the values of each name (`url.ParseQuery`). Invalid pairs are left out, such as those with a
/// semicolon. Bytes that are not UTF-8 become U+FFFD.
///
/// ```
/// assert_eq!(kctl_apimachinery::url::parse_query("q=a+b&q=%31&x=%zz&y=1;2")["q"], ["a b", "1"]);
/// ```
#[must_use]
pub fn parse_query(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if let Some((name, value)) = unescape(name, Within::Query).zip(unescape(value, Within::Query)) {
            all.entry(name).or_default().push(value);
        }
    }
    all
}

/// Decodes the percent-escapes of a path (`url.PathUnescape`); `None` if one is invalid. A `+` is kept. Bytes that are
/// not UTF-8 become U+FFFD.
///
/// ```
/// use kctl_apimachinery::url::path_unescape;
///
/// assert_eq!((path_unescape("a%2Fb+c").as_deref(), path_unescape("%zz")), (Some("a/b+c"), None));
/// ```
#[must_use]
pub fn path_unescape(path: &str) -> Option<String> {
    unescape(path, Within::Path)
}

/// Percent-encodes a string for a path segment or a query value: all bytes except letters, digits, `-`, `.`, `_` and
/// `~`.
///
/// ```
/// assert_eq!(kctl_apimachinery::url::escape("system:node/a b"), "system%3Anode%2Fa%20b");
/// ```
#[must_use]
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// Returns the scheme and the string after its colon (`getScheme`).
fn scheme(text: &str) -> Option<(&str, &str)> {
    let is_known = |index: usize, byte: u8| {
        byte.is_ascii_alphabetic() || (index > 0 && (byte.is_ascii_digit() || b"+-.".contains(&byte)))
    };
    match text.bytes().enumerate().find(|(index, byte)| !is_known(*index, *byte)) {
        Some((0, b':')) => None,
        Some((at, b':')) => Some((&text[..at], &text[at + 1..])),
        _ => Some(("", text)),
    }
}

/// Returns a decoded host with its port (`parseHost`).
fn host(text: &str) -> Option<String> {
    let Some(inside) = text.strip_prefix('[') else {
        let is_valid = !text.contains('[') && text.find(':').is_none_or(|colon| is_port(&text[colon..]));
        return unescape(text, Within::Host).filter(|_| is_valid);
    };
    let (inner, port) = inside.rsplit_once(']')?;
    // The percent sign before a zone is escaped.
    let zone = inner.find("%25").unwrap_or(inner.len());
    let inner = unescape(&inner[..zone], Within::Host)? + &unescape(&inner[zone..], Within::Zone)?;
    let (address, zone) = inner.split_once('%').unwrap_or((&inner, "zone"));
    let is_valid = is_port(port) && !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok();
    is_valid.then(|| format!("[{inner}]{port}"))
}

/// Returns `true` for an empty string, or for a colon with optional digits (`validOptionalPort`).
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The part of a URL, which decides what may be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Path,
    Query,
    Host,
    Zone,
}

/// Returns `true` for a byte that need not be escaped in a host (`shouldEscape`).
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte)
}

/// Resolves percent-escapes (`unescape`); `None` if one is invalid or not allowed in this part.
fn unescape(text: &str, within: Within) -> Option<String> {
    unescape_bytes(text, within).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Resolves percent-escapes to bytes, which need not be UTF-8.
fn unescape_bytes(text: &str, within: Within) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let is_host_part = matches!(within, Within::Host | Within::Zone);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if is_host_part && byte.is_ascii() && !is_host_byte(byte) {
                return None;
            }
            out.push(if byte == b'+' && within == Within::Query { b' ' } else { byte });
            at += 1;
            continue;
        }
        let escape = &bytes[at..bytes.len().min(at + 3)];
        let digit = |index: usize| escape.get(index).and_then(|digit| char::from(*digit).to_digit(16));
        let (high, low) = digit(1).zip(digit(2))?;
        let value = u8::try_from(high * 16 + low).ok()?;
        let is_allowed = match within {
            Within::Path | Within::Query => true,
            Within::Host => !value.is_ascii() || escape == b"%25",
            Within::Zone => escape == b"%25" || value == b' ' || is_host_byte(value),
        };
        if !is_allowed {
            return None;
        }
        out.push(value);
        at += 3;
    }
    Some(out)
}

/// Returns the escaped path. If the input is a valid way to escape it, it is returned unchanged (`setPath`,
/// `EscapedPath`).
fn escaped_path(text: &str) -> Option<String> {
    let decoded = unescape_bytes(text, Within::Path)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    if text.bytes().all(|byte| is_plain(byte) || b"!'()*[]%".contains(&byte)) {
        return Some(text.into());
    }
    let escaped = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    Some(decoded.into_iter().map(escaped).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url_are_parsed() {
        let url = Url::parse("HTTPS://u:p@x:8443/a%20b?q=1&q=2#f").unwrap();
        let parts = (url.scheme.as_str(), url.user.as_deref(), url.host_and_port(), url.fragment.as_str());
        assert_eq!(parts, ("https", Some("u:p"), ("x", "8443"), "f"));
        assert_eq!((url.path.as_str(), url.query.as_str()), ("/a%20b", "q=1&q=2"));
        for text in ["", "x", "/x", "a:b", "https:x", "http://[::1]:80", "http://[fe80::1%25en0]/"] {
            assert!(Url::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for text in [
            "%zz",
            "https://x:a",
            " https://x",
            "https://x y",
            "://x",
            "https://[::1",
            "https://[a]/",
            "https://x\u{7f}",
            "https://x/%2",
            "http://[fe80::1%25]/",
            "http://a b@c/",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
        assert!(Url::is_of_request("/a") && !Url::is_of_request("a") && !Url::is_of_request(""));
    }
}
