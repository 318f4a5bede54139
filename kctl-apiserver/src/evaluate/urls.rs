//! URLs as Go reads them: what a text is made of, or why it is no URL. Upstream: `net/url` of Go, and `pkg/cel/library/urls.go`
//! of apiserver, which reads a text twice: as a request has it, and, for its parts, with a fragment.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Value as Cel,
    objects::{Key, Map, Opaque},
};

use super::{Said, Target, addresses};
use crate::go::quote;

/// A URL that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Url {
    scheme: String,
    user: Option<String>,
    host: String,
    /// What follows a scheme and begins with no slash.
    opaque: String,
    path: String,
    query: String,
    fragment: String,
}

impl Opaque for Url {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
}

/// What a function says of a URL, or of a text that should be one; none if it is another function.
pub(super) fn called(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<Said> {
    match (name, target, arguments) {
        ("url", Target::None, [Cel::String(text)]) => {
            let read = wrong(text).map_or_else(|| Url::read(text), Err);
            let said = |why| format!("URL parse error during conversion from string: {why}");
            Some(read.map(|url| Cel::Opaque(Arc::new(url))).map_err(said))
        }
        ("isURL", Target::None, [Cel::String(text)]) => Some(Ok(Cel::Bool(wrong(text).is_none()))),
        (_, Target::Value(Cel::Opaque(value)), []) => value.downcast_ref::<Url>()?.part(name).map(Ok),
        _ => None,
    }
}

/// Why a text is no URL of a request (`url.ParseRequestURI`).
pub(super) fn wrong(text: &str) -> Option<String> {
    Url::parse(text, true).err().map(|why| format!("parse {}: {why}", quote(text)))
}

impl Url {
    /// What a text with a fragment is made of (`url.Parse`).
    fn read(text: &str) -> Result<Self, String> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let url = Self::parse(before, false).map_err(|why| format!("parse {}: {why}", quote(before)))?;
        let decoded = unescaped(fragment, Within::Path).map_err(|why| format!("parse {}: {why}", quote(text)))?;
        Ok(Self { fragment: String::from_utf8_lossy(&decoded).into_owned(), ..url })
    }

    fn parse(text: &str, of_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".into());
        }
        if text.is_empty() && of_request {
            return Err("empty url".into());
        }
        if text == "*" {
            return Ok(Self { path: "*".into(), ..Self::default() });
        }
        let (scheme, rest) = scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = Self { scheme: scheme.to_ascii_lowercase(), query: query.into(), ..Self::default() };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = rest.into();
                return Ok(url);
            }
            if of_request {
                return Err("invalid URI for request".into());
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err("first path segment in URL cannot contain colon".into());
            }
        }
        let has_authority = !scheme.is_empty() || (!of_request && !rest.starts_with("///"));
        let path = match rest.strip_prefix("//").filter(|_| has_authority) {
            None => rest,
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                url.set_authority(authority)?;
                path
            }
        };
        url.path = escaped_path(path)?;
        Ok(url)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let (user, host_part) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        self.host = host(host_part)?;
        let Some(user) = user else { return Ok(()) };
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
        if !user.bytes().all(is_known) {
            return Err("net/url: invalid userinfo".into());
        }
        for part in user.splitn(2, ':') {
            unescaped(part, Within::Path)?;
        }
        self.user = Some(user.into());
        Ok(())
    }

    fn part(&self, function: &str) -> Option<Cel> {
        let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
        Some(match function {
            "getScheme" => text(&self.scheme),
            "getHost" => text(&self.host),
            "getHostname" => text(self.host_and_port().0),
            "getPort" => text(self.host_and_port().1),
            "getEscapedPath" => text(&self.path),
            "getQuery" => self.questions(),
            _ => return None,
        })
    }

    /// The host without brackets, and the port (`splitHostPort`).
    fn host_and_port(&self) -> (&str, &str) {
        let colon = self.host.rfind(':').filter(|colon| is_port(&self.host[*colon..]));
        let (host, port) = colon.map_or((self.host.as_str(), ""), |at| (&self.host[..at], &self.host[at + 1..]));
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }

    /// The values of the query by their names, without what cannot be read (`url.ParseQuery`).
    fn questions(&self) -> Cel {
        let mut all: HashMap<String, Vec<Cel>> = HashMap::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| {
                unescaped(text, Within::Query).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            if let (Some(name), Some(value)) = (read(name), read(value)) {
                all.entry(name).or_default().push(Cel::String(Arc::new(value)));
            }
        }
        let map = all.into_iter().map(|(name, values)| (Key::String(Arc::new(name)), Cel::List(Arc::new(values))));
        Cel::Map(Map { map: Arc::new(map.collect()) })
    }
}

