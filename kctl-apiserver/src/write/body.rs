//! From the body of a create or an update to an object that can be stored.

pub(crate) mod identity;

use std::borrow::Cow;

use serde_json::{Value, json};

use self::identity::DeclaredType;
use crate::{
    crd,
    decode::{self, Integers},
    go,
    json_path::at_mut,
    patch, proto,
    registry::{Custom, Resource},
    request::{RequestInfo, Verb},
    schema::Schema,
    status::{FieldError, StatusError},
};

/// In the order of the real server's 415. Custom kinds have no messages: for them the last one is refused.
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", proto::MEDIA_TYPE];

/// Reads the body of a create or a replace.
pub(crate) fn read(info: &RequestInfo) -> Result<Value, StatusError> {
    if info.resource.custom.is_some() && media_type(info) == proto::MEDIA_TYPE {
        return Err(StatusError::unsupported_media_type("application/json, application/yaml"));
    }
    let object = read_built_in(info, info.resource.kind())?;
    fit(info, object)
}

/// Reads a body that need not be of the kind of the resource: what is sent to subresources, options.
pub(crate) fn read_built_in(info: &RequestInfo, kind: &str) -> Result<Value, StatusError> {
    if !ACCEPTED.contains(&media_type(info).as_ref()) {
        return Err(StatusError::unsupported_media_type(&ACCEPTED.join(", ")));
    }
    decode::body(&media_type(info), &info.body, kind).map_err(StatusError::bad_request)
}

/// Whether nothing is to be kept of a request: a delete says so in its body as well, an eviction in the options of the delete
/// that it is.
pub(crate) fn is_dry_run(info: &RequestInfo) -> bool {
    let kind = match info.verb {
        // Options in a body are all there are.
        Verb::Delete | Verb::DeleteCollection if !info.body.is_empty() => "DeleteOptions",
        _ if info.dry_run() => return true,
        Verb::Create if info.subresource == "eviction" => "Eviction",
        _ => return false,
    };
    let sent = read_built_in(info, kind).unwrap_or_default();
    let options = if info.verb == Verb::Create { &sent["deleteOptions"] } else { &sent };
    options["dryRun"].as_array().is_some_and(|runs| !runs.is_empty())
}

fn media_type(info: &RequestInfo) -> Cow<'_, str> {
    match info.header("content-type").split(';').next().unwrap_or_default().trim() {
        "" => "application/json".into(),
        given if given.contains(|letter: char| letter.is_ascii_uppercase()) => given.to_ascii_lowercase().into(),
        given => given.into(),
    }
}

/// Why an object does not fit its kind.
pub(crate) enum Misfit {
    /// Another kind or version than that of the path.
    Identity(StatusError),
    /// A wrong type or, when the request is strict, an unknown field.
    Content(String),
}

impl Misfit {
    /// `version` is that of the body.
    fn of_body(self, kind: &str, version: &str) -> StatusError {
        match self {
            Self::Identity(status_error) => status_error,
            Self::Content(why) => cannot_be_handled(kind, version, &why),
        }
    }

    /// A patch has made it so.
    pub(crate) fn of_patch(self) -> StatusError {
        let why = match self {
            Self::Identity(status_error) if status_error.code != http::StatusCode::BAD_REQUEST => return status_error,
            Self::Identity(status_error) => status_error.message,
            Self::Content(why) => why,
        };
        let field_error =
            FieldError { reason: "FieldValueInvalid", message: format!("Invalid value: {why}"), field: "patch".into() };
        StatusError::invalid("", "", "", &[field_error])
    }
}

