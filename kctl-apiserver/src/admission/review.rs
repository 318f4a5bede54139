//! What travels between the server and admission webhooks: the review that is sent, and what the answer says.

use serde_json::{Value, json};

use super::{Attributes, matching::Versioned};
use crate::{go, session::Reply};

/// Versions of reviews that the server speaks.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The `request` of a review; `resource` and `kind` are those under which the webhook wants to see the object.
pub(super) fn request(attributes: &Attributes<'_>, resource: &Versioned, kind: &Value) -> Value {
    let call = attributes.call;
    let mut request = json!({
        "kind": kind,
        "resource": resource.to_json(),
        "requestKind": attributes.kind(),
        "requestResource": Versioned::of(&call.resource).to_json(),
        "operation": attributes.operation.name(),
        "userInfo": call.caller.info(),
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
    add("subResource", &call.subresource);
    add("requestSubResource", &call.subresource);
    add("namespace", namespace(attributes));
    request
}

/// A namespace is in itself.
fn namespace<'a>(attributes: &'a Attributes<'_>) -> &'a str {
    let resource = &attributes.call.resource.of;
    if resource.group.is_empty() && resource.resource == "namespaces" {
        return &attributes.name;
    }
    &attributes.call.namespace
}

/// A review in the first version of a webhook that the server speaks.
pub(super) fn review(webhook: &Value, request: &Value) -> Value {
    let wanted = webhook["admissionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let version = wanted.into_iter().find(|version| VERSIONS.contains(version)).unwrap_or("v1");
    json!({ "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{version}"), "request": request })
}

/// What a webhook says.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// `response.status`.
    pub(super) status: Value,
    /// A JSON patch; empty for none.
    pub(super) patch: Vec<u8>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Value,
}

/// Reads an answer.
///
/// # Errors
/// In the words of the real server, after `failed calling webhook "name": `.
pub(super) fn verdict(asked: &Value, reply: &Reply, mutates: bool) -> Result<Verdict, String> {
    let body = body(reply, asked["apiVersion"].as_str().unwrap_or_default(), "AdmissionReview")
        .map_err(|why| format!("failed to call webhook: {why}"))?;
    let response = &body["response"];
    let invalid = |why: String| Err(format!("received invalid webhook response: {why}"));
    if !response.is_object() {
        return invalid("webhook response was absent".into());
    }
    let uid = response["uid"].as_str().unwrap_or_default();
    if asked["apiVersion"] == "admission.k8s.io/v1" && uid != reply.uid {
        return invalid(format!("expected response.uid={:?}, got {uid:?}", reply.uid));
    }
    let patch = response["patch"].as_str().filter(|_| mutates).unwrap_or_default();
    let patch = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, patch)
        .map_err(|error| format!("failed to call webhook: illegal base64 data: {error}"))?;
    let patch_type = response["patchType"].as_str().unwrap_or_default();
    if mutates && asked["apiVersion"] == "admission.k8s.io/v1" {
        match (patch.is_empty(), patch_type) {
            (false, "") => return invalid("webhook returned response.patch but not response.patchType".into()),
            (true, kind) if !kind.is_empty() => {
                return invalid("webhook returned response.patchType but not response.patch".into());
            }
            // The real server takes other types for the one that it knows.
            _ => {}
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

/// The document that a webhook has answered with (`rest.Result`).
pub(crate) fn body(reply: &Reply, api_version: &str, kind: &str) -> Result<Value, String> {
    let bytes = reply.outcome.as_ref().map_err(Clone::clone)?;
    let text = String::from_utf8_lossy(bytes);
    let body: Value = serde_json::from_slice(bytes)
        .or_else(|_| serde_saphyr::from_str(&text))
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    if !body.is_object() {
        return Err(format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go::json_type(&body)
        ));
    }
    let given = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    let (found_version, found_kind) = (given("apiVersion"), given("kind"));
    if (found_version.as_str(), found_kind.as_str()) == (api_version, kind) {
        return Ok(body);
    }
    let short = |version: &str| version.rsplit('/').next().unwrap_or_default().to_owned();
    Err(if found_kind.is_empty() {
        format!("Object 'Kind' is missing in '{text}'")
    } else if found_kind == kind && found_version.split('/').next() == api_version.split('/').next() {
        let (found, wanted) = (short(&found_version), short(api_version));
        format!("converting ({found}.{kind}) to ({wanted}.{kind}): unknown conversion")
    } else {
        format!(
            "no kind {found_kind:?} is registered for version {found_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )
    })
}