/// What is before the first colon, if that is a scheme, and what is behind it (`getScheme`).
fn scheme(text: &str) -> Result<(&str, &str), String> {
    let is_known = |index: usize, byte: u8| {
        byte.is_ascii_alphabetic() || (index > 0 && (byte.is_ascii_digit() || b"+-.".contains(&byte)))
    };
    match text.bytes().enumerate().find(|(index, byte)| !is_known(*index, *byte)) {
        Some((0, b':')) => Err("missing protocol scheme".into()),
        Some((at, b':')) => Ok((&text[..at], &text[at + 1..])),
        _ => Ok(("", text)),
    }
}

/// A host with its port (`parseHost`).
fn host(text: &str) -> Result<String, String> {
    let port_of = |text: &str| {
        if is_port(text) { Ok(()) } else { Err(format!("invalid port {} after host", quote(text))) }
    };
    let decoded =
        |text: &str, within| unescaped(text, within).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match text.rfind('[') {
        None => {
            text.find(':').map_or(Ok(()), |colon| port_of(&text[colon..]))?;
            return decoded(text, Within::Host);
        }
        Some(0) => {}
        Some(_) => return Err("invalid IP-literal".into()),
    }
    let closing = text.rfind(']').ok_or("missing ']' in host")?;
    let (inner, port) = (&text[1..closing], &text[closing + 1..]);
    port_of(port)?;
    // The percent sign before a zone is written as one that stands for itself.
    let zone = inner.find("%25").unwrap_or(inner.len());
    let inner = decoded(&inner[..zone], Within::Host)? + &decoded(&inner[zone..], Within::Zone)?;
    match addresses::address(&inner) {
        Ok(address) if address.is_six => Ok(format!("[{inner}]{port}")),
        Ok(_) => Err("invalid IP-literal".into()),
        Err(why) => Err(format!("invalid host: {why}")),
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Where in a URL something is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Path,
    Query,
    Host,
    Zone,
}

/// Whether a byte stands for itself in a host (`shouldEscape`).
fn is_of_hosts(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte)
}

fn unescaped(text: &str, within: Within) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let is_of_host = matches!(within, Within::Host | Within::Zone);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if is_of_host && byte.is_ascii() && !is_of_hosts(byte) {
                return Err(format!("invalid character {} in host name", quote(&char::from(byte).to_string())));
            }
            out.push(if byte == b'+' && within == Within::Query { b' ' } else { byte });
            at += 1;
            continue;
        }
        let escape = &bytes[at..bytes.len().min(at + 3)];
        let wrong = || Err(format!("invalid URL escape {}", quote(&String::from_utf8_lossy(escape))));
        let digit = |index: usize| escape.get(index).and_then(|digit| char::from(*digit).to_digit(16));
        let Some(value) = digit(1).zip(digit(2)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) else {
            return wrong();
        };
        let is_allowed = match within {
            Within::Path | Within::Query => true,
            Within::Host => !value.is_ascii() || escape == b"%25",
            Within::Zone => escape == b"%25" || value == b' ' || is_of_hosts(value),
        };
        if !is_allowed {
            return wrong();
        }
        out.push(value);
        at += 3;
    }
    Ok(out)
}

/// A path as it is shown: as it was written, if that is how one may write it (`setPath`, `EscapedPath`).
fn escaped_path(text: &str) -> Result<String, String> {
    let decoded = unescaped(text, Within::Path)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte);
    if text.bytes().all(|byte| is_plain(byte) || b"!'()*[]%".contains(&byte)) {
        return Ok(text.into());
    }
    let shown = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    Ok(decoded.into_iter().map(shown).collect())
}
