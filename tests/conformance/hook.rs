//! The webhook at `$HOOK`: answers each `AdmissionReview` according to the requested path, and records it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, rustls};

/// Host name of the webhook in the embedded server, which calls it in process.
pub(crate) const IN_PROCESS: &str = "hook.example.com:9443";
/// Longer than the maximum `timeoutSeconds` of a webhook.
const LONGER_THAN_TIMEOUT: Duration = Duration::from_secs(60);

/// The webhook, and the reviews that it received.
#[derive(Clone, Default)]
pub(crate) struct Hook {
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Hook {
    /// Returns the recorded reviews of a namespace in order of arrival, each with the requested path.
    pub(crate) fn recorded_reviews(&self, namespace: &str) -> Vec<Value> {
        let about = |review: &&Value| review.to_string().contains(&format!("{namespace:?}"));
        self.seen.lock().iter().filter(about).cloned().collect()
    }

    /// Handles a request, and records it.
    pub(crate) async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path().to_owned();
        let mut review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let response = review_response(&path, &review).await;
        // The administrators of the two servers have different names.
        if let Some(request) = review["request"].as_object_mut() {
            request.remove("userInfo");
        }
        review["calledPath"] = path.into();
        review["calledQuery"] = request.uri().query().unwrap_or_default().into();
        self.seen.lock().push(review);
        response
    }

