//! Clients see the same responses on the embedded server and, with `REAL_SERVER`, on a real one.

use std::{sync::atomic::Ordering, time::Duration};

use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use kctl::{
    Json, json,
    kube::{
        Api, Client, ResourceExt,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
        client::Body,
    },
};

use crate::{
    kinds::{ORDERED, Site, v1alpha1, v1beta1},
    world::{embedded, real},
};

/// Time limit of a scenario on a real server.
const TIMEOUT: Duration = Duration::from_secs(120);

async fn on_both<F: Future<Output = ()>>(scenario: impl Fn(Client) -> F) {
    let (_server, client) = embedded().await;
    scenario(client).await;
    if let Some(real) = real().await {
        let scenario = scenario(real.client.clone());
        tokio::time::timeout(TIMEOUT, scenario).await.expect("the real server does not take so long");
        real.leave().await;
    }
}

/// Sends a raw request and returns status code, headers and body of the response.
async fn send(client: &Client, method: Method, path: &str, body: &Json) -> (u16, HeaderMap, Json) {
    let namespace = client.default_namespace();
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(format!("/apis/hooks.example.com/v1/namespaces/{namespace}/sites{path}"))
        .header("content-type", media)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap();
    let (head, body) = client.send(request).await.unwrap().into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (head.status.as_u16(), head.headers, kctl::from_json(serde_json::from_slice(&bytes).unwrap()).unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "callers make it in place")]
fn site(name: &str, spec: Json) -> Json {
    json!({ "apiVersion": "hooks.example.com/v1", "kind": "Site", "metadata": { "name": name }, "spec": spec })
}

#[tokio::test]
async fn object_is_readable_and_writable_in_all_versions() {
    on_both(|client| async move {
        let alpha: Api<v1alpha1::Site> = Api::default_namespaced(client.clone());
        let beta: Api<v1beta1::Site> = Api::default_namespaced(client.clone());
        let stable: Api<Site> = Api::default_namespaced(client);
        let mut object = v1alpha1::Site::new("web", v1alpha1::SiteSpec { host: "a.example.com".into(), size: 3 });
        object.metadata.annotations = Some([("who".to_owned(), "me".to_owned())].into());
        let created = alpha.create(&PostParams::default(), &object).await.unwrap();
        assert_eq!((created.spec.host.as_str(), created.spec.size), ("a.example.com", 3));

        // Converted by way of v1beta1, whose conversion function leaves out the metadata.
        let read = stable.get("web").await.unwrap();
        assert_eq!((read.spec.hosts.clone(), read.spec.replicas), (vec!["a.example.com".to_owned()], 3));
        assert_eq!((read.uid(), read.annotations()["who"].as_str()), (created.uid(), "me"));

        let since = read.resource_version().unwrap();
        let mut seen_alpha = alpha.watch(&WatchParams::default(), &since).await.unwrap().boxed();
        let mut seen_stable = stable.watch(&WatchParams::default(), &since).await.unwrap().boxed();
        let patch = json!({ "spec": { "hosts": ["a.example.com", "b.example.com"] } });
        beta.patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        let Some(WatchEvent::Modified(site)) = seen_alpha.try_next().await.unwrap() else { panic!("a change") };
        // The conversion function keeps fields that the old version lacks in an annotation.
        assert_eq!((site.spec.host.as_str(), site.spec.size), ("a.example.com", 3));
        assert_eq!(site.annotations()["hooks.example.com/hosts"], "b.example.com");
        let Some(WatchEvent::Modified(site)) = seen_stable.try_next().await.unwrap() else { panic!("a change") };
        assert_eq!(site.spec.hosts, ["a.example.com", "b.example.com"]);
        assert!(!site.annotations().contains_key("hooks.example.com/hosts"), "it is only in the old version");

        let listed = alpha.list(&ListParams::default()).await.unwrap();
        assert_eq!(listed.items.iter().map(|site| site.spec.size).collect::<Vec<_>>(), [3]);
    })
    .await;
}

#[tokio::test]
async fn unconvertible_object_is_named_with_the_reason() {
    on_both(|client| async move {
        // The webhook rejects a beta object without hosts, so an object that alpha can't express is never stored.
        let beta: Api<v1beta1::Site> = Api::default_namespaced(client.clone());
        let empty = v1beta1::Site::new("none", v1beta1::SiteSpec { hosts: Vec::new(), size: 2 });
        let error = beta.create(&PostParams::default(), &empty).await.unwrap_err().to_string();
        assert!(error.contains("spec.hosts: Required value: no one could reach it"), "{error}");
        let alpha = json!({ "apiVersion": "hooks.example.com/v1alpha1", "kind": "Site", "metadata": { "name": "x" }, "spec": {} });
        let (code, _, status) = send(&client, Method::POST, "", &alpha).await;
        assert_eq!(code, 400, "{status}");
    })
    .await;
}

