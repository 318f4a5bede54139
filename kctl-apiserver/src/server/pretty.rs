//! Indents JSON responses for people: browsers, curl, and clients that send `?pretty=true`.
//!
//! Upstream: `isPrettyPrint` of `k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`.

use futures::FutureExt;
use http::{HeaderMap, HeaderName, Response, Uri, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use kctl_apimachinery::strconv;
use serde_json::Value;

use crate::request::{Params, clauses};
use crate::response::{Body, full};

/// The beginnings of `User-Agent` headers of programs that people read responses with; a version follows
/// (`isPrettyPrint` in `k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go`).
const AGENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];
/// Paths whose documents are never indented. Their documents are written as bytes that were serialized before.
const NEVER: [&str; 3] = ["/openapi/", "/openid/", "/.well-known/"];

/// Returns the response, indented if a person reads it.
pub(super) fn pretty_print(uri: &Uri, headers: &HeaderMap, response: Response<Body>) -> Response<Body> {
    if !wants_pretty(uri, headers) || NEVER.iter().any(|root| uri.path().starts_with(root)) {
        return response;
    }
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = content_type.is_some_and(|form| form.split(';').next() == Some("application/json"));
    // The body of a watch has no length.
    if !is_json || response.body().size_hint().exact().is_none_or(|len| len == 0) {
        return response;
    }
    let (head, body) = response.into_parts();
    let Some(Ok(collected)) = body.collect().now_or_never() else { unreachable!("a body with a length is there") };
    Response::from_parts(head, full(indent(&collected.to_bytes())))
}

/// Returns `true` if the request comes from a program of [`AGENTS`], or asks for indentation in the query or in
/// `Accept`. `?pretty=false` overrides the program, but not `Accept`.
fn wants_pretty(uri: &Uri, headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let query = uri.query().unwrap_or_default();
    let parameters = if query.contains("pretty") { Params::parse(query) } else { Params::default() };
    match parameters.text("pretty") {
        "" if AGENTS.iter().any(|agent| text(header::USER_AGENT).starts_with(agent)) => true,
        value if strconv::parse_bool(value) == Some(true) => true,
        _ => {
            let accept = text(header::ACCEPT);
            accept.contains("pretty")
                && clauses(accept).iter().find(|clause| clause.is_known()).is_some_and(|clause| clause.has("pretty=1"))
        }
    }
}

/// Indents JSON by two spaces per level, without a final line feed. JSON that is nested too deeply to be parsed is
/// returned as it is.
fn indent(json: &[u8]) -> Vec<u8> {
    let value = serde_json::from_slice::<Value>(json);
    value.and_then(|value| serde_json::to_vec_pretty(&value)).unwrap_or_else(|_| json.to_vec())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::ApiServer;

    #[test]
    fn json_has_a_line_for_each_field() {
        let json = br#"{"a":{},"b":[1,{"c":"x\"{,:\\"},[]],"d":null}"#;
        let lines = "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": \"x\\\"{,:\\\\\"\n    },\n    []\n  ],\n  \"d\": null\n}";
        assert_eq!(String::from_utf8(indent(json)).unwrap(), lines);
        assert_eq!(indent(b"{}\n"), b"{}");
    }

    #[tokio::test(start_paused = true)]
    async fn json_is_indented_for_people_only() {
        let server = ApiServer::new();
        let namespace = "/api/v1/namespaces/default";
        for (path, headers, is_indented) in [
            (namespace, &[][..], false),
            (&*format!("{namespace}?pretty=true"), &[], true),
            (&format!("{namespace}?pretty=t"), &[], true),
            (&format!("{namespace}?pretty="), &[], false),
            (&format!("{namespace}?pretty=x"), &[("user-agent", "curl/8")], false),
            (namespace, &[("user-agent", "curl/8.0")], true),
            (namespace, &[("user-agent", "Mozilla/5.0 (X11)")], true),
            (namespace, &[("user-agent", "kubectl/v1.36")], false),
            (namespace, &[("accept", "application/json;pretty=1")], true),
            (namespace, &[("accept", "application/json;pretty=true")], false),
            (&format!("{namespace}?pretty=0"), &[("accept", "application/json;pretty=1")], true),
            ("/api/v1/namespaces/nope?pretty=1", &[], true),
            ("/version", &[], false),
            ("/version", &[("user-agent", "curl/8.0")], true),
            ("/openapi/v3?pretty=1", &[], false),
        ] {
            let mut request = Request::get(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let text = server.service().send_request(request, "").await.into_body();
            assert_eq!(text.lines().count() > 1, is_indented, "{path} {headers:?}: {text}");
            assert_eq!(text.ends_with('\n'), !is_indented && !path.starts_with("/openapi"), "{path} {headers:?}");
        }
    }
}