    /// Serves the webhook on loopback. Returns its URL and the `caBundle` to trust.
    pub(crate) async fn serve(&self) -> (String, String) {
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate is made");
        let trusted = STANDARD.encode(certified.cert.pem());
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the versions are supported")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())
            .expect("the key belongs to the certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("https://{}", listener.local_addr().expect("it is bound"));
        tokio::spawn(self.clone().accept(listener, TlsAcceptor::from(Arc::new(config))));
        (url, trusted)
    }

    async fn accept(self, listener: TcpListener, acceptor: TlsAcceptor) {
        while let Ok((socket, _)) = listener.accept().await {
            let (hook, acceptor) = (self.clone(), acceptor.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(socket).await else { return };
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let hook = hook.clone();
                    async move {
                        let (head, body) = request.into_parts();
                        let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
                        let response = hook.handle(Request::from_parts(head, bytes)).await;
                        Ok::<_, Infallible>(response.map(Full::new))
                    }
                });
                let _closed =
                    auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    }
}

async fn review_response(path: &str, review: &Value) -> Response<Bytes> {
    let respond = |code: u16, body: String| {
        let response = Response::builder().status(code).header("content-type", "application/json");
        response.body(body.into()).expect("the response is valid")
    };
    if path.starts_with("/convert") {
        return respond(200, convert(path, review).to_string());
    }
    let uid = &review["request"]["uid"];
    let reviewed = |mut response: Value| {
        if response["uid"].is_null() {
            response["uid"] = uid.clone();
        }
        json!({ "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response })
    };
    let response = match path {
        "/deny" => json!({ "allowed": false, "status": { "message": "I do not like it" } }),
        "/deny-as" => {
            json!({ "allowed": false, "status": { "message": "too many", "reason": "TooManyRequests", "code": 429 } })
        }
        "/deny-forbidden" => json!({ "allowed": false, "status": { "code": 403 } }),
        "/deny-reason" => json!({ "allowed": false, "status": { "reason": "it is Monday" } }),
        "/deny-silently" => json!({ "allowed": false }),
        "/deny-success" => json!({ "allowed": false, "status": { "code": 200, "message": "fine" } }),
        "/warn" => json!({ "allowed": true, "warnings": ["mind the gap", "and the step", "a \"quoted\" one"] }),
        "/audit" => json!({ "allowed": true, "auditAnnotations": { "seen": "yes" } }),
        "/no-patch" => json!({ "allowed": true, "patch": STANDARD.encode("not a patch"), "patchType": "JSONPatch" }),
        "/no-patch-type" => json!({ "allowed": true, "patch": STANDARD.encode("[]") }),
        "/other-patch-type" => json!({ "allowed": true, "patch": STANDARD.encode("[]"), "patchType": "Merge" }),
        "/wrong-uid" => json!({ "allowed": true, "uid": "other" }),
        "/no-response" => {
            return respond(200, json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview" }).to_string());
        }
        "/wrong-kind" => {
            let body = json!({ "apiVersion": "v1", "kind": "Pod", "response": { "allowed": true, "uid": uid } });
            return respond(200, body.to_string());
        }
        "/wrong-version" => {
            let body = json!({ "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",
                "response": { "allowed": true, "uid": uid } });
            return respond(200, body.to_string());
        }
        "/garbage" => return respond(200, "this is not JSON".into()),
        "/error-500" => return respond(500, "out of order".into()),
        "/error-404" => return respond(404, String::new()),
        "/slow" => {
            tokio::time::sleep(LONGER_THAN_TIMEOUT).await;
            json!({ "allowed": true })
        }
        path => patch_response(path, review).unwrap_or_else(|| json!({ "allowed": true })),
    };
    respond(200, reviewed(response).to_string())
}

/// Returns the response for a path that patches the object; `None` for other paths.
fn patch_response(path: &str, review: &Value) -> Option<Value> {
    let allowed = |patch: Value| {
        let patch = STANDARD.encode(patch.to_string());
        json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
    };
    let set = |name: &str, value: &str| {
        let labels = &review["request"]["object"]["metadata"]["labels"];
        let path = format!("/metadata/labels/{name}");
        if labels.is_object() {
            allowed(json!([{ "op": "add", "path": path, "value": value }]))
        } else {
            allowed(json!([{ "op": "add", "path": "/metadata/labels", "value": { name: value } }]))
        }
    };
    let annotations = &review["request"]["object"]["metadata"]["annotations"];
    Some(match path {
        // The object's annotations contain a patch, possibly malformed, or a whole response.
        "/by-annotation" => {
            if let Some(response) = annotations["answer"].as_str() {
                return serde_json::from_str(response).ok();
            }
            let patch = STANDARD.encode(annotations["patch"].as_str()?);
            json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
        }
        "/label-a" => set("a", "hook"),
        "/label-b" => set("b", "hook"),
        // Sets a label to the number of labels.
        "/count" => {
            let count = review["request"]["object"]["metadata"]["labels"].as_object().map_or(0, serde_json::Map::len);
            set("count", &count.to_string())
        }
        "/data" => allowed(json!([{ "op": "add", "path": "/data", "value": { "from": "hook" } }])),
        "/unknown-field" => allowed(json!([{ "op": "add", "path": "/nonsense", "value": 1 }])),
        "/wrong-type" => allowed(json!([{ "op": "add", "path": "/data", "value": 1 }])),
        "/rename" => allowed(json!([{ "op": "replace", "path": "/metadata/name", "value": "renamed" }])),
        "/bad-path" => allowed(json!([{ "op": "remove", "path": "/data/nothing/here" }])),
        "/failing-test" => allowed(json!([{ "op": "test", "path": "/metadata/name", "value": "other" }])),
        _ => return None,
    })
}

/// Converts widgets: `spec.size` of v1 becomes `spec.measure.size` of v2.
fn convert(path: &str, review: &Value) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let n_objects = objects.len();
    let one = |mut object: Value| {
        object["apiVersion"] = wanted.into();
        let (size, measured) = (object["spec"]["size"].take(), object["spec"]["measure"]["size"].take());
        let size = if size.is_null() { measured } else { size };
        let extra = object["spec"]["extra"].clone();
        object["spec"] =
            if wanted.ends_with("/v2") { json!({ "measure": { "size": size } }) } else { json!({ "size": size }) };
        if !extra.is_null() {
            object["spec"]["extra"] = extra;
        }
        match path {
            "/convert-renaming" => object["metadata"]["name"] = "renamed".into(),
            "/convert-labelling" => object["metadata"]["labels"] = json!({ "from": "hook" }),
            "/convert-labelling-wrongly" => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                let (field, wrong) = match name.as_str() {
                    "list" => ("labels", json!(["a"])),
                    "number" => ("labels", json!({ "a": 1 })),
                    "null" => ("annotations", json!({ "a": null })),
                    "value" => ("labels", json!({ "a": "b c" })),
                    "names" => ("labels", json!({ "a b": "c d" })),
                    _ => ("annotations", json!({ "a b": "" })),
                };
                object["metadata"][field] = wrong;
            }
            "/convert-nothing" => object["apiVersion"] = "wrong/v1".into(),
            _ => {}
        }
        object
    };
    let mut converted: Vec<Value> = objects.into_iter().map(one).collect();
    let mut result = json!({ "status": "Success" });
    match path {
        "/convert-failing" => result = json!({ "status": "Failure", "message": "cannot be converted today" }),
        "/convert-fewer" => drop(converted.pop()),
        "/convert-no-result" => result = json!({}),
        _ => {}
    }
    let uid = if path == "/convert-uid" { json!("other") } else { request["uid"].clone() };
    debug_assert!(converted.len() <= n_objects, "a review is answered with no more than was asked");
    json!({ "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": { "uid": uid, "convertedObjects": converted, "result": result } })
}
