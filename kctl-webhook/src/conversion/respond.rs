//! The conversion protocol without the network: the body of a `ConversionReview` request to the
//! body of its response.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Conversions, Rule, StepError};
use crate::{
    call::{RequestState, catch_unwind},
    kind::{format_object, format_review},
    metrics::Running,
    server::uid_of,
};

/// Maximum length of a request body in bytes. An API server sends whole lists (`getObjectsToConvert` in
/// `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`): 500 objects (`defaultPageSize` in
/// `k8s.io/client-go/tools/pager/pager.go`) of 256 KiB each.
pub(crate) const BODY_LEN_MAX: usize = 128 << 20;
/// Version and kind of the envelope.
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(default, rename = "desiredAPIVersion")]
    desired_api_version: String,
    /// Go writes a nil slice as null.
    objects: Option<Vec<Value>>,
}

/// The reason why objects were not converted.
struct ConversionFailure {
    /// The message for the API server. It may have values of the object.
    text: String,
    /// The message for the log, which more people may read than the object.
    logged: String,
    code: u16,
}

/// Returns the response to a review that failed, and logs it.
pub(crate) fn failure_response(uid: &str, code: u16, text: &str) -> Value {
    failure_response_logged_as(uid, code, text, text)
}

/// Returns the response to a review that failed, and logs it by a message without values of the object.
fn failure_response_logged_as(uid: &str, code: u16, text: &str, logged: &str) -> Value {
    tracing::error!(uid, code, "conversion failed: {logged}");
    envelope(&json!({ "uid": uid, "convertedObjects": [], "result": { "status": "Failure", "message": text } }))
}

fn envelope(response: &Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}

/// Converts all objects of a review, or returns the first error.
pub(crate) async fn respond(conversions: &Arc<Conversions>, body: &[u8], state: &mut RequestState) -> Value {
    let request = match decode_request(body) {
        Ok(request) => request,
        Err(text) => {
            state.measurement.code(400);
            let logged = format!("the request has no valid {KIND}; the response has the reason");
            return failure_response_logged_as(&uid_of(body), 400, &text, &logged);
        }
    };
    let Request { uid, desired_api_version, objects } = request;
    let objects = objects.unwrap_or_default();
    state.uid.clone_from(&uid);
    let (conversions, called) = (conversions.clone(), state.running.clone());
    // All objects are converted in one task: a list has hundreds, and most functions return at once.
    let running = state.measurement.start_function(&state.running);
    let converted = state.in_own_task(async move {
        let mut converted = Vec::with_capacity(objects.len());
        for (index, object) in objects.into_iter().enumerate() {
            if let Some(part) = malformed_part(&object) {
                let text = format!("objects[{index}]{part} is not an object");
                return Err(ConversionFailure { logged: text.clone(), text, code: 400 });
            }
            converted.push(convert(&conversions, object, &desired_api_version, &running, &called).await?);
        }
        Ok(converted)
    });
    let converted = converted.await.map_err(|error| error.to_string());
    match converted.unwrap_or_else(|text| Err(ConversionFailure { logged: text.clone(), text, code: 500 })) {
        Ok(converted) => {
            state.measurement.code(200);
            envelope(&json!({ "uid": uid, "convertedObjects": converted, "result": { "status": "Success" } }))
        }
        Err(ConversionFailure { text, logged, code }) => {
            state.measurement.code(code);
            failure_response_logged_as(&uid, code, &text, &logged)
        }
    }
}

fn decode_request(body: &[u8]) -> Result<Request, String> {
    let review: Review = serde_json::from_slice(body).map_err(|error| format!("no {KIND}: {error}"))?;
    if review.kind != KIND || review.api_version != API_VERSION {
        return Err(format!("{}: expected {API_VERSION} {KIND}", format_review(&review.api_version, &review.kind)));
    }
    review.request.ok_or_else(|| format!("the {KIND} has no request"))
}

/// Returns the part of an object that has to be an object and is not; an empty path for all of it.
fn malformed_part(object: &Value) -> Option<&'static str> {
    let Some(fields) = object.as_object() else { return Some("") };
    fields.get("metadata").filter(|metadata| !metadata.is_object() && !metadata.is_null()).map(|_| ".metadata")
}

/// Converts one object along the path between its version and the desired one.
async fn convert(
    conversions: &Conversions,
    object: Value,
    desired: &str,
    running: &Running,
    called: &Mutex<Option<String>>,
) -> Result<Value, ConversionFailure> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let [api, kind, namespace, name] = ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(text);
    let shown = format_object(&kind, &namespace, &name);
    let about = |text: &str| format!("{shown}, {api} → {desired}: {text}");
    let (group, from) = split(&api);
    let (desired_group, to) = split(desired);
    let path = if group == desired_group { conversions.path(group, &kind, from, to) } else { None };
    let path = path.ok_or_else(|| {
        let text = about("there is no conversion");
        ConversionFailure { logged: text.clone(), text, code: 400 }
    })?;
    let mut converted = object;
    for rule in path {
        *called.lock() = Some(format!("{} for {shown}", rule.about.named_location()));
        let stepped = convert_step(rule, converted, &shown, running).await;
        converted = stepped.map_err(|error| ConversionFailure {
            text: about(&error.to_string()),
            logged: about(&error.without_values()),
            code: 500,
        })?;
    }
    Ok(converted)
}

fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Calls one function. The result gets the target version, and the metadata of the source.
async fn convert_step(rule: &Rule, object: Value, shown: &str, running: &Running) -> Result<Value, StepError> {
    let called = catch_unwind(rule.about, shown, || (rule.call)(&object)).await;
    let converted = called.inspect_err(|_panic| running.count_panic()).map_err(StepError::Function)??;
    let Value::Object(mut converted) = converted else {
        return Err(StepError::Function("the result is not an object".into()));
    };
    converted.insert("apiVersion".into(), rule.to.api_version().into());
    converted.insert("kind".into(), rule.to.kind.clone().into());
    let made = converted.remove("metadata");
    converted.insert("metadata".into(), metadata(&object["metadata"], made.as_ref()));
    Ok(converted.into())
}

/// Returns the metadata of the source with labels and annotations that the function added or set.
///
/// An API server rejects other changes (`validateConvertedObject` and `restoreObjectMeta` in
/// `k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`), and what a function left out was not
/// meant to be removed.
fn metadata(before: &Value, made: Option<&Value>) -> Value {
    let mut metadata = before.clone();
    for field in ["labels", "annotations"] {
        let added: Map<String, Value> = made
            .and_then(|made| made[field].as_object())
            .into_iter()
            .flatten()
            .filter(|(key, value)| before[field].get(key.as_str()) != Some(*value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if added.is_empty() {
            continue;
        }
        match metadata[field].as_object_mut() {
            Some(labels) => labels.extend(added),
            None => metadata[field] = added.into(),
        }
    }
    metadata
}
