//! The admission protocol without the network: the body of an `AdmissionReview` request to the body
//! of its response.

use std::sync::Arc;

use axum::http::StatusCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::{
    denial::Denial,
    options::{Action, Operation},
    review::{KIND, Request, Review, VERSIONS},
    webhook::{Decision, Webhook},
};
use crate::{
    call::{RequestState, catch_unwind},
    kind::{format_kind, format_review},
    server::uid_of,
};

/// Maximum length of a request body in bytes: two objects of the maximum size of etcd, as in
/// controller-runtime (`pkg/webhook/admission/http.go`, `maxRequestSize`).
pub(crate) const BODY_LEN_MAX: usize = 7 << 20;

/// Returns the response to a review that reached no function, or whose function ran into the timeout.
pub(crate) fn failed_response(uid: &str, code: StatusCode, text: String) -> Value {
    denial_review(VERSIONS[0], uid, &Denial::webhook_error(code.as_u16(), text), &Request::default())
}

/// Answers a review.
pub(crate) async fn respond(webhook: &Webhook, body: &[u8], state: &mut RequestState) -> Value {
    let (version, request, operation) = match decode_request(webhook, body) {
        Ok(decoded) => decoded,
        Err((code, text)) => {
            state.measurement.code(code.as_u16());
            return failed_response(&uid_of(body), code, text);
        }
    };
    let request = Arc::new(request);
    state.uid.clone_from(&request.uid);
    let object = request.describe();
    *state.running.lock() = Some(format!("{} for {object}", webhook.function_info().named_location()));
    let (called, sent) = (webhook.clone(), request.clone());
    let running = state.measurement.start_function(&state.running);
    let called = state.in_own_task(async move {
        let decision = catch_unwind(called.function_info(), &object, || called.call(&sent, operation)).await;
        decision.inspect_err(|_panic| running.count_panic()).map_err(|text| format!("{object}: {text}"))
    });
    let decision = called.await.map_err(|error| error.to_string()).flatten();
    let decision = decision
        .unwrap_or_else(|failed| Decision { denied: Some(Denial::webhook_error(500, failed)), ..Decision::default() });
    state.measurement.code(decision.denied.as_ref().map_or(200, Denial::http_code));
    review(webhook, &version, &request, operation, decision)
}

type Decoded = (String, Request, Operation);

/// Parses a review, and checks that it is about the kind of the path.
fn decode_request(webhook: &Webhook, body: &[u8]) -> Result<Decoded, (StatusCode, String)> {
    let bad = |text: String| (StatusCode::BAD_REQUEST, text);
    if body.is_empty() {
        return Err(bad("request body is empty".into()));
    }
    let review: Review = serde_json::from_slice(body).map_err(|error| bad(format!("no {KIND}: {error}")))?;
    let Review { api_version, kind, request } = review;
    if kind != KIND || !VERSIONS.contains(&api_version.as_str()) {
        return Err(bad(format!("{}: expected {} {KIND}", format_review(&api_version, &kind), VERSIONS[0])));
    }
    let request = request.ok_or_else(|| bad(format!("the {KIND} has no request")))?;
    let operation = Operation::parse(&request.operation)
        .ok_or_else(|| bad(format!("{}: there is no operation {:?}", request.describe(), request.operation)))?;
    let requested = GroupVersionKind::from(&request.kind);
    // The object of a subresource may be of another kind.
    if webhook.options().subresources.is_empty() && requested != *webhook.kind() {
        let (requested, handled) = (format_kind(&requested), format_kind(webhook.kind()));
        return Err(bad(format!("{}: {requested} at the path of {handled}", request.describe())));
    }
    Ok((api_version, request, operation))
}

/// Returns the response with the patch, the warnings and the audit annotations.
fn review(webhook: &Webhook, version: &str, request: &Request, operation: Operation, decision: Decision) -> Value {
    let Decision { denied, object, warnings, audit } = decision;
    let mut review = match denied {
        Some(denied) => denial_review(version, &request.uid, &denied, request),
        None => envelope(version, &json!({ "uid": request.uid, "allowed": true, "status": { "code": 200 } })),
    };
    let response = &mut review["response"];
    if !warnings.is_empty() {
        response["warnings"] = json!(warnings);
    }
    if !audit.is_empty() {
        response["auditAnnotations"] = json!(audit);
    }
    let changes = webhook.options().action == Action::Mutate && operation != Operation::Delete;
    if let Some(object) = object.filter(|_| changes) {
        let patch = json_patch::diff(&request.object, &object);
        if !patch.0.is_empty() {
            // The patch consists of JSON values, so it can always be serialized.
            response["patch"] = STANDARD.encode(json!(patch).to_string()).into();
            response["patchType"] = "JSONPatch".into();
        }
    }
    review
}

fn denial_review(version: &str, uid: &str, denied: &Denial, request: &Request) -> Value {
    let status = denied.status(&request.kind.group, &request.kind.kind, &request.name);
    envelope(version, &json!({ "uid": uid, "allowed": false, "status": status }))
}

fn envelope(version: &str, response: &Value) -> Value {
    json!({ "kind": KIND, "apiVersion": version, "response": response })
}
