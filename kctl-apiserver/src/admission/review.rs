//! `AdmissionReview`: builds the request for a webhook, and decodes its response.
//!
//! Go encodes reviews from typed structs, so fields appear in a fixed form: `object` and `oldObject` are null where
//! they do not apply, empty strings are left out. Webhooks written for kube-apiserver rely on that.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Number, Value, json};

use super::{Attributes, Stage, matching::Versioned};
use crate::{client_config, decode::type_error, webhook_round::WebhookReply};

/// The versions of reviews that the server supports. The webhook's order of preference is used.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Returns the `request` of a review. `resource` and `kind` are the ones that match the webhook.
///
/// `requestKind` and `requestResource` name what the client sent. They differ if the webhook matches an equivalent
/// version (`matchPolicy: Equivalent`); the objects are then converted to that version.
///
/// The uid is not part of it: it is set when the call is sent, so that equal reviews compare as equal.
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
    add("subResource", info.subresource.as_str());
    add("requestSubResource", info.subresource.as_str());
    add("namespace", attributes.namespace());
    request
}

/// Returns a review in the first version of the webhook that the server supports.
///
/// A webhook without a supported version is rejected when its configuration is written; `v1` is the fallback.
pub(super) fn review(webhook: &Value, request: &Value) -> Value {
    let accepted = webhook["admissionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let version = accepted.into_iter().find(|version| VERSIONS.contains(version)).unwrap_or("v1");
    json!({ "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request })
}

/// The response of a webhook.
pub(super) struct WebhookVerdict {
    /// An absent field counts as `false`.
    pub(super) allowed: bool,
    pub(super) status: WebhookStatus,
    /// A JSON patch; empty if the response has none.
    pub(super) patch: Vec<u8>,
    /// Passed on to the client.
    pub(super) warnings: Vec<String>,
    /// `response.auditAnnotations`.
    pub(super) annotations: BTreeMap<String, Option<String>>,
}

/// The fields of `response.status` that are decoded.
#[derive(Default, Deserialize)]
pub(super) struct WebhookStatus {
    pub(super) message: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) details: Option<Map<String, Value>>,
    pub(super) code: Option<Number>,
}

/// Decodes the reply of a webhook (`VerifyAdmissionResponse` of
/// `k8s.io/apiserver/pkg/admission/plugin/webhook/request`).
///
/// `review` is the review that was sent. In `v1beta1` the uid and the type of the patch are not checked.
///
/// # Errors
/// Fails with the message that the client sees after `failed calling webhook "name": `.
pub(super) fn verdict(review: &Value, reply: &WebhookReply, stage: Stage) -> Result<WebhookVerdict, String> {
    let body = client_config::decode_reply(reply, review["apiVersion"].as_str().unwrap_or_default(), "AdmissionReview")
        .map_err(|why| format!("failed to call webhook: {why}"))?;
    let response = &body["response"];
    let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
    if response.is_null() {
        return invalid("webhook response was absent".into());
    }
    if !response.is_object() {
        return Err(format!("failed to call webhook: {}", type_error("response", "an object", response)));
    }
    // Serde would read a list as the fields in their order.
    if response["status"].is_array() {
        return Err(format!(
            "failed to call webhook: {}",
            type_error("response.status", "an object", &response["status"])
        ));
    }
    let (uid, patch_type): (String, Option<String>) = (field(response, "uid")?, field(response, "patchType")?);
    let warnings: Vec<Option<String>> = field(response, "warnings")?;
    let verdict = WebhookVerdict {
        allowed: field(response, "allowed")?,
        status: field(response, "status")?,
        patch: patch(response)?,
        warnings: warnings.into_iter().flatten().collect(),
        annotations: field(response, "auditAnnotations")?,
    };
    if review["apiVersion"] == "admission.k8s.io/v1" {
        if uid != reply.uid {
            return invalid(format!("expected response.uid={:?}, got {uid:?}", reply.uid));
        }
        let has_patch = !verdict.patch.is_empty();
        if has_patch != patch_type.is_some() || (has_patch && stage == Stage::Validating) {
            return invalid(
                "response.patch and response.patchType must be set together, and only by mutating webhooks".into(),
            );
        }
    }
    Ok(verdict)
}

/// Decodes a field of the response. A null is the default value, as in Go.
///
/// # Errors
/// Fails with a value of another type.
fn field<T: DeserializeOwned + Default>(response: &Value, name: &str) -> Result<T, String> {
    let decoded: Result<Option<T>, _> = Option::deserialize(&response[name]);
    decoded.map(Option::unwrap_or_default).map_err(|why| format!("failed to call webhook: response.{name}: {why}"))
}

/// Returns the bytes of the patch. Go decodes them from base64, where it ignores line breaks, or from a list of
/// numbers, where null is 0.
fn patch(response: &Value) -> Result<Vec<u8>, String> {
    if let Value::String(text) = &response["patch"] {
        let bytes = STANDARD.decode(text.replace(['\r', '\n'], ""));
        return bytes.map_err(|why| format!("failed to call webhook: response.patch: {why}"));
    }
    let bytes: Vec<Option<u8>> = field(response, "patch")?;
    Ok(bytes.into_iter().map(Option::unwrap_or_default).collect())
}
