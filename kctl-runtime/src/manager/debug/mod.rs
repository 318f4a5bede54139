//! Serves the debug page `/debug/` with the present state and the last reconciles of a manager. Each request reads its [`View`].
//!
//! It shows names and errors, so it is meant for people on the machine. A request has to name a known host. Otherwise a
//! foreign web page could make a browser send requests to loopback under the page's host name (DNS rebinding).
//!
//! | Path | Content |
//! |---|---|
//! | `/debug/` | the page; its script polls the state |
//! | `/debug/state.json?after=N` | [`state::DebugState`], with the reconciles after number N |
//! | `/debug/slot.json?key=K` | the slot of a key, and why this replica reconciles the key or does not |
//! | `/debug/graph.svg` | kinds and controllers, and the relations between them |
//!
//! Nothing here writes. Even so the page is off by default except in `dev`, and reached by `kubectl port-forward` in a
//! cluster.

mod state;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use kctl_apimachinery::url::parse_query;
use serde_json::json;
use tokio::time::Instant;

use state::Seen;

use super::{
    Clock, View,
    health::Health,
    history::History,
    serve::{Page, Pages, text},
};
use crate::{key::ObjectKey, manifest, spec::ControllerSpec};

const HTML: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("app.js");
const STYLE: &str = include_str!("style.css");
const ICON: &str = include_str!("icon.svg");

/// Names under which a machine reaches itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The page loads nothing from elsewhere, runs no inline script, and cannot be put into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The data behind the page.
pub(crate) struct Debug {
    /// Name of the program, the headline.
    pub(crate) app: String,
    pub(crate) view: View,
    pub(crate) health: Health,
    pub(crate) history: Arc<History>,
    /// The clock with which the page compares times of reconciles.
    pub(crate) clock: Clock,
    /// Hosts that requests may name in addition to loopback.
    pub(crate) hosts: Vec<String>,
}

impl Debug {
    pub(crate) fn pages(self) -> Pages {
        let since = Instant::now();
        Arc::new(move |request| {
            let mut page = if is_known_host(request.headers().get(header::HOST), request.uri().host(), &self.hosts) {
                self.page(request, since)
            } else {
                let help = "name the host with `--debug-allow-host` if it is this one";
                text(StatusCode::FORBIDDEN, format!("this page is not served under this name; {help}\n"))
            };
            set_security_headers(page.headers_mut());
            page
        })
    }

    /// Answers a request under a known host.
    fn page(&self, request: &Request<()>, since: Instant) -> Page {
        match request.uri().path() {
            "/debug/" => page("text/html; charset=utf-8", HTML.into()),
            "/debug/app.js" => page("text/javascript; charset=utf-8", SCRIPT.into()),
            "/debug/style.css" => page("text/css; charset=utf-8", STYLE.into()),
            "/debug/icon.svg" => page("image/svg+xml", ICON.into()),
            "/debug/graph.svg" => {
                let specs: Vec<ControllerSpec> = self.view.controllers().iter().map(|(spec, _)| spec.clone()).collect();
                page("image/svg+xml", manifest::graph(&specs, manifest::GraphFormat::Svg))
            }
            "/debug/state.json" => self.state(request.uri().query().unwrap_or_default(), since),
            "/debug/slot.json" => self.slot(request.uri().query().unwrap_or_default()),
            "/" | "/debug" => {
                let mut page = text(StatusCode::FOUND, "the page is /debug/\n");
                page.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/debug/"));
                page
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /debug/, /debug/state.json, /debug/slot.json and /debug/graph.svg\n",
            ),
        }
    }

