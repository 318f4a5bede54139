//! Addresses of webhooks as Go reads them (`Parse` of `net/url`).

use std::net::Ipv6Addr;

use crate::go;

/// What the rules of webhooks ask of an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Url<'a> {
    /// In lower case.
    pub(super) scheme: String,
    pub(super) user: Option<&'a str>,
    pub(super) host: &'a str,
    pub(super) query: &'a str,
    pub(super) fragment: &'a str,
}

impl<'a> Url<'a> {
    /// Reads an address.
    ///
    /// # Errors
    ///
    /// Says in the words of Go why it is none.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let (whole, fragment) = text.split_once('#').unwrap_or((text, ""));
        let said = |of: &str, why: String| format!("parse {}: {why}", go::quote(of));
        let url = Self::without_fragment(whole).map_err(|why| said(whole, why))?;
        escapes(fragment).map_err(|why| said(text, why))?;
        Ok(Self { fragment, ..url })
    }

    fn without_fragment(text: &'a str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".into());
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self { scheme: scheme.to_lowercase(), query, ..Self::default() };
        let mut path = rest;
        if let Some(rest) = rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///")) {
            let (authority, after) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
            check_host(host)?;
            (url.user, url.host, path) = (user, host, after);
        } else if !rest.starts_with('/') {
            if !scheme.is_empty() {
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        escapes(path)?;
        Ok(url)
    }
}

/// What is before the first colon, where that is a scheme.
fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = if let Some((_, inside)) = host.rsplit_once('[') {
        let Some((address, port)) = inside.rsplit_once(']') else { return Err("missing ']' in host".into()) };
        if address.parse::<Ipv6Addr>().is_err() {
            return Err(format!("invalid host: ParseAddr({}): unable to parse IP", go::quote(address)));
        }
        ("", port)
    } else {
        host.split_at(host.rfind(':').unwrap_or(host.len()))
    };
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(format!("invalid port {} after host", go::quote(port)));
    }
    let is_allowed = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "!$&'()*+,;=:[]<>\"-_.~%".contains(c);
    // What is escaped is judged as it comes.
    escapes(name)?;
    match name.chars().find(|c| !is_allowed(*c)) {
        Some(c) => Err(format!("invalid character {} in host name", go::quote(&c.to_string()))),
        None => Ok(()),
    }
}

/// Whether each percent sign begins an escaped byte.
fn escapes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let escaped: String = rest[at..].chars().take(3).collect();
        if escaped.len() < 3 || !escaped.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("invalid URL escape {}", go::quote(&escaped)));
        }
        rest = &rest[at + 3..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, why: &str) {
        assert_eq!(Url::parse(text), Err(why.to_owned()));
    }

    #[test]
    fn parts_of_addresses_are_told_apart() {
        let url = Url::parse("HTTPS://u:p@x:8443/a%20b?q#f").unwrap();
        let parts = (url.scheme.as_str(), url.user, url.host, url.query, url.fragment);
        assert_eq!(parts, ("https", Some("u:p"), "x:8443", "q", "f"));
        for (text, scheme) in [("https:x", "https"), ("a:b", "a"), ("x", ""), ("/x", ""), ("", "")] {
            assert_eq!(Url::parse(text), Ok(Url { scheme: scheme.into(), ..Url::default() }), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_told_as_go_tells_it() {
        check("%zz", r#"parse "%zz": invalid URL escape "%zz""#);
        check("https://x:a", r#"parse "https://x:a": invalid port ":a" after host"#);
        check(" https://x", r#"parse " https://x": first path segment in URL cannot contain colon"#);
        check("https://x y", r#"parse "https://x y": invalid character " " in host name"#);
        check("://x", r#"parse "://x": missing protocol scheme"#);
        check("https://[::1", r#"parse "https://[::1": missing ']' in host"#);
        check("https://[a]/", r#"parse "https://[a]/": invalid host: ParseAddr("a"): unable to parse IP"#);
        check("https://x\u{7f}", r#"parse "https://x\x7f": net/url: invalid control character in URL"#);
        check("https://x/%2", r#"parse "https://x/%2": invalid URL escape "%2""#);
    }
}
