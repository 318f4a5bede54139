//! Whether an object is of the kind and version of the path that it was sent to.

use serde_json::{Value, json};

use super::body::Misfit;
use crate::{
    decode,
    kinds::Resource,
    request::{Call, Verb},
    status::{Cause, Refusal},
};

/// Versions that the real server still knows of groups that have a first one.
const OLD_VERSIONS: [&str; 4] = ["v1beta1", "v1beta2", "v2beta1", "v2beta2"];

/// What a custom object says that it is.
pub(super) enum Type {
    /// What the path says.
    Own,
    /// The kind of the path in this version.
    OtherVersion(String),
    Other,
}

impl Type {
    pub(super) fn of(resource: &Resource, object: &Value) -> Self {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (object["kind"] == resource.kind() && group == resource.of.group, version == resource.version) {
            (true, true) => Self::Own,
            (true, false) => Self::OtherVersion(version.to_owned()),
            (false, _) => Self::Other,
        }
    }
}

/// Reads the type of an object. Built-in ones are of the type of the path from here on; custom ones stay what they say until they
/// are judged.
pub(super) fn identify(call: &Call, object: &mut Value) -> Result<(), Misfit> {
    let resource = &call.resource;
    if object.is_null() && resource.custom.is_none() {
        *object = json!({});
    }
    let given = |key: &str| object[key].as_str().unwrap_or_default();
    if resource.custom.is_some() {
        return readable(call, object);
    }
    is_built_in(resource, given("kind"), given("apiVersion")).map_err(Misfit::Identity)?;
    let Value::Object(map) = object else {
        return Err(Misfit::Identity(unrecognized(resource, "")));
    };
    map.insert("kind".into(), resource.kind().into());
    map.insert("apiVersion".into(), resource.api_version().into());
    Ok(())
}

/// Whether a custom object says what it is (`unstructuredJSONScheme`).
fn readable(call: &Call, object: &Value) -> Result<(), Misfit> {
    let patches = call.verb == Verb::Patch;
    let (kind, api_version) = (object["kind"].as_str().unwrap_or_default(), &object["apiVersion"]);
    let version = api_version.as_str().filter(|version| version.matches('/').count() > 1);
    let wrong = match (decode::identified(object), version) {
        (Err(why), _) => Some(format!("couldn't get version/kind; json parse error: {why}")),
        (Ok(()), version) => version.map(|version| format!("unexpected GroupVersion string: {version}")),
    };
    if let Some(why) = wrong {
        let of_body = || unrecognized(&call.resource, &format!(": {why} ({})", decode::summary(&call.body)));
        return Err(if patches { Misfit::Content(why) } else { Misfit::Identity(of_body()) });
    }
    if kind.is_empty() {
        return Err(if patches { Misfit::WithoutKind } else { Misfit::Identity(without_kind(call)) });
    }
    if api_version.is_null() && object.get("apiVersion").is_some() {
        let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        return Err(Misfit::Content(why.into()));
    }
    if patches && api_version.as_str().is_none_or(str::is_empty) {
        let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
        return Err(Misfit::Identity(Refusal::internal(why)));
    }
    Ok(())
}

fn unrecognized(resource: &Resource, why: &str) -> Refusal {
    Refusal::bad_request(format!("the object provided is unrecognized (must be of type {}){why}", resource.kind()))
}

fn without_kind(call: &Call) -> Refusal {
    let (sent, shown) = (String::from_utf8_lossy(&call.body), decode::summary(&call.body));
    unrecognized(&call.resource, &format!(": Object 'Kind' is missing in '{}' ({shown})", sent.trim_end()))
}

/// What is sent as a whole has the version of the path.
pub(super) fn is_accepted(call: &Call, object: &Value) -> Result<(), Refusal> {
    let (given, expected) = (object["apiVersion"].as_str().unwrap_or_default(), call.resource.api_version());
    if call.verb != Verb::Patch && given != expected { Err(wrong_version(given, &expected)) } else { Ok(()) }
}

/// A custom object of another type, as it is refused in the end (`customResourceValidator.ValidateTypeMeta`).
pub(super) fn of_another_type(resource: &Resource, object: &Value) -> Option<Refusal> {
    let mut causes = Vec::new();
    for (field, expected) in [("kind", resource.kind().to_owned()), ("apiVersion", resource.api_version())] {
        let found = &object[field];
        if *found != expected.as_str() {
            let message = format!("Invalid value: {found}: must be {expected}");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: field.into() });
        }
    }
    if resource.custom.is_none() || causes.is_empty() {
        return None;
    }
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Some(Refusal::invalid(group, &kind, &text(&object["metadata"]["name"]), &causes))
}

fn wrong_version(given: &str, expected: &str) -> Refusal {
    Refusal::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({expected})"
    ))
}

fn is_built_in(resource: &Resource, given_kind: &str, given_api: &str) -> Result<(), Refusal> {
    let (kind, api_version) = (resource.kind(), resource.api_version());
    let (group, version) = given_api.rsplit_once('/').unwrap_or(("", given_api));
    if given_api != api_version && group == resource.of.group && OLD_VERSIONS.contains(&version) {
        return Err(wrong_version(given_api, &api_version));
    }
    if !given_kind.is_empty() && given_kind != kind {
        let own_group = resource.of.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        return Err(Refusal::bad_request(format!(
            "{given_kind} in version {version:?} cannot be handled as a {kind}: converting (v1.{given_kind}) to \
             ({own_group}.{kind}): unknown conversion"
        )));
    }
    if !given_api.is_empty() && given_api != api_version {
        return Err(Refusal::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is registered for version \
             {given_api:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(())
}
