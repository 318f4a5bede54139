//! Decodes objects again after webhooks and policies have changed them, into the type of the request.
//!
//! Upstream: `callAttrMutatingHook` in `k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go`, which
//! decodes the patched JSON into the type of the request.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    admission::Attributes,
    crd,
    decode::{self, Integers},
    defaulting,
    registry::{Kind, TypeMeta},
    request::Operation,
    schema::Schema,
    status::StatusError,
};

/// Makes an object conform to its type again: unknown fields are dropped, and new values get defaults.
///
/// Runs after each webhook or policy that changed the object, so that the next one sees a complete object.
///
/// Errors are 500, because the client's object was valid.
///
/// # Errors
/// Fails if the object or one of its values has the wrong type.
pub(super) fn redecode(attributes: &Attributes<'_>, object: &mut Value) -> Result<(), StatusError> {
    decode::check_type_meta(object).map_err(|why| StatusError::internal(&why))?;
    let meta = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(meta) = meta.filter(|meta| meta.get("managedFields") == Some(&json!([]))) {
        // An empty list resets `managedFields`.
        meta.remove("managedFields");
    }
    let resource = &attributes.info.resource;
    let own = attributes.own_type();
    if resource.custom.is_some() && own == resource.type_meta() {
        return redecode_custom(attributes, object);
    }
    redecode_built_in(attributes, &own, object)
}

/// Decodes a built-in object. A changed kind is an error even if it is a known one.
fn redecode_built_in(attributes: &Attributes<'_>, own: &TypeMeta, object: &mut Value) -> Result<(), StatusError> {
    let (kind, api_version) = (own.kind.as_str(), own.api_version.as_str());
    let text = |field: &str, own: &str| match object[field].as_str() {
        None | Some("") => own.to_owned(),
        Some(given) => given.to_owned(),
    };
    let (given_kind, given_api) = (text("kind", kind), text("apiVersion", api_version));
    let is_other = (given_kind.as_str(), given_api.as_str()) != (kind, api_version);
    if let Some(schema) = Schema::built_in(&given_api, &given_kind) {
        decode::decode_typed(schema, object, None, Integers::InRange).map_err(|why| StatusError::internal(&why))?;
    }
    if is_other {
        let why =
            format!("{given_kind} in version {given_api:?} cannot be handled as a {kind} in version {api_version:?}");
        if Schema::built_in(&given_api, &given_kind).is_none() {
            return Err(StatusError::internal(&why));
        }
        return Err(StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
    }
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
    if attributes.operation == Operation::Connect {
        return Ok(());
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let resource = &attributes.info.resource;
    let is_own = resource.kind_name() == kind && resource.api_version() == api_version;
    let own_kind = if is_own { resource.kind } else { &Kind::DEFAULT };
    defaulting::default_decoded(defaulting::Type { api_version, kind_name: kind, kind: own_kind }, object);
    Ok(())
}

/// Decodes a custom object: prunes it, and sets defaults. A webhook or policy may not remove the kind or change the
/// version.
fn redecode_custom(attributes: &Attributes<'_>, object: &mut Value) -> Result<(), StatusError> {
    let resource = &attributes.info.resource;
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (kind, api_version, own) = (text("kind"), text("apiVersion"), resource.api_version());
    if kind.is_empty() {
        return Err(StatusError::internal("the patched object has no kind"));
    }
    if api_version != own {
        let why = format!("the patched object must be of {own}, found {api_version:?}");
        return Err(StatusError::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
    }
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    // Validation rejects what clients set and what has a wrong type. The server sets the rest itself.
    if let Some(fields) = object["metadata"].as_object_mut() {
        let is_typed = |name: &str, value: &Value| decode::typed_metadata(&json!({ name: value })).is_ok();
        fields.retain(|name, value| Kind::CLIENT_METADATA.contains(&name.as_str()) || is_typed(name, value));
    }
    decode::normalize_metadata(&mut object["metadata"]);
    if let Some(schema) = resource.schema() {
        crd::prune(schema, object);
        crd::default(schema, object);
    }
    Ok(())
}
