//! Tests of stored objects and of watches after the schema in their CRD has changed.

use futures::StreamExt;
use http::Request;
use kube::{
    Client,
    api::{DynamicObject, WatchEvent},
};
use serde_json::{Value, json};

use crate::{ApiServer, User, faults::Faults, test_folder::TestFolder};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THING: &str = "/apis/example.com/v1/namespaces/default/things/a";

/// Returns a version of a CRD whose objects have these fields.
fn version(fields: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } });
    json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } })
}

async fn define(server: &ApiServer, fields: &Value) {
    let names = json!({ "plural": "things", "kind": "Thing" });
    let spec = json!({ "group": "example.com", "scope": "Namespaced", "names": names, "versions": [version(fields)] });
    server.succeed("POST", DEFINITIONS, &json!({ "metadata": { "name": "things.example.com" }, "spec": spec })).await;
}

async fn redefine(server: &ApiServer, fields: &Value) {
    let patch = json!({ "spec": { "versions": [version(fields)] } });
    server.succeed("PATCH", &format!("{DEFINITIONS}/things.example.com"), &patch).await;
}

#[tokio::test]
async fn fields_follow_the_schema_across_restarts() {
    let folder = TestFolder::new("redefined");
    let text = json!({ "type": "string" });
    let (first, other) = (json!({ "a": text }), json!({ "b": { "type": "string", "default": "filled" } }));

    let server = ApiServer::new();
    server.persist_in(&folder).unwrap();
    define(&server, &first).await;
    let body =
        json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": "a" }, "spec": { "a": "x" } });
    let made = server.succeed("POST", "/apis/example.com/v1/namespaces/default/things", &body).await;
    redefine(&server, &other).await;
    let read = server.succeed("GET", THING, &Value::Null).await;
    assert_eq!(read["spec"], json!({ "b": "filled" }));
    assert_eq!(read["metadata"], made["metadata"], "no client has written it");
    drop(server);

    let restarted = ApiServer::new();
    restarted.persist_in(&folder).unwrap();
    assert_eq!(restarted.succeed("GET", THING, &Value::Null).await["spec"], json!({ "b": "filled" }));
    redefine(&restarted, &first).await;
    assert_eq!(
        restarted.succeed("GET", THING, &Value::Null).await["spec"],
        json!({ "a": "x" }),
        "what was written is kept"
    );
    redefine(&restarted, &other).await;
    let written = restarted.succeed("PATCH", THING, &json!({ "metadata": { "labels": { "k": "v" } } })).await;
    assert_eq!(written["spec"], json!({ "b": "filled" }));
    redefine(&restarted, &first).await;
    assert_eq!(restarted.succeed("GET", THING, &Value::Null).await["spec"], json!({}), "it was written without");
}

/// The watch reads its events only after all writes, so it has to stop at the change of the CRD.
#[tokio::test]
async fn watch_under_faults_ends_at_redefinition() {
    let text = json!({ "type": "string" });
    let server = ApiServer::new();
    define(&server, &json!({ "a": text })).await;
    let things = "/apis/example.com/v1/namespaces/default/things";
    let create = async |name: &str| {
        let body = json!({ "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name } });
        server.succeed("POST", things, &body).await
    };
    let faults = Faults::seeded(0);
    let client = Client::new(server.faulty(User::admin(), &faults.connection("app")), "default");
    let path = format!("{things}?watch=true&resourceVersion={}", server.revision());
    let request = Request::get(path).body(Vec::new()).unwrap();
    let events = client.request_events::<DynamicObject>(request).await.unwrap();
    create("before").await;
    redefine(&server, &json!({ "b": text })).await;
    create("after").await;
    let events: Vec<WatchEvent<DynamicObject>> = events.map(Result::unwrap).collect().await;
    let named = events.iter().map(|event| match event {
        WatchEvent::Added(thing) => thing.metadata.name.clone().unwrap_or_default(),
        other => format!("{other:?}"),
    });
    assert_eq!(named.collect::<Vec<_>>(), ["before"]);
}