/// Makes an object fit its kind: types, unknown fields by `fieldValidation`, kind and version.
fn fit(info: &RequestInfo, object: Value) -> Result<Value, StatusError> {
    let sent = if media_type(info) == "application/json" { &info.body[..] } else { &[] };
    let version = match info.resource.custom {
        Some(_) => object["apiVersion"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned(),
        None => info.resource.version.clone(),
    };
    fit_as(info, object, None, sent).map_err(|misfit| misfit.of_body(info.resource.kind(), &version))
}

/// The same; `stored` is what is there already, `sent` is the JSON in which fields may come twice.
pub(crate) fn fit_as(info: &RequestInfo, object: Value, stored: Option<&Value>, sent: &[u8]) -> Result<Value, Misfit> {
    fit_and_tell(info, object, stored, sent).map(|(object, _)| object)
}

/// The same of what was applied, with the paths of the fields that it has lost.
pub(crate) fn fit_applied(
    info: &RequestInfo,
    object: Value,
    stored: Option<&Value>,
) -> Result<(Value, Vec<String>), Misfit> {
    fit_and_tell(info, object, stored, &[])
}

fn fit_and_tell(
    info: &RequestInfo,
    mut object: Value,
    stored: Option<&Value>,
    sent: &[u8],
) -> Result<(Value, Vec<String>), Misfit> {
    let resource = &info.resource;
    identity::identify(info, &mut object)?;
    // YAML is made JSON first, where a number without a fraction is an integer; in JSON it is what it is written as.
    if media_type(info) == "application/yaml" {
        go::whole_numbers(&mut object);
    }
    let unknown = match (&resource.custom, resource.schema()) {
        (Some(custom), schema) => {
            if let Some(metadata) = object.get_mut("metadata").filter(|_| info.applies()) {
                decode::drop_malformed(metadata);
            }
            fit_custom(resource, custom, schema, &mut object).map_err(Misfit::Content)?
        }
        (None, Some(schema)) => {
            let is_strategic = info.header("content-type").starts_with("application/strategic-merge-patch");
            let is_laid_over = is_strategic || info.applies();
            let integers = if is_laid_over { Integers::Wrapped } else { Integers::InRange };
            let unknown = decode::typed(schema, &mut object, stored, integers).map_err(Misfit::Content)?;
            if let Some(why) = (resource.rules.decode_error)(&object) {
                return Err(Misfit::Content(why));
            }
            unknown
        }
        (None, None) => Vec::new(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    // What may not be applied to a custom kind was refused by the schema; of what goes without that nothing is said.
    let is_silent = info.applies() && resource.custom.is_some();
    tell_of_fields(info, sent, if is_silent { &[] } else { &unknown })?;
    identity::is_accepted(info, &object).map_err(Misfit::Identity)?;
    info.round.warn_all(drop_repeated_owners(&mut object));
    Ok((object, unknown))
}

/// What is said of fields that come twice and of those that are not known, by `fieldValidation`.
fn tell_of_fields(info: &RequestInfo, sent: &[u8], unknown: &[String]) -> Result<(), Misfit> {
    let asked = info.params.text("fieldValidation");
    let mut texts = repeated(info, sent);
    if media_type(info) == "application/json-patch+json" {
        texts.extend(patch::json::strange_fields(&info.body));
    }
    texts.extend(unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    match asked {
        "Strict" if !texts.is_empty() => {
            return Err(Misfit::Content(format!("strict decoding error: {}", texts.join(", "))));
        }
        "Ignore" => {}
        _ => info.round.warn_all(texts),
    }
    Ok(())
}

/// What is said of fields that come twice.
fn repeated(info: &RequestInfo, sent: &[u8]) -> Vec<String> {
    if media_type(info) != "application/yaml" {
        return decode::duplicates(sent).iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    }
    let read = std::str::from_utf8(&info.body).ok().and_then(|text| decode::yaml(text).ok());
    read.map(|read| read.repeated).unwrap_or_default()
}

/// Reads what is sent to a subresource that has a built-in type of its own.
pub(crate) fn read_as(info: &RequestInfo, kind: &str, api_version: &str) -> Result<Value, StatusError> {
    let mut object = read_built_in(info, kind)?;
    // Evictions are also taken in their first version, which has the same fields.
    if kind == "Eviction" && object["apiVersion"] == "policy/v1beta1" {
        object["apiVersion"] = api_version.into();
    }
    let sent = if media_type(info) == "application/json" { &info.body[..] } else { &[] };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    fit_type(info, &mut object, kind, api_version, sent).map_err(|misfit| misfit.of_body(kind, version))?;
    Ok(object)
}

/// Makes an object fit a built-in type that is not the one of the path; `sent` is the JSON in which fields may come twice.
pub(crate) fn fit_type(
    info: &RequestInfo,
    object: &mut Value,
    kind: &str,
    api_version: &str,
    sent: &[u8],
) -> Result<(), Misfit> {
    if object.is_null() {
        *object = json!({});
    }
    identity::identify_as(object, kind, api_version).map_err(Misfit::Identity)?;
    if media_type(info) == "application/yaml" {
        go::whole_numbers(object);
    }
    let unknown = match Schema::built_in(api_version, kind) {
        Some(schema) => decode::typed(schema, object, None, Integers::InRange).map_err(Misfit::Content)?,
        None => Vec::new(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    tell_of_fields(info, sent, &unknown)
}

/// Makes a custom object fit the schema of its version, and tells the fields that it drops (`unstructuredSchemaCoercer`).
fn fit_custom(
    resource: &Resource,
    custom: &Custom,
    schema: Option<Schema<'_>>,
    object: &mut Value,
) -> Result<Vec<String>, String> {
    if let Some(metadata) = object.get_mut("metadata") {
        decode::typed_metadata(metadata)?;
    }
    // An object of another version is refused in the end, after a word about what that version does not have.
    let other = match DeclaredType::of(resource, object) {
        DeclaredType::Own => None,
        DeclaredType::OtherVersion(version) => Some(custom.schema_of(&version)),
        DeclaredType::Other => return Ok(Vec::new()),
    };
    let unknown = match other.unwrap_or(schema) {
        Some(schema) => {
            crd::fit_embedded(schema, object)?;
            let unknown = crd::prune(schema, object);
            crd::settle_embedded(schema, object);
            unknown
        }
        None if other.is_some() => fields_beside_metadata(object),
        None => Vec::new(),
    };
    if let Some(metadata) = object.get_mut("metadata") {
        decode::settle_metadata(metadata);
    }
    Ok(unknown)
}

/// What an object has of which nothing is known, by name.
fn fields_beside_metadata(object: &Value) -> Vec<String> {
    let fields = object.as_object().into_iter().flat_map(|fields| fields.keys());
    fields.filter(|field| !["apiVersion", "kind", "metadata"].contains(&field.as_str())).cloned().collect()
}

/// An object has each of its owners once.
fn drop_repeated_owners(object: &mut Value) -> Option<String> {
    let owners = at_mut(object, ["metadata", "ownerReferences"])?.as_array_mut()?;
    let (mut known, mut repeated) = (Vec::new(), Vec::new());
    owners.retain(|owner| {
        let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
        let is_new = !known.contains(owner);
        if is_new {
            known.push(owner.clone());
        } else if !repeated.contains(&uid) {
            repeated.push(uid);
        }
        is_new
    });
    if repeated.is_empty() {
        return None;
    }
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
         reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        repeated.join(", ")
    ))
}

fn cannot_be_handled(kind: &str, version: &str, why: &str) -> StatusError {
    StatusError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Request, header};
    use http_body_util::{BodyExt, Full};
    use tower::ServiceExt;

    use super::*;
    use crate::ApiServer;

    async fn check(server: &ApiServer, path: &str, media_type: &str, body: &[u8], expected: (u16, &str)) {
        let request = Request::post(path).header(header::CONTENT_TYPE, media_type);
        let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
        let response = server.service().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let answer: Value = serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!((code, answer["message"].as_str().unwrap_or_default()), expected, "{path} {media_type}");
    }

    #[tokio::test(start_paused = true)]
    async fn media_types_are_refused_in_the_words_of_the_real_server() {
        let server = ApiServer::new();
        let all = "the body of the request was in an unknown format - accepted media types include: application/json, \
                   application/yaml, application/vnd.kubernetes.protobuf";
        let text = "the body of the request was in an unknown format - accepted media types include: application/json, \
                    application/yaml";
        let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "foos.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object" } } }] } });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let body = serde_json::to_vec(&definition).unwrap();
        check(&server, definitions, "application/json", &body, (201, "")).await;
        let foos = "/apis/example.com/v1/namespaces/default/foos";
        check(&server, foos, proto::MEDIA_TYPE, b"", (415, text)).await;
        check(&server, foos, "application/foo", b"", (415, all)).await;
        let config_maps = "/api/v1/namespaces/default/configmaps";
        check(&server, config_maps, "application/cbor", b"", (415, all)).await;
        let why = "the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to \
                   be a protobuf message, expected prefix [107 56 115 0]";
        check(&server, config_maps, proto::MEDIA_TYPE, b"abc", (400, why)).await;
        let cut_off = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x03\x0a\x05z";
        let why = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ConfigMap.metadata: unexpected EOF";
        check(&server, config_maps, proto::MEDIA_TYPE, cut_off, (400, why)).await;
        let whole = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a";
        check(&server, config_maps, proto::MEDIA_TYPE, whole, (201, "")).await;
    }
}