#[tokio::test]
async fn defaults_are_set_and_unknown_fields_kept() {
    on_both(|client| async move {
        let spec =
            json!({ "hosts": ["a"], "extra": { "color": "red", "size": 3, "more": { "x": [1, { "y": null }] } } });
        let (code, _, created) = send(&client, Method::POST, "", &site("web", spec)).await;
        assert_eq!(code, 201, "{created}");
        assert_eq!(created["spec"]["replicas"], 1);
        assert_eq!(
            created["spec"]["extra"],
            json!({ "color": "blue", "size": 3, "more": { "x": [1, { "y": null }] } })
        );
        // The webhooks do not change an object that has its defaults, so the write is a no-op.
        let (_, _, again) = send(&client, Method::PATCH, "/web", &json!({ "metadata": { "labels": null } })).await;
        assert_eq!(again["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    })
    .await;
}

#[tokio::test]
async fn item_removed_from_a_set_disappears_alone() {
    on_both(|client| async move {
        let extra = json!({ "color": "red", "tags": ["old", "obsolete", "new"] });
        let (code, _, created) =
            send(&client, Method::POST, "", &site("web", json!({ "hosts": ["a"], "extra": extra }))).await;
        assert_eq!(code, 201, "{created}");
        assert_eq!(created["spec"]["extra"]["tags"], json!(["old", "new"]));
    })
    .await;
}

#[tokio::test]
async fn invalid_fields_are_reported_together_like_upstream() {
    on_both(|client| async move {
        let (code, _, status) =
            send(&client, Method::POST, "", &site("web", json!({ "hosts": [], "replicas": 11 }))).await;
        assert_eq!((code, &status["reason"]), (422, &json!("Invalid")), "{status}");
        let expected = "admission webhook \"vsite-v1.hooks.example.com\" denied the request: Site.hooks.example.com \"web\" is \
                        invalid: [spec.replicas: Invalid value: 11: must be at most 10, spec.hosts: Required value: no one could reach it]";
        assert_eq!(status["message"], expected);
        let causes = status["details"]["causes"].as_array().unwrap();
        let fields: Vec<_> = causes.iter().map(|cause| (&cause["field"], &cause["reason"])).collect();
        assert_eq!(json!(fields), json!([["spec.replicas", "FieldValueInvalid"], ["spec.hosts", "FieldValueRequired"]]));
    })
    .await;
}

#[tokio::test]
async fn update_and_delete_see_the_old_object() {
    on_both(|client| async move {
        let sites: Api<Site> = Api::default_namespaced(client.clone());
        send(&client, Method::POST, "", &site("web", json!({ "hosts": ["a"], "replicas": 2 }))).await;
        let (code, _, status) = send(&client, Method::PATCH, "/web", &json!({ "spec": { "hosts": ["b"] } })).await;
        assert_eq!(code, 422, "{status}");
        assert!(
            status["message"].as_str().unwrap().ends_with("spec.hosts[0]: Forbidden: the first host must not change"),
            "{status}"
        );

        let keep = |why: Json| json!({ "metadata": { "annotations": { "keep": why } } });
        send(&client, Method::PATCH, "/web", &keep("it pays".into())).await;
        let error = sites.delete("web", &DeleteParams::default()).await.unwrap_err();
        let kctl::kube::Error::Api(status) = error else { panic!("{error}") };
        let expected = "admission webhook \"vsite-v1.hooks.example.com\" denied the request: it is kept: it pays";
        assert_eq!((status.code, status.reason.as_str(), status.message.as_str()), (403, "Forbidden", expected));
        send(&client, Method::PATCH, "/web", &keep(Json::Null)).await;
        sites.delete("web", &DeleteParams::default()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn dry_run_returns_warnings_without_side_effects() {
    on_both(|client| async move {
        let mut order = site("web", json!({ "hosts": ["a"] }));
        order["metadata"]["labels"] = json!({ "order": "yes" });
        let before = ORDERED.load(Ordering::Relaxed);
        let (code, headers, object) = send(&client, Method::POST, "?dryRun=All", &order).await;
        assert_eq!((code, &object["spec"]["replicas"]), (201, &json!(1)), "{object}");
        let warnings: Vec<_> = headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(warnings, ["299 - \"one replica means no replica while it is replaced\""]);
        assert_eq!(ORDERED.load(Ordering::Relaxed), before);
        assert_eq!(send(&client, Method::GET, "/web", &json!({})).await.0, 404);
        assert_eq!(send(&client, Method::POST, "", &order).await.0, 201);
        assert_eq!(ORDERED.load(Ordering::Relaxed), before + 1);
    })
    .await;
}

#[tokio::test]
async fn annotations_are_audited_under_the_webhooks_name() {
    let (server, client) = embedded().await;
    let file = std::env::temp_dir().join(format!("kctl-webhooks-audit-{}.log", std::process::id()));
    server.server().audit_to(&file).unwrap();
    send(&client, Method::POST, "", &site("web", json!({ "hosts": ["a"] }))).await;
    let log = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let event: Json = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!(event["annotations"]["vsite-v1.hooks.example.com/user"], event["user"]["username"], "{event}");
}
