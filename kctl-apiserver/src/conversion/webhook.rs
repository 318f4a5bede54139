//! Converts custom objects with the webhook of their CRD.
//!
//! Upstream: `apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go`.

use http::StatusCode;
use serde_json::{Value, json};

use super::drop_unknown;
use crate::{
    client_config,
    decode::type_error,
    metadata,
    registry::Resource,
    state::State,
    status::{GroupResource, StatusError},
    webhook_round::{WebhookCall, WebhookReply},
};

/// The timeout of a conversion webhook.
const TIMEOUT_SECONDS: u64 = 30;
/// The version of `ConversionReview`.
const REVIEW: &str = "apiextensions.k8s.io/v1";

/// Number of objects that the error of a list names (`maxCorruptObjErrsToAggregate`).
const CAUSES_MAX: usize = 100;

/// Returns the call of the conversion webhook for these objects.
///
/// As upstream, the review has an empty response besides the request.
///
/// # Errors
/// Fails if the Service of the webhook does not exist.
pub(crate) fn call_for(state: &State, to: &Resource, objects: &[&Value]) -> Result<WebhookCall, UnconvertedObjects> {
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
    Ok(WebhookCall { review, ..address.map_err(|why| fail_all(objects, &why))? })
}

/// The objects that a conversion webhook did not convert, by index, each with the reason. There is at least one.
pub(crate) struct UnconvertedObjects(Vec<(usize, String)>);

impl UnconvertedObjects {
    /// Returns the error of a write or a watch: a plain error without a reason, which names the first object's failure.
    pub(crate) fn into_status(self) -> StatusError {
        let message = self.0.into_iter().next().map(|(_, why)| why).unwrap_or_default();
        StatusError::server_error(message)
    }

    /// Returns the error of a list, with one cause per object (`aggregatedStorageError` of
    /// `k8s.io/apiserver/pkg/storage/etcd3`). At most [`CAUSES_MAX`] objects are named.
    pub(crate) fn into_status_of_list(self, resource: &GroupResource, objects: &[&Value]) -> StatusError {
        let first = self.0.first().map(|(_, why)| why.as_str()).unwrap_or_default();
        let message = format!("failed to read one or more {resource} from the storage: {first}");
        let cause = |(index, why): &(usize, String)| {
            let parts = [&objects[*index]["metadata"]["namespace"], &objects[*index]["metadata"]["name"]];
            let names: Vec<&str> = parts.iter().filter_map(|part| part.as_str()).collect();
            let key = format!("/registry/{}/{}/{}", resource.group, resource.resource, names.join("/"));
            json!({ "reason": "UnexpectedServerResponse", "field": key, "message": why })
        };
        let mut causes: Vec<Value> = self.0.iter().take(CAUSES_MAX).map(cause).collect();
        if causes.len() == CAUSES_MAX {
            let message = "too many errors, the list is truncated";
            causes.push(json!({ "reason": "FieldValueTooMany", "message": message }));
        }
        let error = StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "StorageReadError", message);
        let mut error = error.for_object(resource, "list");
        error.details["causes"] = causes.into();
        error
    }
}

/// Returns the failure of all objects of a call, for the same reason.
fn fail_all(objects: &[&Value], why: &str) -> UnconvertedObjects {
    UnconvertedObjects(objects.iter().enumerate().map(|(index, object)| (index, reason(object, why))).collect())
}

/// Returns the reason with the object's kind.
fn reason(object: &Value, why: &str) -> String {
    format!("conversion webhook for {} failed: {why}", object["kind"])
}

/// Returns the objects of a response. Only labels and annotations may differ from the originals' metadata.
///
/// Objects are matched by position: the first converted object belongs to the first that was sent. The uid matches the
/// response to its request.
///
/// # Errors
/// Fails if the webhook failed, or for the objects that are not valid in its response.
pub(crate) fn read_response(
    to: &Resource,
    originals: &[&Value],
    reply: &WebhookReply,
) -> Result<Vec<Value>, UnconvertedObjects> {
    let body =
        client_config::decode_reply(reply, REVIEW, "ConversionReview").map_err(|why| fail_all(originals, &why))?;
    let response = &body["response"];
    let uid = response["uid"].as_str().unwrap_or_default();
    if uid != reply.uid {
        return Err(fail_all(originals, &format!("expected response.uid={:?}, got {uid:?}", reply.uid)));
    }
    let (status, message) = (&response["result"]["status"], &response["result"]["message"]);
    if status != "Success" {
        return Err(fail_all(originals, &format!("response.result.status is {status}, not Success: {message}")));
    }
    let objects = response["convertedObjects"].as_array().cloned().unwrap_or_default();
    if objects.len() != originals.len() {
        return Err(fail_all(
            originals,
            &format!("it returned {} objects, expected {}", objects.len(), originals.len()),
        ));
    }
    let (mut converted, mut invalid) = (Vec::new(), Vec::new());
    for (index, (object, original)) in objects.into_iter().zip(originals).enumerate() {
        match restore_metadata(to, original, object) {
            Ok(object) => converted.push(object),
            Err(why) => invalid.push((index, reason(original, &format!("invalid converted object: {why}")))),
        }
    }
    if invalid.is_empty() { Ok(converted) } else { Err(UnconvertedObjects(invalid)) }
}

/// Returns a converted object with the metadata of the original.
///
/// A webhook cannot move, rename or own an object. All metadata but labels and annotations come from the original, even
/// if the webhook left them out.
fn restore_metadata(to: &Resource, original: &Value, mut object: Value) -> Result<Value, String> {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let of_metadata =
        |field: &'static str| (field, text(&original["metadata"][field]), text(&object["metadata"][field]));
    let identity = [
        ("apiVersion", to.api_version(), text(&object["apiVersion"])),
        ("kind", to.kind_name().to_owned(), text(&object["kind"])),
        of_metadata("name"),
        of_metadata("namespace"),
        of_metadata("uid"),
    ];
    if let Some((field, expected, found)) = identity.iter().find(|(_, expected, found)| expected != found) {
        return Err(format!("{field} must be {expected:?}, found {found:?}"));
    }
    let mut meta = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        match object["metadata"][field].take() {
            Value::Null => drop(meta.as_object_mut().and_then(|meta| meta.remove(field))),
            texts => {
                check_restored(field, &meta[field], &texts)?;
                meta[field] = texts;
            }
        }
    }
    object["metadata"] = meta;
    drop_unknown(to, &mut object);
    Ok(object)
}

/// Validates the labels or annotations of a converted object: they are strings, and are valid unless the original has
/// them too.
fn check_restored(field: &str, original: &Value, converted: &Value) -> Result<(), String> {
    let Value::Object(texts) = converted else {
        return Err(type_error(&format!("metadata.{field}"), "an object", converted));
    };
    if let Some((name, value)) = texts.iter().find(|(_, value)| !value.is_string()) {
        return Err(type_error(&format!("metadata.{field}[{name}]"), "a string", value));
    }
    if original == converted {
        return Ok(());
    }
    match metadata::validate_labels_and_annotations(&json!({ field: converted })).first() {
        None => Ok(()),
        Some(field_error) => Err(format!("{}: {}", field_error.field, field_error.message)),
    }
}
