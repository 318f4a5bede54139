//! Dry runs: each request by itself, and a program that removes all it can.

use super::*;

fn request(method: &str, uri: &str, body: &str) -> Request<Body> {
    let length = body.len();
    Request::builder()
        .method(method)
        .uri(uri)
        .header(CONTENT_LENGTH, length)
        .body(body.as_bytes().to_vec().into())
        .unwrap()
}

#[test]
fn only_writes_become_dry_runs() {
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let local = "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews";
    let cases = [
        ("GET", "/api/v1/pods", "/api/v1/pods"),
        ("POST", "/api/v1/pods", "/api/v1/pods?dryRun=All"),
        ("PATCH", "/api/v1/pods/a?fieldManager=b", "/api/v1/pods/a?fieldManager=b&dryRun=All"),
        ("PUT", "/api/v1/namespaces/b/pods/a/status", "/api/v1/namespaces/b/pods/a/status?dryRun=All"),
        ("PUT", "/api/v1/namespaces/b/finalize", "/api/v1/namespaces/b/finalize?dryRun=All"),
        ("DELETE", "/api/v1/pods/a", "/api/v1/pods/a?dryRun=All"),
        ("POST", "/api/v1/namespaces/b/pods/a/eviction", "/api/v1/namespaces/b/pods/a/eviction?dryRun=All"),
        ("POST", reviews, reviews),
        ("POST", local, local),
        ("POST", "/apis/film.example.com/v1/reviews", "/apis/film.example.com/v1/reviews?dryRun=All"),
        ("PATCH", "/api/v1/namespaces/b/configmaps/proxy", "/api/v1/namespaces/b/configmaps/proxy?dryRun=All"),
        ("GET", "/api/v1/namespaces/b/services/a/proxy/page", "/api/v1/namespaces/b/services/a/proxy/page"),
    ];
    for (method, uri, sent) in cases {
        assert_eq!(rewrite(request(method, uri, "")).unwrap().uri().to_string(), sent, "{method} {uri}");
    }
}

#[tokio::test]
async fn dry_run_is_added_to_delete_options() {
    let cases = [
        ("", ""),
        ("{}", r#"{"dryRun":["All"]}"#),
        (r#"{"dryRun":[],"preconditions":{"uid":"1"}}"#, r#"{"dryRun":["All"],"preconditions":{"uid":"1"}}"#),
    ];
    for (body, sent) in cases {
        let tried = rewrite(request("DELETE", "/api/v1/namespaces/b/pods/a", body)).unwrap();
        let length = tried.headers().get(CONTENT_LENGTH).map(|value| value.to_str().unwrap().to_owned());
        assert!(length.is_none_or(|length| length == sent.len().to_string()), "{body}");
        assert_eq!(tried.into_body().collect().await.unwrap().to_bytes(), sent, "{body}");
    }
}

#[test]
fn values_of_secrets_are_not_printed() {
    for (uri, is_secret) in [
        ("/api/v1/namespaces/b/secrets/a", true),
        ("/api/v1/secrets", true),
        ("/api/v1/namespaces/secrets/configmaps/secrets", false),
        ("/apis/example.com/v1/namespaces/b/secrets/a", false),
    ] {
        assert_eq!(Target::parse(uri).is_secret(), is_secret, "{uri}");
    }
    let applied =
        r#"{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{key}"},"name":"a"}}"#;
    for (body, shown) in [
        ("", ""),
        (r#"{"data":{"tls.key":"a2V5","old":null}}"#, r#"{"data":{"tls.key":"***","old":null}}"#),
        (
            r#"{"kind":"Secret","stringData":{"password":"key"}}"#,
            r#"{"kind":"Secret","stringData":{"password":"***"}}"#,
        ),
        (applied, &applied.replace("{key}", "***")),
        (
            r#"[{"op":"add","path":"/data/a","value":"a2V5"},{"op":"remove","path":"/data/b"}]"#,
            r#"[{"op":"add","path":"/data/a","value":"***"},{"op":"remove","path":"/data/b"}]"#,
        ),
        ("data: {password: key}", "***"),
    ] {
        let (found, expected) = (without_values(body.as_bytes()), serde_json::from_str::<Value>(shown));
        match expected {
            // The order of fields does not matter.
            Ok(expected) => assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), expected, "{body}"),
            Err(_not_json) => assert_eq!(found, shown, "{body}"),
        }
    }
}

#[test]
fn requests_that_cannot_be_tried_are_rejected() {
    let unreadable =
        "its body is not a JSON object, so `dryRun` can't be added; send DeleteOptions as JSON, or no body";
    let unknown = "it has no dry run; run it without --dry-run";
    let cases = [
        ("DELETE", "/api/v1/namespaces/b/pods/a", "null", unreadable),
        ("DELETE", "/api/v1/namespaces/b/pods", "k8s\0\n", unreadable),
        ("DELETE", "/api/v1/namespaces/b/pods/a", "gracePeriodSeconds: 1", unreadable),
        ("GET", "/api/v1/namespaces/b/pods/a/exec", "", unknown),
        ("POST", "/api/v1/namespaces/b/pods/a/attach", "", unknown),
        ("GET", "/api/v1/namespaces/b/pods/a/portforward", "", unknown),
        ("DELETE", "/api/v1/namespaces/b/services/a/proxy/pages/1", "", unknown),
        ("POST", "/api/v1/nodes/a/proxy", "", unknown),
    ];
    for (method, path, body, reason) in cases {
        let error = rewrite(request(method, path, body)).unwrap_err().to_string();
        assert_eq!(error, format!("--dry-run does not send {method} {path}: {reason}"));
    }
}

#[cfg(feature = "testing")]
mod removing;
