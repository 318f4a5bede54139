//! Decodes the body of a create or an update into an object that can be stored.
//!
//! Decoding happens in four steps: bytes to JSON (`decode::body`), identity (`identity`), types and unknown fields by
//! the schema, and the report of unknown and duplicate fields.

pub(crate) mod identity;

use std::{borrow::Cow, collections::HashSet};

use serde_json::{Value, json};

use self::identity::DeclaredType;
use crate::{
    crd,
    decode::{self, Integers},
    go,
    json_path::at_mut,
    patch, proto,
    registry::{Custom, Resource, kind::Subresource},
    request::RequestInfo,
    schema::Schema,
    status::{FieldError, StatusError},
};

/// The supported media types. Custom resources have no protobuf. CBOR is behind a feature gate upstream and is not
/// supported.
const ACCEPTED: [&str; 3] = ["application/json", "application/yaml", proto::MEDIA_TYPE];

/// Decodes the body of a create or an update, and fits it to the kind of the path.
///
/// # Errors
/// 415 for a media type that the kind does not support. 400 if the body does not decode, is of another kind, or has
/// unknown fields in a strict request.
pub(crate) fn read(info: &RequestInfo) -> Result<Value, StatusError> {
    if info.resource.custom.is_some() && media_type(info) == proto::MEDIA_TYPE {
        return Err(StatusError::unsupported_media_type("application/json, application/yaml"));
    }
    let object = read_built_in(info, info.resource.kind_name())?;
    let fitted = fit_and_report(info, object, None, json_body(info));
    fitted.map(|(object, _dropped)| object).map_err(|error| error.into_body_error(info.resource.kind_name()))
}

/// Returns the body if it is JSON, in which duplicate fields can be found.
fn json_body(info: &RequestInfo) -> &[u8] {
    if media_type(info) == "application/json" { &info.body } else { &[] }
}

/// Decodes a body whose kind may differ from the resource's: the body of a subresource, or options. Types of fields are
/// not checked.
///
/// # Errors
/// 415 for an unsupported media type, 400 if the body does not parse.
pub(crate) fn read_built_in(info: &RequestInfo, kind: &str) -> Result<Value, StatusError> {
    if !ACCEPTED.contains(&media_type(info).as_ref()) {
        return Err(StatusError::unsupported_media_type(&ACCEPTED.join(", ")));
    }
    decode::body(&media_type(info), &info.body, kind).map_err(StatusError::bad_request)
}

/// Returns the media type in lower case; JSON by default. Parameters such as `charset` are ignored.
fn media_type(info: &RequestInfo) -> Cow<'_, str> {
    match info.header("content-type").split(';').next().unwrap_or_default().trim() {
        "" => "application/json".into(),
        media_type if media_type.contains(|letter: char| letter.is_ascii_uppercase()) => {
            media_type.to_ascii_lowercase().into()
        }
        media_type => media_type.into(),
    }
}

/// The reason why an object does not fit its kind.
pub(crate) enum BodyError {
    /// The object has another kind or version than the path.
    Identity(StatusError),
    /// A value of a wrong type, or an unknown field in a strict request. The message, whose prefix depends on the verb.
    Content(String),
}

impl BodyError {
    /// Returns the response: wrong content is a 400 `BadRequest` that names the kind.
    fn into_body_error(self, kind: &str) -> StatusError {
        match self {
            Self::Identity(status_error) => status_error,
            Self::Content(why) => StatusError::bad_request(format!("the body must be a {kind}: {why}")),
        }
    }

    /// Returns the error for the result of a patch. 422 `Invalid` with the field `patch` and no kind, as upstream wraps
    /// errors of the patched object. Errors that are not 400 keep their code.
    pub(crate) fn into_patch_error(self) -> StatusError {
        let why = match self {
            Self::Identity(status_error) if status_error.code != http::StatusCode::BAD_REQUEST => return status_error,
            Self::Identity(status_error) => status_error.message,
            Self::Content(why) => why,
        };
        let field_error = FieldError::new("FieldValueInvalid", "patch", format!("Invalid value: {why}"));
        StatusError::invalid("", "", "", &[field_error])
    }
}

