//! Tests of tokens as time passes and objects change.

use std::time::Duration;

use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;
use crate::{ApiServer, test_folder::TestFolder};

async fn token(server: &ApiServer, spec: Value) -> String {
    let path = "/api/v1/namespaces/default/serviceaccounts/a/token";
    let response = server.succeed("POST", path, &json!({ "spec": spec })).await;
    response["status"]["token"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

async fn with_account() -> ApiServer {
    let server = ApiServer::new();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    server.succeed("POST", accounts, &json!({ "metadata": { "name": "a" } })).await;
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "serviceAccountName": "a", "nodeName": "n",
        "containers": [{ "name": "c", "image": "i" }] } });
    server.succeed("POST", "/api/v1/namespaces/default/pods", &pod).await;
    server
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// Returns the error for an invalid token.
fn error(server: &ApiServer, token: &str) -> String {
    let state = server.state.lock();
    bearer(&state.store, &state.core.signer, token, &[]).unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn token_names_issuer_subject_and_expiry() {
    let server = with_account().await;
    let bound = json!({ "kind": "Pod", "apiVersion": "v1", "name": "p" });
    for (spec, aud, life, warned) in [
        (json!({}), json!([ISSUER]), 3_600, None),
        (json!({ "audiences": ["x"], "expirationSeconds": 600 }), json!(["x"]), 600, None),
        (json!({ "expirationSeconds": 3_607, "boundObjectRef": bound }), json!([ISSUER]), 365 * 86_400, Some(3_607)),
        (json!({ "audiences": ["x"], "expirationSeconds": 3_607, "boundObjectRef": bound }), json!(["x"]), 3_607, None),
    ] {
        let payload = claims(&token(&server, spec.clone()).await);
        let issued = payload["iat"].as_i64().unwrap();
        assert_eq!(payload["aud"], aud, "{spec}");
        assert_eq!(payload["exp"].as_i64().unwrap() - issued, life, "{spec}");
        assert_eq!(payload["kubernetes.io"]["warnafter"].as_i64().map(|time| time - issued), warned, "{spec}");
        assert_eq!((&payload["sub"], &payload["iss"]), (&json!("system:serviceaccount:default:a"), &json!(ISSUER)));
        assert_eq!(payload["kubernetes.io"].get("pod").is_some(), spec.get("boundObjectRef").is_some(), "{spec}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_counts_until_a_minute_after_its_end() {
    let server = with_account().await;
    let token = token(&server, json!({ "expirationSeconds": 600 })).await;
    for (passed, counts) in [(600, true), (59, true), (2, false)] {
        tokio::time::sleep(Duration::from_secs(passed)).await;
        assert_eq!(server.authenticate(&token).is_some(), counts, "{passed} seconds later");
    }
}

#[tokio::test(start_paused = true)]
async fn bearer_is_known_with_its_pod_and_node() {
    let server = with_account().await;
    let bound = json!({ "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "p" } });
    let token = token(&server, bound).await;
    let info = server.caller_of_token(&token).unwrap().user_info();
    let payload = claims(&token);
    let expected = json!({
        "authentication.kubernetes.io/credential-id": [format!("JTI={}", payload["jti"].as_str().unwrap())],
        "authentication.kubernetes.io/node-name": ["n"],
        "authentication.kubernetes.io/pod-name": ["p"],
        "authentication.kubernetes.io/pod-uid": [payload["kubernetes.io"]["pod"]["uid"]],
    });
    assert_eq!((&info["extra"], &info["uid"]), (&expected, &payload["kubernetes.io"]["serviceaccount"]["uid"]));
    server.succeed("DELETE", "/api/v1/namespaces/default/pods/p", &json!({ "gracePeriodSeconds": 0 })).await;
    assert_eq!(server.caller_of_token(&token), None);
}

#[tokio::test(start_paused = true)]
async fn forks_accept_tokens_and_other_servers_reject_them() {
    let server = with_account().await;
    let token = token(&server, json!({})).await;
    assert!(server.fork(1).authenticate(&token).is_some());
    assert!(with_account().await.authenticate(&token).is_none());
    let (signed, _) = token.rsplit_once('.').unwrap();
    for forged in [format!("{signed}."), format!("{signed}.AAAA"), signed.to_owned(), String::new()] {
        assert!(server.authenticate(&forged).is_none(), "{forged}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_survives_a_restart_with_the_same_folder() {
    let folder = TestFolder::new("tokens");
    let token = {
        let server = with_account().await;
        server.persist_in(&folder).unwrap();
        token(&server, json!({})).await
    };
    let restarted = ApiServer::new();
    restarted.persist_in(&folder).unwrap();
    assert_eq!(restarted.authenticate(&token).unwrap().name, "system:serviceaccount:default:a");
}

/// Returns a server with its controllers, an account `a`, and a Secret `s` for its token.
async fn with_secret() -> ApiServer {
    let server = with_account().await;
    tokio::spawn(server.controllers());
    create_secret(&server, "s").await;
    server
}

async fn create_secret(server: &ApiServer, name: &str) {
    let secret = json!({
        "metadata": { "name": name, "annotations": { "kubernetes.io/service-account.name": "a" } },
        "type": "kubernetes.io/service-account-token",
    });
    server.send_json("POST", "/api/v1/namespaces/default/secrets", &secret).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn data_of(secret: &Value, field: &str) -> String {
    let decoded = base64::prelude::BASE64_STANDARD.decode(secret["data"][field].as_str().unwrap_or_default()).unwrap();
    String::from_utf8(decoded).unwrap()
}

#[tokio::test(start_paused = true)]
async fn service_account_token_secret_gets_a_valid_token() {
    let server = with_secret().await;
    let secret = server.object("", "secrets", "default", "s").expect("the Secret is kept");
    let account = server.object("", "serviceaccounts", "default", "a").unwrap();
    assert_eq!(data_of(&secret, "namespace"), "default");
    assert_eq!(secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);
    let token = data_of(&secret, "token");
    let caller = server.caller_of_token(&token).expect("the token is good");
    assert_eq!(caller.user.name, "system:serviceaccount:default:a");
    assert_eq!((&caller.uid, caller.extra.len()), (&account["metadata"]["uid"].as_str().unwrap().to_owned(), 0));
    let secret = server.object("", "secrets", "default", "s").unwrap();
    assert_eq!(secret["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"], "2026-01-01");
    let managers: Vec<&Value> =
        secret["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert!(managers.contains(&&json!("kube-controller-manager")) && managers.contains(&&json!("kube-apiserver")));
}

#[tokio::test(start_paused = true)]
async fn removed_token_of_a_secret_is_written_again() {
    let server = with_secret().await;
    let path = "/api/v1/namespaces/default/secrets/s";
    let mut secret = Value::clone(&server.object("", "secrets", "default", "s").unwrap());
    let token = data_of(&secret, "token");
    secret["data"] = json!({});
    server.succeed("PUT", path, &secret).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    // Signatures have random parts, so the new token differs.
    let secret = server.object("", "secrets", "default", "s").unwrap();
    assert_ne!(data_of(&secret, "token"), token);
    assert!(error(&server, &token).contains("does not contain the token"));
    assert!(server.authenticate(&data_of(&secret, "token")).is_some());
}

#[tokio::test(start_paused = true)]
async fn service_account_deletion_removes_secret_and_invalidates_token() {
    let server = with_secret().await;
    let token = data_of(&server.object("", "secrets", "default", "s").unwrap(), "token");
    server.succeed("DELETE", "/api/v1/namespaces/default/serviceaccounts/a", &json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(server.object("", "secrets", "default", "s"), None);
    assert!(error(&server, &token).contains("does not contain the token"));
    create_secret(&server, "t").await;
    assert_eq!(server.object("", "secrets", "default", "t"), None, "there is no such account");
}

#[tokio::test(start_paused = true)]
async fn token_secret_with_other_account_uid_is_deleted() {
    let server = with_secret().await;
    let mut secret = Value::clone(&server.object("", "secrets", "default", "s").unwrap());
    secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = "other".into();
    server.succeed("PUT", "/api/v1/namespaces/default/secrets/s", &secret).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(server.object("", "secrets", "default", "s"), None);
}

#[tokio::test(start_paused = true)]
async fn account_forgets_a_secret_that_is_deleted() {
    let server = with_secret().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/a";
    let mut account = Value::clone(&server.object("", "serviceaccounts", "default", "a").unwrap());
    account["secrets"] = json!([{ "name": "s" }, { "name": "other" }]);
    server.succeed("PUT", path, &account).await;
    server.succeed("DELETE", "/api/v1/namespaces/default/secrets/s", &json!({})).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    let account = server.object("", "serviceaccounts", "default", "a").unwrap();
    assert_eq!(account["secrets"], json!([{ "name": "other" }]));
}

#[tokio::test(start_paused = true)]
async fn token_marked_invalid_authenticates_no_user() {
    let server = with_secret().await;
    let mut secret = Value::clone(&server.object("", "secrets", "default", "s").unwrap());
    secret["metadata"]["labels"] = json!({ "kubernetes.io/legacy-token-invalid-since": "2026-01-01" });
    server.succeed("PUT", "/api/v1/namespaces/default/secrets/s", &secret).await;
    assert_eq!(server.authenticate(&data_of(&secret, "token")), None);
}

/// Takes minutes if each audience is searched in a list.
#[tokio::test(start_paused = true)]
async fn many_audiences_are_compared_as_sets() {
    let server = with_account().await;
    let many: Vec<String> = (0..100_000).map(|n| format!("a{n:06}")).collect();
    let token = token(&server, json!({ "audiences": many })).await;
    let state = server.state.lock();
    let bearer = bearer(&state.store, &state.core.signer, &token, &many).unwrap();
    assert!(bearer.audiences == many);
}