    /// Returns the state as JSON. `after` in the query is the number of the last reconcile that the client has.
    fn state(&self, query: &str, since: Instant) -> Page {
        let after = query.split('&').find_map(|part| part.strip_prefix("after=")).unwrap_or("0");
        let Ok(after) = after.parse() else {
            return text(
                StatusCode::BAD_REQUEST,
                "`after` is the number of a reconcile: write for example ?after=12\n",
            );
        };
        let (view, health, history) = (&self.view, &self.health, &*self.history);
        let seen = Seen { app: &self.app, now: (self.clock)(), since, view, health, history };
        match serde_json::to_string(&seen.state(after)) {
            Ok(json) => page("application/json", json),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }

    /// Returns the slot of the key in the query as JSON, with its owner and the reason for a person.
    fn slot(&self, query: &str) -> Page {
        let Some(shards) = self.view.shards() else {
            let help = if self.view.controller_ring().is_some() {
                "the sharder of its ring assigns objects to it, by the label of the object"
            } else {
                "run it with --shards N, or with `App::sharded`, to divide its keys into slots"
            };
            return text(StatusCode::NOT_FOUND, format!("this program has no slots: {help}\n"));
        };
        let key: ObjectKey = match value_of(query, "key").parse() {
            Ok(key) => key,
            Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        let found = shards.explain(&key);
        let (slot, owner, state, reason) = (found.slot, found.owner, found.state, found.reason);
        let json = json!({ "key": key.to_string(), "slot": slot, "owner": owner, "state": state, "reason": reason });
        page("application/json", json.to_string())
    }
}

/// Returns the decoded value of a parameter in the query; empty if it is missing.
fn value_of(query: &str, name: &str) -> String {
    parse_query(query).remove(name).and_then(|values| values.into_iter().next()).unwrap_or_default()
}

/// Returns a page with another content type than plain text.
fn page(kind: &'static str, body: String) -> Page {
    let mut page = text(StatusCode::OK, body);
    page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}

/// Returns `true` if a request names a known host, in `Host` (HTTP/1) or the authority (HTTP/2). Ports are
/// ignored.
fn is_known_host(header: Option<&HeaderValue>, authority: Option<&str>, hosts: &[String]) -> bool {
    let is_known = |named: &str| {
        let host = match named.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => named,
        };
        LOOPBACK.into_iter().chain(hosts.iter().map(String::as_str)).any(|name| name.eq_ignore_ascii_case(host))
    };
    let header = header.map(|host| host.to_str().unwrap_or_default());
    (header.is_some() || authority.is_some()) && header.into_iter().chain(authority).all(is_known)
}

/// Sets the headers that keep other pages from embedding or reading this one.
fn set_security_headers(headers: &mut HeaderMap) {
    let fixed = [
        ("content-security-policy", POLICY),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_of_the_page_are_words() {
        let headings = HTML.split("<th ").skip(1).filter_map(|rest| rest.split_once('>')?.1.split_once("</th>"));
        let headings: Vec<_> = headings.map(|(heading, _)| heading).collect();
        assert!(headings.contains(&"Check") && headings.len() > 30, "{headings:?}");
        for heading in headings {
            let mut pairs = heading.as_bytes().windows(2);
            let is_name = pairs.any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
            assert!(!is_name, "{heading} is the name of a type");
        }
    }

    #[test]
    fn parameters_of_a_query_are_decoded() {
        let cases = [
            ("key=default%2Fblog", "default/blog"),
            ("after=1&key=default/blog&key=other", "default/blog"),
            ("key=%C3%A4+b", "ä b"),
            ("keys=a&a=key", ""),
            ("key=%2", ""),
            ("key", ""),
            ("", ""),
        ];
        for (query, expected) in cases {
            assert_eq!(value_of(query, "key"), expected, "{query}");
        }
    }

    #[test]
    fn only_hosts_that_are_this_machine_are_known() {
        let allowed = ["debug.example".to_owned()];
        let cases = [
            ("localhost", true),
            ("LOCALHOST:8082", true),
            ("127.0.0.1:8082", true),
            ("[::1]:8082", true),
            ("[::1]", true),
            ("debug.example:80", true),
            ("debug.example", true),
            ("other.example", false),
            ("localhost.other.example", false),
            ("127.0.0.1.other.example:8082", false),
            ("other.example:localhost", false),
            ("", false),
            (":8082", false),
        ];
        for (host, expected) in cases {
            let header = HeaderValue::from_static(host);
            assert_eq!(is_known_host(Some(&header), None, &allowed), expected, "{host:?}");
            assert_eq!(is_known_host(None, Some(host), &allowed), expected, "{host:?} of HTTP/2");
        }
        assert!(
            !is_known_host(Some(&HeaderValue::from_static("other.example")), Some("localhost"), &[]),
            "both have to be"
        );
        assert!(!is_known_host(None, None, &allowed), "no host at all");
    }
}
