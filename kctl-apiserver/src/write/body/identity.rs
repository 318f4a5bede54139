//! Checks that an object has the kind and version of the path that it was sent to.
//!
//! A request for a built-in kind may omit `apiVersion` and `kind`. One for a custom kind may not, since its body is
//! decoded without a Go type.

use serde_json::{Value, json};

use super::BodyError;
use crate::{
    decode,
    registry::Resource,
    request::{RequestInfo, Verb},
    status::StatusError,
};

/// The type in `apiVersion` and `kind` of a custom object.
pub(crate) enum DeclaredType {
    /// The type of the path.
    Own,
    /// The kind of the path in this version.
    OtherVersion(String),
    /// Another group or kind. Found after decoding, so such an object is not pruned.
    Other,
}

impl DeclaredType {
    /// Reads the type of an object. An absent version is the empty version of the core group.
    pub(crate) fn from_object(resource: &Resource, object: &Value) -> Self {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (object["kind"] == resource.kind_name() && group == resource.id.group, version == resource.version) {
            (true, true) => Self::Own,
            (true, false) => Self::OtherVersion(version.to_owned()),
            (false, _) => Self::Other,
        }
    }
}

/// Checks the type of an object. A built-in object gets the type of the path. A custom one keeps its type until it is
/// validated. A `null` body of a built-in kind is an empty object.
pub(crate) fn identify(info: &RequestInfo, object: &mut Value) -> Result<(), BodyError> {
    let resource = &info.resource;
    if object.is_null() && resource.custom.is_none() {
        *object = json!({});
    }
    if resource.custom.is_some() {
        return require_type_meta(info, object);
    }
    if info.verb == Verb::Patch {
        decode::check_type_meta(object).map_err(BodyError::Content)?;
    }
    identify_as(object, resource.kind_name(), &resource.api_version()).map_err(BodyError::Identity)
}

/// Checks that an object has no other type than this built-in one, and sets it.
pub(crate) fn identify_as(object: &mut Value, kind: &str, api_version: &str) -> Result<(), StatusError> {
    let given_kind = type_meta_field(object, "kind");
    let given_version = read_version(type_meta_field(object, "apiVersion"))?;
    // Absent fields get the values of the path.
    let given_kind = if given_kind.is_empty() { kind } else { given_kind };
    let given_version = if given_version.is_empty() { api_version } else { given_version };
    if (given_kind, given_version) != (kind, api_version) {
        let why = format!("the body must be a {kind} of {api_version}, found {given_kind:?} of {given_version:?}");
        return Err(StatusError::bad_request(why));
    }
    let Value::Object(map) = object else {
        return Err(StatusError::bad_request(format!("the body must be a {kind}: must be an object")));
    };
    map.insert("kind".into(), kind.into());
    map.insert("apiVersion".into(), api_version.into());
    Ok(())
}

/// Returns `kind` or `apiVersion`. Like Go's decoder, ignores the case of the field's name. The exact spelling takes
/// precedence. A value that is not a string counts as absent.
pub(crate) fn type_meta_field<'a>(object: &'a Value, field: &str) -> &'a str {
    let found = object.get(field).or_else(|| {
        let mut fields = object.as_object()?.iter();
        fields.find(|(name, _)| name.eq_ignore_ascii_case(field)).map(|(_, value)| value)
    });
    found.and_then(Value::as_str).unwrap_or_default()
}

/// Returns group and version of an object without a leading slash (`ParseGroupVersion` of
/// `k8s.io/apimachinery/pkg/runtime/schema/group_version.go`). More than one slash, or a slash at the end, is 400.
pub(crate) fn read_version(api_version: &str) -> Result<&str, StatusError> {
    let version = api_version.strip_prefix('/').unwrap_or(api_version);
    if api_version.matches('/').count() > 1 || version.ends_with('/') {
        let why = format!("apiVersion: must be group/version or version, found {api_version:?}");
        return Err(StatusError::bad_request(why));
    }
    Ok(version)
}

/// Checks that a custom object has `apiVersion` and `kind` (`unstructuredJSONScheme` of
/// `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`). A patch can remove `apiVersion`, which is 500
/// upstream.
fn require_type_meta(info: &RequestInfo, object: &Value) -> Result<(), BodyError> {
    decode::check_type_meta(object).map_err(BodyError::Content)?;
    let api_version = &object["apiVersion"];
    if api_version.as_str().is_some_and(|version| version.matches('/').count() > 1) {
        return Err(BodyError::Content(format!("apiVersion: must be group/version, found {api_version}")));
    }
    if object["kind"].as_str().unwrap_or_default().is_empty() {
        return Err(BodyError::Content("kind: Required value".into()));
    }
    if api_version.is_null() && object.get("apiVersion").is_some() {
        return Err(BodyError::Content("apiVersion: must be a string, found null".into()));
    }
    if info.verb == Verb::Patch && api_version.as_str().is_none_or(str::is_empty) {
        return Err(BodyError::Identity(StatusError::internal("apiVersion: Required value")));
    }
    Ok(())
}

/// Checks that the body of a create or an update has the version of the path. Patches pass: their object has been
/// converted to the version of the path.
pub(crate) fn check_api_version(info: &RequestInfo, object: &Value) -> Result<(), StatusError> {
    let (api_version, expected) = (object["apiVersion"].as_str().unwrap_or_default(), info.resource.api_version());
    let api_version = api_version.strip_prefix('/').unwrap_or(api_version);
    if info.verb == Verb::Patch || api_version == expected {
        return Ok(());
    }
    Err(StatusError::bad_request(format!("apiVersion: must be {expected}, found {api_version:?}")))
}