/// Checks the identity, types and unknown fields of an object, and returns it with the paths of its dropped fields.
/// `stored` is the stored object, and `sent` is the JSON in which duplicate fields are found; they are not looked for
/// if it is empty. After the schema, missing metadata becomes an object, unknown fields are reported, and duplicate
/// owner references are dropped with a warning.
pub(crate) fn fit_and_report(
    info: &RequestInfo,
    mut object: Value,
    stored: Option<&Value>,
    sent: &[u8],
) -> Result<(Value, Vec<String>), BodyError> {
    let resource = &info.resource;
    identity::identify(info, &mut object)?;
    // YAML is converted to JSON first: 1.0 becomes an integer there. In JSON it remains a float.
    if media_type(info) == "application/yaml" {
        go::whole_numbers(&mut object);
    }
    let unknown = match (&resource.custom, resource.schema()) {
        (Some(custom), schema) => {
            if let Some(metadata) = object.get_mut("metadata").filter(|_| info.applies()) {
                decode::drop_malformed(metadata);
            }
            fit_custom(resource, custom, schema, &mut object).map_err(BodyError::Content)?
        }
        (None, Some(schema)) => {
            let is_strategic = info.header("content-type").starts_with("application/strategic-merge-patch");
            let is_merged = is_strategic || info.applies();
            let integers = if is_merged { Integers::Wrapped } else { Integers::InRange };
            let unknown = decode::decode_typed(schema, &mut object, stored, integers).map_err(BodyError::Content)?;
            if let Some(why) = (resource.kind.defaults.decode_error)(&object) {
                return Err(BodyError::Content(why));
            }
            unknown
        }
        (None, None) => Vec::new(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    // A field that is unknown to a custom kind failed the typed apply already. Without a schema, nothing is reported.
    let is_silent = info.applies() && resource.custom.is_some();
    check_fields(info, sent, if is_silent { &[] } else { &unknown })?;
    identity::check_api_version(info, &object).map_err(BodyError::Identity)?;
    info.round.warn_all(drop_duplicate_owners(&mut object));
    Ok((object, unknown))
}

/// Rejects duplicate and unknown fields or warns about them, depending on `fieldValidation`. Order: duplicates, then
/// unknown fields of the operations of a JSON patch, then unknown fields.
fn check_fields(info: &RequestInfo, sent: &[u8], unknown: &[String]) -> Result<(), BodyError> {
    let mut messages = duplicate_fields(info, sent);
    if media_type(info) == "application/json-patch+json" {
        messages.extend(patch::json::unknown_and_duplicate_fields(&info.body));
    }
    messages.extend(unknown.iter().take(decode::REPORTED_LEN_MAX).map(|path| format!("unknown field \"{path}\"")));
    report_fields(info, messages).map_err(BodyError::Content)
}

/// Rejects duplicate and unknown fields, or warns about them, by the parameter `fieldValidation`: `Strict` rejects,
/// `Warn` (the default) warns, `Ignore` does neither. In strict mode all messages are one error. The parameter was
/// validated earlier.
pub(crate) fn report_fields(info: &RequestInfo, messages: Vec<String>) -> Result<(), String> {
    match info.params.text("fieldValidation") {
        "Strict" if !messages.is_empty() => return Err(messages.join(", ")),
        "Ignore" => {}
        _ => info.round.warn_all(messages),
    }
    Ok(())
}

/// Returns a message for each duplicate field. YAML is parsed again with positions, since the decoded value has lost
/// duplicates.
fn duplicate_fields(info: &RequestInfo, sent: &[u8]) -> Vec<String> {
    if media_type(info) != "application/yaml" {
        return decode::duplicates(sent).iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    }
    let read = std::str::from_utf8(&info.body).ok().and_then(|text| decode::parse_yaml(text).ok());
    read.map(|read| read.repeated).unwrap_or_default()
}

/// Decodes the body of a subresource that has its own built-in type. The type in the body may be absent; then it is the
/// subresource's.
///
/// # Errors
/// Like [`read`], for this kind and version.
pub(crate) fn read_as(info: &RequestInfo, kind: &str, api_version: &str) -> Result<Value, StatusError> {
    let mut object = read_built_in(info, kind)?;
    // The older version has the same fields, and is accepted, too.
    if info.subresource == Subresource::Eviction && object["apiVersion"] == "policy/v1beta1" {
        object["apiVersion"] = api_version.into();
    }
    fit_type(info, &mut object, kind, api_version, json_body(info)).map_err(|error| error.into_body_error(kind))?;
    Ok(object)
}

/// Checks an object against a built-in type other than the path's. `sent` is the JSON in which duplicate fields are
/// found. Used for `Scale`, `Binding`, `Eviction` and `TokenRequest`.
pub(crate) fn fit_type(
    info: &RequestInfo,
    object: &mut Value,
    kind: &str,
    api_version: &str,
    sent: &[u8],
) -> Result<(), BodyError> {
    if object.is_null() {
        *object = json!({});
    }
    identity::identify_as(object, kind, api_version).map_err(BodyError::Identity)?;
    if media_type(info) == "application/yaml" {
        go::whole_numbers(object);
    }
    let unknown = match Schema::built_in(api_version, kind) {
        Some(schema) => decode::decode_typed(schema, object, None, Integers::InRange).map_err(BodyError::Content)?,
        None => Vec::new(),
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    check_fields(info, sent, &unknown)
}

/// Prunes a custom object by the schema of its version. Returns the dropped fields (`unstructuredSchemaCoercer`).
/// Metadata is decoded as a Go type even without a schema.
fn fit_custom(
    resource: &Resource,
    custom: &Custom,
    schema: Option<Schema<'_>>,
    object: &mut Value,
) -> Result<Vec<String>, String> {
    if let Some(metadata) = object.get_mut("metadata") {
        decode::typed_metadata(metadata)?;
    }
    // An object of another version is rejected later, after warnings about fields that its version lacks.
    let other = match DeclaredType::from_object(resource, object) {
        DeclaredType::Own => None,
        DeclaredType::OtherVersion(version) => Some(custom.schema_of(&version)),
        DeclaredType::Other => return Ok(Vec::new()),
    };
    let unknown = match other.unwrap_or(schema) {
        Some(schema) => {
            crd::fit_embedded(schema, object)?;
            let unknown = crd::prune(schema, object);
            crd::normalize_embedded(schema, object);
            unknown
        }
        // The CRD does not have the version of the object, so all fields are unknown.
        None if other.is_some() => {
            let fields = object.as_object().into_iter().flat_map(|fields| fields.keys());
            fields.filter(|field| !["apiVersion", "kind", "metadata"].contains(&field.as_str())).cloned().collect()
        }
        None => Vec::new(),
    };
    if let Some(metadata) = object.get_mut("metadata") {
        decode::normalize_metadata(metadata);
    }
    Ok(unknown)
}

/// Removes duplicate owner references and returns a warning with their uids (`dedupOwnerReferences`). Only equal
/// entries are duplicates. The warning names each uid once. References to the same owner that differ in a field are
/// left to validation.
fn drop_duplicate_owners(object: &mut Value) -> Option<String> {
    let owners = at_mut(object, ["metadata", "ownerReferences"])?.as_array_mut()?;
    // Sets, because this runs under the lock of the server, and a body may have more than 100,000 references.
    let (mut owners_seen, mut uids_seen, mut duplicates) = (HashSet::new(), HashSet::new(), Vec::new());
    owners.retain(|owner| {
        let is_new = owners_seen.insert(owner.clone());
        let uid = owner["uid"].as_str().unwrap_or_default();
        if !is_new && uids_seen.insert(uid.to_owned()) {
            duplicates.push(uid.to_owned());
        }
        is_new
    });
    if duplicates.is_empty() {
        return None;
    }
    Some(format!("metadata.ownerReferences: dropped duplicate entries of the UIDs {}", duplicates.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    async fn check(server: &ApiServer, path: &str, media_type: &str, body: &[u8], expected: u16) {
        let (code, _) = server.send("POST", path, media_type, body.to_vec()).await;
        assert_eq!(code, expected, "{path} {media_type}");
    }

    /// Takes minutes if each reference is compared with all earlier ones.
    #[test]
    fn many_duplicate_owners_are_dropped_in_order() {
        let owner = |n: usize| json!({ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": n.to_string() });
        let owners: Vec<Value> = (0..50_000).map(owner).collect();
        let repeated = [&owners[..], &owners[..], &owners[..1]].concat();
        let mut object = json!({ "metadata": { "ownerReferences": repeated } });
        let warning = drop_duplicate_owners(&mut object).unwrap();
        assert!(object["metadata"]["ownerReferences"] == json!(owners));
        assert!(warning.ends_with(", 49998, 49999"), "{}", warning.len());
        assert_eq!(drop_duplicate_owners(&mut object), None);
    }

    #[tokio::test(start_paused = true)]
    async fn unknown_media_types_and_broken_bodies_are_rejected() {
        let server = ApiServer::new();
        let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "foos.example.com" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "foos", "kind": "Foo" },
                "versions": [{ "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object" } } }] } });
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let body = serde_json::to_vec(&definition).unwrap();
        check(&server, definitions, "application/json", &body, 201).await;
        let foos = "/apis/example.com/v1/namespaces/default/foos";
        check(&server, foos, proto::MEDIA_TYPE, b"", 415).await;
        check(&server, foos, "application/foo", b"", 415).await;
        let config_maps = "/api/v1/namespaces/default/configmaps";
        check(&server, config_maps, "application/cbor", b"", 415).await;
        check(&server, config_maps, proto::MEDIA_TYPE, b"abc", 400).await;
        let cut_off = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x03\x0a\x05z";
        check(&server, config_maps, proto::MEDIA_TYPE, cut_off, 400).await;
        let whole = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a";
        check(&server, config_maps, proto::MEDIA_TYPE, whole, 201).await;
    }
}
