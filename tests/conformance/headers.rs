//! Selects the headers of a response that are compared: all except `LEFT_OUT`.

use http::HeaderMap;
use serde_json::{Map, Value};

/// Headers that are not compared, each with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("audit-id", "each request has its own, on the server that gives them"),
    ("connection", "it is about the connection; a request in the process has no connection"),
    (
        "content-length",
        "it follows from the body, whose uids, times and versions differ, and streamed responses have none",
    ),
    ("date", "it is the time of the response"),
    ("transfer-encoding", "it is about the connection; HTTP/2 has none"),
];
/// Headers with these values are not recorded: nearly all responses have them. A missing one is recorded as null.
const USUAL: &[(&str, &str)] = &[("cache-control", "no-cache, private"), ("content-type", "application/json")];
/// Headers whose values differ between servers or over time. They are compared as placeholders, so only their presence
/// matters.
const OWN: &[(&str, &str)] = &[("etag", "ETAG"), ("last-modified", "TIME")];

/// Returns the headers to compare, by name.
pub(crate) fn select_headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut found = Map::new();
    for name in headers.keys().map(http::HeaderName::as_str) {
        if LEFT_OUT.iter().any(|(left_out, _)| *left_out == name) {
            continue;
        }
        let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        let own = OWN.iter().find(|(own, _)| *own == name).map(|(_, shown)| (*shown).to_owned());
        found.insert(name.into(), own.unwrap_or_else(|| values.join("; ")).into());
    }
    for (name, usual) in USUAL {
        if found.get(*name).is_some_and(|value| value == usual) {
            found.remove(*name);
        } else if !found.contains_key(*name) {
            found.insert((*name).into(), Value::Null);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn compared_headers(headers: &[(&'static str, &'static str)]) -> Value {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        Value::Object(select_headers(&map))
    }

    #[test]
    fn unlisted_header_is_compared() {
        let usual = [("cache-control", "no-cache, private"), ("content-type", "application/json"), ("date", "today")];
        assert_eq!(compared_headers(&usual), serde_json::json!({}));
        assert_eq!(
            compared_headers(&[&usual[..], &[("x-new", "a"), ("x-new", "b")]].concat()),
            serde_json::json!({ "x-new": "a; b" })
        );
        assert_eq!(compared_headers(&usual[1..]), serde_json::json!({ "cache-control": null }));
    }

    #[test]
    fn ignored_headers_have_reasons() {
        for (name, why) in LEFT_OUT {
            assert!(!why.is_empty(), "{name}");
            assert_eq!(compared_headers(&[(*name, "x")]), compared_headers(&[]), "{name}");
        }
    }
}
