//! Converts custom objects with the webhook of their CRD.
//!
//! Upstream: `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`.

use http::StatusCode;
use serde_json::{Value, json};

use super::drop_unknown;
use crate::{
    client_config,
    decode::misfit,
    field_error::FieldError,
    metadata,
    registry::Resource,
    state::State,
    status::StatusError,
    webhook_round::{WebhookCall, WebhookReply},
};

/// The timeout of a conversion webhook.
const TIMEOUT_SECONDS: u64 = 30;
/// The version of `ConversionReview`.
const REVIEW: &str = "apiextensions.k8s.io/v1";

/// Returns the call of the conversion webhook for these objects.
///
/// # Errors
/// Fails if the Service of the webhook does not exist.
pub(crate) fn call_for(state: &State, to: &Resource, objects: &[&Value]) -> Result<WebhookCall, StatusError> {
    let conversion = to.custom.as_ref().map_or(&Value::Null, |custom| &custom.conversion["webhook"]);
    let unversioned = |object: &&Value| {
        let mut object = Value::clone(object);
        object["metadata"].as_object_mut().map(|meta| meta.remove("resourceVersion"));
        object
    };
    let objects_sent: Vec<Value> = objects.iter().map(unversioned).collect();
    let review = json!({
        "kind": "ConversionReview",
        "apiVersion": REVIEW,
        "request": { "desiredAPIVersion": to.api_version(), "objects": objects_sent },
        "response": { "uid": "", "convertedObjects": null, "result": { "metadata": {} } },
    });
    let address = client_config::resolve(state, &conversion["clientConfig"], TIMEOUT_SECONDS);
    Ok(WebhookCall { review, ..address.map_err(|why| failed(objects, &why))? })
}

/// Returns the kind of objects as Go formats a `GroupVersionKind`.
fn kind_of(objects: &[&Value]) -> String {
    let text = |field: &str| objects.first().map_or("", |object| object[field].as_str().unwrap_or_default());
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

/// Returns the error of a conversion.
fn error(objects: &[&Value], what: &str) -> StatusError {
    let message = format!("conversion webhook for {} {what}", kind_of(objects));
    StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}

/// Returns the error of a failed call.
fn failed(objects: &[&Value], why: &str) -> StatusError {
    error(objects, &format!("failed: {why}"))
}

/// Returns the objects of a response. Of their metadata only labels and annotations may differ from the originals.
///
/// # Errors
/// Fails if the webhook failed, or if its response is not valid.
pub(crate) fn converted(to: &Resource, asked: &[&Value], reply: &WebhookReply) -> Result<Vec<Value>, StatusError> {
    let body = client_config::decode_reply(reply, REVIEW, "ConversionReview").map_err(|why| failed(asked, &why))?;
    let response = &body["response"];
    let uid = response["uid"].as_str().unwrap_or_default();
    if uid != reply.uid {
        return Err(failed(asked, &format!("expected response.uid={:?}, got {uid:?}", reply.uid)));
    }
    let (status, message) = (&response["result"]["status"], &response["result"]["message"]);
    if status != "Success" {
        let status = status.as_str().unwrap_or_default();
        let why = match message.as_str().unwrap_or_default() {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        };
        return Err(failed(asked, &why));
    }
    let objects = response["convertedObjects"].as_array().cloned().unwrap_or_default();
    if objects.len() != asked.len() {
        return Err(error(asked, &format!("returned {} objects, expected {}", objects.len(), asked.len())));
    }
    let checked = objects.into_iter().zip(asked).map(|(object, original)| {
        restored(to, original, object).map_err(|why| match why {
            // Upstream sends one object per call, so its message has no index.
            Wrong::Version(why) => error(asked, &format!("returned invalid object at index 0: {why}")),
            Wrong::Identity(why) => error(asked, &format!("returned invalid object: {why}")),
            Wrong::Metadata(why) => error(asked, &format!("returned invalid metadata: {why}")),
        })
    });
    checked.collect()
}

/// The reason why a converted object is invalid.
enum Wrong {
    /// Another `apiVersion` or kind than requested.
    Version(String),
    /// Another name, namespace or uid than the original.
    Identity(String),
    /// Invalid labels or annotations. All other metadata are taken from the original.
    Metadata(String),
}

/// Returns a converted object with the metadata of the original.
fn restored(to: &Resource, original: &Value, mut object: Value) -> Result<Value, Wrong> {
    let (wanted, found) = (to.api_version(), object["apiVersion"].as_str().unwrap_or_default().to_owned());
    if found != wanted {
        return Err(Wrong::Version(format!("invalid groupVersion (expected {wanted}, received {found})")));
    }
    let (kind, given) = (to.kind(), object["kind"].as_str().unwrap_or_default());
    if kind != given {
        return Err(Wrong::Version(format!("invalid kind (expected {kind}, received {given})")));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let text = |object: &Value| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (was, is) = (text(original), text(&object));
        if was != is {
            return Err(Wrong::Identity(format!("must have the same {name}: {was} != {is}")));
        }
    }
    let mut meta = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        match object["metadata"][field].take() {
            Value::Null => drop(meta.as_object_mut().and_then(|meta| meta.remove(field))),
            given => {
                check_restored(field, &meta[field], &given).map_err(Wrong::Metadata)?;
                meta[field] = given;
            }
        }
    }
    object["metadata"] = meta;
    drop_unknown(to, &mut object);
    Ok(object)
}

/// Validates the labels or annotations of a converted object: they are strings, and are valid unless the original has
/// them too.
fn check_restored(field: &str, known: &Value, given: &Value) -> Result<(), String> {
    let Value::Object(texts) = given else {
        return Err(format!("converted object: {}", misfit(&format!("metadata.{field}"), "an object", given)));
    };
    if let Some((name, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
        return Err(format!("converted object: {}", misfit(&format!("metadata.{field}[{name}]"), "a string", value)));
    }
    if known == given {
        return Ok(());
    }
    let errors = metadata::validate_texts(&json!({ field: given }));
    // Upstream calls the field `annotation` in these errors.
    let text = |field_error: &FieldError| {
        format!("{}: {}", field_error.field.replace("annotations", "annotation"), field_error.message)
    };
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(text(one)),
        all => Err(format!("[{}]", all.iter().map(text).collect::<Vec<_>>().join(", "))),
    }
}
