//! Tests of the folder of `--data`: a disk that rejects writes, lost files, and deeply nested objects.

use http::Request;
use serde_json::{Value, json};

use crate::{ApiServer, test_folder::TestFolder};

#[tokio::test]
async fn full_disk_rejects_writes_and_keeps_acknowledged_ones() {
    let folder = TestFolder::new("full-disk");
    let server = ApiServer::new();
    server.persist_in(&folder).unwrap();
    let configs = "/api/v1/namespaces/default/configmaps";
    let create = async |name: &str| server.send_json("POST", configs, &json!({ "metadata": { "name": name } })).await;
    assert_eq!(create("before").await.0, 201);
    server.state.lock().store.journal().fail_writes();

    let check_error = |response: &(u16, Value), what: &str| {
        let message = response.1["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(response.0, 500, "{message}");
        assert!(message.contains("objects.jsonl: ") && message.contains(what), "{message}");
    };
    check_error(&create("first").await, "the write took effect, and is lost if the server ends before it is stored");
    check_error(&create("second").await, "writes are rejected until this one can be stored");
    check_error(&server.send_json("DELETE", &format!("{configs}/before"), &json!({})).await, "writes are rejected");
    let review = json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(server.send_json("POST", reviews, &review).await.0, 201, "it changes nothing");
    let dry = json!({ "metadata": { "name": "dry" } });
    assert_eq!(server.send_json("POST", &format!("{configs}?dryRun=All"), &dry).await.0, 201);
    assert_eq!(server.send_json("GET", &format!("{configs}/before"), &Value::Null).await.0, 200);

    let ready = async |path: &str| {
        let response = server.service().send_request(Request::get(path), "").await;
        (response.status().as_u16(), response.into_body())
    };
    let (code, check_error) = ready("/readyz").await;
    assert_eq!(code, 500);
    assert!(
        check_error.contains("[-]etcd failed: ") && check_error.ends_with("readyz check failed\n"),
        "{check_error}"
    );
    assert_eq!(ready("/readyz/etcd").await.0, 500);
    assert_eq!(ready("/readyz?exclude=etcd").await.0, 200);
    assert_eq!(ready("/livez").await.0, 200, "a new start would not help");

    server.state.lock().store.journal().accept_writes();
    assert_eq!(ready("/readyz").await.0, 200, "without another write");
    assert_eq!(create("second").await.0, 201);
    drop(server);
    let restarted = ApiServer::new();
    restarted.persist_in(&folder).unwrap();
    for name in ["before", "first", "second"] {
        assert!(restarted.object("", "configmaps", "default", name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn folder_with_certificates_but_empty_journal_is_rejected() {
    let folder = TestFolder::new("emptied");
    let file = folder.join("objects.jsonl");
    // Simulates a first start that was killed before it created certificates.
    std::fs::write(&file, "").unwrap();
    drop(ApiServer::new().persist_in(&folder));
    let original = std::fs::read(&file).unwrap();
    assert!(!original.is_empty());

    std::fs::write(folder.join("identity.pem"), "certificates").unwrap();
    for text in ["", r#"{"revision":"#] {
        std::fs::write(&file, text).unwrap();
        let error = ApiServer::new().persist_in(&folder).err().unwrap().to_string();
        assert!(error.contains("objects.jsonl: ") && error.contains("restore a copy"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "the file is left as it is");
    }
    std::fs::write(&file, &original).unwrap();
    ApiServer::new().persist_in(&folder).unwrap();
    // Without the file, the server starts with new objects and keeps the certificates.
    std::fs::remove_file(&file).unwrap();
    ApiServer::new().persist_in(&folder).unwrap();
}

#[tokio::test]
async fn deepest_objects_survive_a_restart() {
    let folder = TestFolder::new("deep");
    let server = ApiServer::new();
    server.persist_in(&folder).unwrap();
    let foos = server.create_foo_crd().await;
    let deep = (0..125).fold(json!(1), |value, _| json!([value]));
    let foo = json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": "a" }, "spec": deep });
    let (code, response) = server.send_json("POST", foos, &foo).await;
    assert_eq!(code, 201, "{response}");
    drop(server);
    let restarted = ApiServer::new();
    restarted.persist_in(&folder).unwrap();
    assert!(restarted.object("example.com", "foos", "default", "a").is_some());
}

/// The owners of nested maps are a few levels deeper than the maps themselves.
#[tokio::test]
async fn deep_maps_survive_a_restart_or_are_rejected() {
    let folder = TestFolder::new("deep-maps");
    let server = ApiServer::new();
    server.persist_in(&folder).unwrap();
    let foos = server.create_foo_crd().await;
    let mut codes = Vec::new();
    for n_levels in 110..=125 {
        let deep = (0..n_levels).fold(json!({}), |value, _| json!({ "a": value }));
        let foo = json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": format!("a{n_levels}") },
            "spec": deep });
        let (code, response) = server.send_json("POST", foos, &foo).await;
        assert!([201, 400].contains(&code), "{n_levels}: {response}");
        codes.push((n_levels, code));
    }
    assert_eq!((codes[0].1, codes[15].1), (201, 400), "{codes:?}");
    drop(server);
    let restarted = ApiServer::new();
    restarted.persist_in(&folder).unwrap();
    for (n_levels, code) in codes {
        let stored = restarted.object("example.com", "foos", "default", &format!("a{n_levels}"));
        assert_eq!(stored.is_some_and(|stored| stored.is_object()), code == 201, "{n_levels}");
    }
}
