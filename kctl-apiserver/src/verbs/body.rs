//! From the body of a create or an update to an object that can be stored.

use serde_json::{Value, json};

use super::Refusal;
use crate::{crd, decode, kinds::Resource, proto, request::Call};

/// Custom kinds have no messages.
const TEXT: [&str; 2] = ["application/json", "application/yaml"];
const BUILT_IN: [&str; 3] = ["application/json", "application/yaml", proto::MEDIA_TYPE];

/// An object out of a request, with the texts of warnings about it.
pub(super) struct Decoded {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

/// Reads the body of a create or a replace.
pub(super) fn read(call: &Call) -> Result<Decoded, Refusal> {
    let of_custom_kind = call.resource.custom.is_some();
    let object = parse(call, call.resource.kind(), if of_custom_kind { &TEXT } else { &BUILT_IN })?;
    fit(call, object)
}

/// Reads a body of a built-in kind: what is sent to subresources, options.
pub(super) fn read_built_in(call: &Call, kind: &str) -> Result<Value, Refusal> {
    parse(call, kind, &BUILT_IN)
}

fn parse(call: &Call, kind: &str, accepted: &[&str]) -> Result<Value, Refusal> {
    let content_type = match call.header("content-type") {
        "" => "application/json",
        given => given,
    };
    let media = content_type.split(';').next().unwrap_or_default().trim();
    if !accepted.contains(&media) {
        return Err(Refusal::unsupported_media_type(&accepted.join(", ")));
    }
    decode::body(content_type, &call.body, kind).map_err(Refusal::bad_request)
}

/// Makes an object fit its kind: types, unknown fields by `fieldValidation`, kind and version.
pub(super) fn fit(call: &Call, mut object: Value) -> Result<Decoded, Refusal> {
    let resource = &call.resource;
    identify(resource, &mut object)?;
    let unknown = match (&resource.custom, resource.schema()) {
        (Some(_), Some(schema)) => crd::prune(schema, &mut object),
        (None, Some(schema)) => {
            decode::typed(schema, resource.kind(), &mut object).map_err(|why| cannot_be_handled(resource, &why))?
        }
        (_, None) => Vec::new(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    match call.params.text("fieldValidation") {
        "Strict" if !texts.is_empty() => {
            Err(cannot_be_handled(resource, &format!("strict decoding error: {}", texts.join(", "))))
        }
        "Ignore" => Ok(Decoded { object, warnings: Vec::new() }),
        _ => Ok(Decoded { object, warnings: texts }),
    }
}

fn cannot_be_handled(resource: &Resource, why: &str) -> Refusal {
    let (kind, version) = (resource.kind(), &resource.version);
    if resource.custom.is_some() {
        return Refusal::bad_request(why);
    }
    Refusal::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

fn identify(resource: &Resource, object: &mut Value) -> Result<(), Refusal> {
    let (kind, api_version) = (resource.kind(), resource.api_version());
    let Value::Object(map) = object else {
        return Err(Refusal::bad_request(format!("the object provided is unrecognized (must be of type {kind})")));
    };
    let given = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (given_kind, given_api) = (given("kind"), given("apiVersion"));
    if resource.custom.is_some() && (given_kind.is_empty() || given_api.is_empty()) {
        let missing = if given_kind.is_empty() { "kind" } else { "apiVersion" };
        return Err(Refusal::bad_request(format!("Object '{missing}' is missing in the body of a {kind}")));
    }
    if !given_kind.is_empty() && given_kind != kind {
        let version = given_api.rsplit('/').next().unwrap_or_default();
        return Err(Refusal::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: converting (v1.{given_kind}) to (core.{kind}): unknown conversion"
        )));
    }
    if !given_api.is_empty() && given_api != api_version {
        let version = given_api.rsplit('/').next().unwrap_or_default();
        return Err(Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version {given_api:?}"
        )));
    }
    map.insert("kind".into(), kind.into());
    map.insert("apiVersion".into(), api_version.into());
    Ok(())
}
