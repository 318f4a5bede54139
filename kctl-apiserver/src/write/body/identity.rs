//! Whether an object is of the kind and version of the path that it was sent to.

use serde_json::{Value, json};

use super::Misfit;
use crate::{
    conversion::scheme,
    decode,
    registry::Resource,
    request::{Call, Verb},
    status::{Cause, Refusal},
};

/// Versions that the real server still knows of groups that have a first one.
const OLD_VERSIONS: [&str; 4] = ["v1beta1", "v1beta2", "v2beta1", "v2beta2"];
/// What a custom object says that it is.
pub(crate) enum Type {
    /// What the path says.
    Own,
    /// The kind of the path in this version.
    OtherVersion(String),
    Other,
}

impl Type {
    pub(crate) fn of(resource: &Resource, object: &Value) -> Self {
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
pub(crate) fn identify(call: &Call, object: &mut Value) -> Result<(), Misfit> {
    let resource = &call.resource;
    if object.is_null() && resource.custom.is_none() {
        *object = json!({});
    }
    if resource.custom.is_some() {
        return readable(call, object);
    }
    if call.verb == Verb::Patch
        && let Err(why) = decode::identified(object)
    {
        return Err(Misfit::Content(format!("couldn't get version/kind; json parse error: {why}")));
    }
    identify_as(&call.body, object, resource.kind(), &resource.api_version()).map_err(Misfit::Identity)
}

/// Makes an object one of a built-in type, unless it says to be of another one; `body` is what was sent.
pub(crate) fn identify_as(body: &[u8], object: &mut Value, kind: &str, api_version: &str) -> Result<(), Refusal> {
    let given_kind = given(object, "kind");
    let given_version = match read_version(given(object, "apiVersion"), body) {
        Ok(version) => version,
        Err(Unread::NoVersion(why)) => {
            return Err(Refusal::bad_request(format!("{kind} in version \"\" cannot be handled as a {kind}: {why}")));
        }
        Err(Unread::TooLong(why)) => {
            return Err(unrecognized(kind, &format!(": {why} ({})", decode::summary(body))));
        }
    };
    is_built_in((kind, api_version), given_kind, given_version)?;
    let Value::Object(map) = object else {
        return Err(unrecognized(kind, ""));
    };
    map.insert("kind".into(), kind.into());
    map.insert("apiVersion".into(), api_version.into());
    Ok(())
}

/// What an object says of its type: as Go's decoder looks for fields, in capital letters or small ones.
pub(crate) fn given<'a>(object: &'a Value, field: &str) -> &'a str {
    let found = object.get(field).or_else(|| {
        let mut fields = object.as_object()?.iter();
        fields.find(|(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, value)| value)
    });
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Why a version is none, in the words of the real server.
pub(crate) enum Unread {
    TooLong(String),
    NoVersion(String),
}

/// The group and version of an object without what means nothing (`ParseGroupVersion` of apimachinery); `body` is what was sent.
pub(crate) fn read_version<'a>(given: &'a str, body: &[u8]) -> Result<&'a str, Unread> {
    match given.strip_prefix('/').unwrap_or(given) {
        _ if given.matches('/').count() > 1 => Err(Unread::TooLong(format!("unexpected GroupVersion string: {given}"))),
        version if version.ends_with('/') => {
            let sent = String::from_utf8_lossy(body);
            Err(Unread::NoVersion(format!("Object 'apiVersion' is missing in '{}'", sent.trim_end())))
        }
        version => Ok(version),
    }
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
        let of_body = || unrecognized(call.resource.kind(), &format!(": {why} ({})", decode::summary(&call.body)));
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

fn unrecognized(kind: &str, why: &str) -> Refusal {
    Refusal::bad_request(format!("the object provided is unrecognized (must be of type {kind}){why}"))
}

fn without_kind(call: &Call) -> Refusal {
    let (sent, shown) = (String::from_utf8_lossy(&call.body), decode::summary(&call.body));
    unrecognized(call.resource.kind(), &format!(": Object 'Kind' is missing in '{}' ({shown})", sent.trim_end()))
}

/// What is sent as a whole has the version of the path.
pub(crate) fn is_accepted(call: &Call, object: &Value) -> Result<(), Refusal> {
    let (given, expected) = (object["apiVersion"].as_str().unwrap_or_default(), call.resource.api_version());
    let given = given.strip_prefix('/').unwrap_or(given);
    if call.verb != Verb::Patch && given != expected { Err(wrong_version(given, &expected)) } else { Ok(()) }
}

/// A custom object of another type, as it is refused in the end (`customResourceValidator.ValidateTypeMeta`).
pub(crate) fn of_another_type(resource: &Resource, object: &Value) -> Option<Refusal> {
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

fn is_built_in((kind, api_version): (&str, &str), given_kind: &str, given_api: &str) -> Result<(), Refusal> {
    // What is left out is that of the path.
    let given_kind = if given_kind.is_empty() { kind } else { given_kind };
    let given_api = if given_api.is_empty() { api_version } else { given_api };
    if (given_kind, given_api) == (kind, api_version) {
        return Ok(());
    }
    let (group, version) = given_api.rsplit_once('/').unwrap_or(("", given_api));
    let (own_group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let package = scheme::package_of(given_kind, given_api);
    // Events are of one type, by which group they may be asked for.
    let events = |group: &str| kind == "Event" && ["", "events.k8s.io"].contains(&group);
    let is_same_type = given_kind == kind && (group == own_group || (events(group) && events(own_group)));
    let is_new = kind == "TokenRequest";
    if is_same_type && !is_new && (package.is_some() || OLD_VERSIONS.contains(&version)) {
        return Err(wrong_version(given_api, api_version));
    }
    let why = scheme::unconverted((kind, api_version), given_kind, given_api);
    Err(Refusal::bad_request(format!("{given_kind} in version {version:?} cannot be handled as a {kind}: {why}")))
}
