//! Defaults of an object: the defaults of its CRD, or of its built-in kind (`Defaults::set`).

use serde_json::Value;

use crate::{crd, defaulting, json_path::set, registry::Resource, request::RequestInfo};

/// Sets the defaults of fields that were left out. Parts that equal the stored object have their defaults already. Null
/// values of an applied custom object are kept until it is validated.
pub(crate) fn default(info: &RequestInfo, object: &mut Value, stored: Option<&Value>) {
    let resource = &info.resource;
    match resource.schema() {
        Some(schema) if resource.custom.is_some() && info.applies() => crd::default_with_nulls(schema, object),
        Some(schema) if resource.custom.is_some() => crd::default(schema, object),
        _ => {
            if let Some(stored) = stored {
                (resource.kind.defaults.keep_before)(stored, object);
                keep_set_once(resource, object, |object| default_built_in(resource, object, Some(stored)));
            } else {
                default_built_in(resource, object, None);
            }
        }
    }
    if let Some(storage) = resource.kind.storage {
        (storage.normalize)(object);
    }
}

/// Sets the defaults of a built-in kind in the version of the resource. `stored` bounds the work: an unchanged part of
/// the object is skipped.
fn default_built_in(resource: &Resource, object: &mut Value, stored: Option<&Value>) {
    let api_version = resource.api_version();
    defaulting::default_object(type_of(resource, &api_version), object, stored);
}

/// Returns the type whose defaults apply.
fn type_of<'a>(resource: &'a Resource, api_version: &'a str) -> defaulting::Type<'a> {
    defaulting::Type { api_version, kind_name: resource.kind_name(), kind: resource.kind }
}

/// Sets the defaults of an existing object, except for defaults of the status that only a new object gets. `set_once`
/// names a field of the status, such as the phase.
fn keep_set_once(resource: &Resource, object: &mut Value, default: impl FnOnce(&mut Value)) {
    let Some(field) = resource.kind.defaults.set_once else { return default(object) };
    let before = object["status"].get(field).cloned();
    default(object);
    set(&mut object["status"], field, before);
}

/// Sets the defaults that decoding gives a new object, which webhooks see. For built-in kinds these are fewer than the
/// defaults of stored objects.
pub(in crate::write) fn default_new_object(info: &RequestInfo, object: &mut Value) {
    let resource = &info.resource;
    if resource.custom.is_some() || resource.kind.storage.is_some() {
        default(info, object, None);
    } else {
        let api_version = resource.api_version();
        defaulting::default_decoded(type_of(resource, &api_version), object);
    }
}

/// Sets the defaults of decoding like [`default_new_object`], for an existing object.
pub(in crate::write) fn default_changed_object(info: &RequestInfo, object: &mut Value) {
    keep_set_once(&info.resource, object, |object| default_new_object(info, object));
}
