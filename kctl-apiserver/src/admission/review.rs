//! `AdmissionReview`: builds the request for a webhook, and decodes its response.
//!
//! Go encodes reviews from typed structs, so fields appear in a fixed form: `object` and
//! `oldObject` are null where they do not apply, empty strings are left out. Webhooks written for
//! kube-apiserver rely on that.

use serde_json::{Value, json};

use super::{Attributes, Stage, matching::Versioned};
use crate::{
    client_config,
    decode::{json_type, misfit},
    webhook_round::WebhookReply,
};

/// The versions of reviews that the server supports.
///
/// The webhook's order of preference is used, not the order of this list.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Returns the `request` of a review. `resource` and `kind` are those under which the webhook matches the object.
///
/// `requestKind` and `requestResource` name what the client sent. They differ if the webhook matches an equivalent
/// version (`matchPolicy: Equivalent`); the objects are then converted to that version.
///
/// The uid is not part of it: it is set when the call is sent, so that equal reviews are
/// recognized.
pub(super) fn request(attributes: &Attributes<'_>, resource: &Versioned, kind: &Value) -> Value {
    let info = attributes.info;
    let mut request = json!({
        "kind": kind,
        "resource": resource.to_json(),
        "requestKind": attributes.kind(),
        "requestResource": Versioned::for_resource(&info.resource).to_json(),
        "operation": attributes.operation.name(),
        "userInfo": info.caller.user_info(),
        "object": attributes.object,
        "oldObject": attributes.old.as_deref(),
        "dryRun": attributes.is_dry(),
        "options": attributes.options,
    });
    let mut add = |field: &str, value: &str| {
        if !value.is_empty() {
            request[field] = value.into();
        }
    };
    add("name", &attributes.name);
    add("subResource", &info.subresource);
    add("requestSubResource", &info.subresource);
    add("namespace", attributes.namespace());
    request
}

/// Returns a review in the first version of the webhook that the server supports.
///
/// A webhook without a supported version is rejected when its configuration is written; `v1` is the
/// fallback.
pub(super) fn review(webhook: &Value, request: &Value) -> Value {
    let accepted = webhook["admissionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let version = accepted.into_iter().find(|version| VERSIONS.contains(version)).unwrap_or("v1");
    json!({ "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request })
}

/// The response of a webhook.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    /// An absent field counts as `false`.
    pub(super) allowed: bool,
    /// `response.status`.
    pub(super) status: Value,
    /// A JSON patch; empty if the response has none.
    pub(super) patch: Vec<u8>,
    /// Passed on to the client.
    pub(super) warnings: Vec<String>,
    /// `response.auditAnnotations`.
    pub(super) annotations: Value,
}

/// Decodes the reply of a webhook (`VerifyAdmissionResponse` of
/// `k8s.io/apiserver/pkg/admission/plugin/webhook/request`).
///
/// `review` is the review that was sent. In `v1beta1` the uid and the type of the patch are not
/// checked.
///
/// # Errors
/// Fails with the message that the client sees after `failed calling webhook "name": `.
pub(super) fn verdict(review: &Value, reply: &WebhookReply, stage: Stage) -> Result<Verdict, String> {
    let body = client_config::decode_reply(reply, review["apiVersion"].as_str().unwrap_or_default(), "AdmissionReview")
        .map_err(|why| format!("failed to call webhook: {why}"))?;
    let response = &body["response"];
    typed(response).map_err(|why| format!("failed to call webhook: {why}"))?;
    let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
    if response.is_null() {
        return invalid("webhook response was absent".into());
    }
    let uid = response["uid"].as_str().unwrap_or_default();
    if review["apiVersion"] == "admission.k8s.io/v1" && uid != reply.uid {
        return invalid(format!("expected response.uid={:?}, got {uid:?}", reply.uid));
    }
    let patch = patch(&response["patch"]).map_err(|why| format!("failed to call webhook: {why}"))?;
    if review["apiVersion"] == "admission.k8s.io/v1" {
        let (has_patch, has_type) = (!patch.is_empty(), response["patchType"].is_string());
        if has_patch != has_type || (has_patch && stage == Stage::Validating) {
            return invalid("response.patch and response.patchType belong together, in mutating webhooks".into());
        }
    }
    let texts = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Verdict {
        allowed: response["allowed"] == true,
        status: response["status"].clone(),
        patch,
        warnings: texts.map(str::to_owned).collect(),
        annotations: response["auditAnnotations"].clone(),
    })
}

/// The fields of a response that are decoded, with their JSON types.
///
/// Paths are relative to `response`.
const FIELDS: [(&str, &str); 11] = [
    ("response", "object"),
    ("response.uid", "string"),
    ("response.allowed", "bool"),
    ("response.status", "object"),
    ("response.status.message", "string"),
    ("response.status.reason", "string"),
    ("response.status.details", "object"),
    ("response.status.code", "number"),
    ("response.patchType", "string"),
    ("response.auditAnnotations", "object"),
    ("response.warnings", "array"),
];

/// Checks the types of a response. Other fields are ignored.
///
/// Go's decoder would fail on other types, so a wrong type is a failed call.
///
/// # Errors
/// Fails with a value of another type.
fn typed(response: &Value) -> Result<(), String> {
    for (path, json) in FIELDS {
        let pointer = path.trim_start_matches("response").replace('.', "/");
        let value = response.pointer(&pointer).filter(|value| !value.is_null());
        if let Some(value) = value.filter(|value| json_type(value) != json) {
            return Err(misfit(path, &format!("a JSON {json}"), value));
        }
    }
    let texts = [
        (
            "response.auditAnnotations",
            response["auditAnnotations"].as_object().map(|all| all.values().collect::<Vec<_>>()),
        ),
        ("response.warnings", response["warnings"].as_array().map(|all| all.iter().collect())),
    ];
    for (path, all) in texts {
        if let Some(other) = all.into_iter().flatten().find(|text| !text.is_string() && !text.is_null()) {
            return Err(misfit(path, "strings", other));
        }
    }
    Ok(())
}

/// Returns the bytes of a patch. Go decodes them from base64, or from a list of numbers.
///
/// Line breaks in base64 are ignored, as Go does.
fn patch(patch: &Value) -> Result<Vec<u8>, String> {
    match patch {
        Value::Null => Ok(Vec::new()),
        Value::Array(bytes) => {
            Ok(bytes.iter().filter_map(Value::as_u64).filter_map(|byte| byte.try_into().ok()).collect())
        }
        Value::String(text) => {
            let engine = &base64::engine::general_purpose::STANDARD;
            base64::Engine::decode(engine, text.replace(['\r', '\n'], "")).map_err(|error| error.to_string())
        }
        other => Err(misfit("response.patch", "a string in base64", other)),
    }
}
