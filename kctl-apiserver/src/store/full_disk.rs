//! What clients are told while the disk of `--data` takes nothing.

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::ApiServer;

async fn ask(server: &ApiServer, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).body(Full::from(body.to_string())).unwrap();
    let (head, body) = server.service().oneshot(request).await.unwrap().into_parts();
    (head.status, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
}

#[tokio::test]
async fn changes_are_refused_until_they_can_be_kept_and_none_that_was_answered_is_lost() {
    let folder = std::env::temp_dir().join(format!("kctl-full-disk-{}", std::process::id()));
    let _absent = std::fs::remove_dir_all(&folder);
    let server = ApiServer::new();
    server.keep_in(&folder).unwrap();
    let configs = "/api/v1/namespaces/default/configmaps";
    let create = async |name: &str| ask(&server, "POST", configs, json!({ "metadata": { "name": name } })).await;
    assert_eq!(create("before").await.0, StatusCode::CREATED);
    server.state.lock().journal().break_off();

    let told = |answer: &(StatusCode, Value), what: &str| {
        let message = answer.1["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.0, StatusCode::INTERNAL_SERVER_ERROR, "{message}");
        assert!(message.contains("objects.jsonl: ") && message.contains(what), "{message}");
    };
    told(&create("first").await, "it is done, and lost if the server ends before it can be kept");
    told(&create("second").await, "nothing is changed until it can be kept");
    told(&ask(&server, "DELETE", &format!("{configs}/before"), json!({})).await, "nothing is changed");
    let review = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(ask(&server, "POST", reviews, review).await.0, StatusCode::CREATED, "it changes nothing");
    assert_eq!(
        ask(&server, "POST", &format!("{configs}?dryRun=All"), json!({ "metadata": { "name": "dry" } })).await.0,
        201
    );
    assert_eq!(ask(&server, "GET", &format!("{configs}/before"), Value::Null).await.0, StatusCode::OK);

    server.state.lock().journal().mend_disk();
    assert_eq!(create("second").await.0, StatusCode::CREATED);
    drop(server);
    let again = ApiServer::new();
    again.keep_in(&folder).unwrap();
    for name in ["before", "first", "second"] {
        assert!(again.object("", "configmaps", "default", name).is_some(), "{name}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
