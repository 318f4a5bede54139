//! Validation of an object, by the rules of its kind or the schema of its CRD.
//!
//! Errors come from four places: metadata, the schema and rules of a CRD, declarative tags (`declared`), and the
//! functions of the kind. With `validates_metadata_last`, the metadata of a new object is validated only if the rest is
//! valid.
//!
//! Metadata is validated in each write: changes of immutable fields in `immutable.rs`, before the defaults, and the rest by
//! `validation::metadata`. A write of a built-in kind also runs these functions, in this order. Names without `::` are
//! fields of `Kind::validation`:
//!
//! | write of | functions |
//! |---|---|
//! | a new object | `declared::validate`, `validate`, `validate_create` |
//! | an object | `declared::validate`, `validate`, `validate_update`, `validate_subresource` |
//! | `status` | `declared::validate_status`, `validate_status`, `validate_status_at` |
//! | another subresource, with a row in `Strategy::parts` | `declared::validate`, and `Part::validate` |
//! | another subresource | none |
//!
//! With `validates_subresources`, writes of `status` and of subresources without a row in `Strategy::parts` run the
//! functions of an object first. With `validates_spec_only`, an update that changes neither name nor spec skips the
//! functions of an object.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    crd, decode,
    field_errors::{Errors, FieldError},
    go,
    json_path::value_at,
    metadata::has_domain,
    registry::{Custom, Resource, kind::Part},
    request::RequestInfo,
    status::StatusError,
    store::Store,
    validation::{self, declared},
    write::Write,
};

/// Validates an object, and adds warnings to the response if it is valid. `errors` were found before, and are reported
/// together with the errors of validation. A custom object of another type than the path, or with metadata that does
/// not decode, is rejected for that alone. The order of field errors within one `Invalid` is not guaranteed.
///
/// # Errors
/// Fails with `Invalid`, which has the field errors.
pub(super) fn validate(store: &Store, info: &RequestInfo, write: &Write, errors: Errors) -> Result<(), StatusError> {
    let (old, object) = (write.old(), &write.object);
    if let Some(error) = type_mismatch_error(&info.resource, object) {
        return Err(error);
    }
    validate_own(store.clock.now(), info, write, errors)?;
    // Upstream has no warnings for a write of the status.
    if write.is_new() || !info.subresource.is_status() {
        info.round.warn_all(validation::warnings::warnings(&info.resource, old, object));
    }
    warn_about_finalizers(info, old, object);
    Ok(())
}

/// Returns the error of a custom object of another type, which comes after validation
/// (`customResourceValidator.ValidateTypeMeta`). `Invalid` with the group and kind of the body, as upstream. `None` for
/// built-in kinds, whose type was set on decoding.
pub(super) fn type_mismatch_error(resource: &Resource, object: &Value) -> Option<StatusError> {
    let mut errors = Errors::default();
    for (field, expected) in [("kind", resource.kind_name().to_owned()), ("apiVersion", resource.api_version())] {
        let found = &object[field];
        if *found != expected.as_str() {
            errors.invalid(field, found, &format!("must be {expected}"));
        }
    }
    if resource.custom.is_none() || errors.is_empty() {
        return None;
    }
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Some(StatusError::invalid(group, &kind, &text(&object["metadata"]["name"]), &errors))
}

/// Warns about new finalizers of custom objects that have no domain. Built-in kinds reject such finalizers instead,
/// apart from a few.
fn warn_about_finalizers(info: &RequestInfo, old: Option<&Value>, object: &Value) {
    if info.resource.custom.is_none() || !info.subresource.is_main() {
        return;
    }
    let names = |object: &Value| -> Vec<String> {
        let list = value_at(object, ["metadata", "finalizers"]).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names_before: HashSet<String> = old.map(names).unwrap_or_default().into_iter().collect();
    let new = names(object).into_iter().filter(|name| !names_before.contains(name));
    let without_domain = new.filter(|name| !has_domain(name));
    info.round.warn_all(
        without_domain.map(|name| format!("metadata.finalizers: {name:?}: prefer a name like example.com/a")),
    );
}

/// Validates metadata and fields of an object. Its type is already known to match the path of the request.
fn validate_own(now: Timestamp, info: &RequestInfo, write: &Write, mut errors: Errors) -> Result<(), StatusError> {
    let (old, object, resource) = (write.old(), &write.object, &info.resource);
    // The metadata of a custom object has to decode first (`getObjectMeta` of
    // `apiextensions-apiserver/pkg/registry/customresource/validator.go`).
    if resource.custom.is_some()
        && let Err(why) = decode::typed_metadata(&object["metadata"])
    {
        let error = FieldError::invalid("metadata", &object["metadata"], &why);
        return invalid_unless_empty(resource, object, &[error]);
    }
    let is_metadata_last = write.is_new() && resource.kind.validation.validates_metadata_last;
    let metadata = if is_metadata_last { Errors::default() } else { validation::metadata(resource, object) };
    errors.extend(if let Some(custom) = &resource.custom {
        custom_errors(info, custom, metadata, old, object)
    } else {
        let of_fields = match (resource.part(info.subresource), old) {
            (Some(part), Some(old)) => part_errors(part, old, object),
            _ => built_in_errors(now, info, old, object),
        };
        metadata.into_iter().chain(of_fields).collect()
    });
    if is_metadata_last && errors.is_empty() {
        errors = validation::metadata(resource, object);
    }
    invalid_unless_empty(resource, object, &errors)
}

/// Returns the errors of a custom object: errors of its metadata, its schema, its subresource `scale` and its CEL
/// rules. `errors` has the errors of the metadata. Upstream skips the CEL rules of an object without a name.
fn custom_errors(
    info: &RequestInfo,
    custom: &Custom,
    mut errors: Errors,
    old: Option<&Value>,
    object: &Value,
) -> Errors {
    let Some(schema) = info.resource.schema() else { return errors };
    // JSON distinguishes 1 from 1.0; the result of an apply does not.
    let mut whole = object.clone();
    go::whole_numbers(&mut whole);
    let validate = if info.subresource.is_status() { crd::validate_status } else { crd::validate };
    errors.extend(validate(schema, if info.applies() { &whole } else { object }, old));
    errors.extend(scale_errors(info, custom, object));
    if !custom.rules().is_empty() {
        let tolerated = custom.rules().validate(schema, &whole, old, &mut errors);
        let warnings = tolerated.iter().map(|field_error| format!("{}: {}", field_error.field, field_error.message));
        info.round.warn_all(warnings);
    }
    errors
}

/// Returns the errors of a write through a subresource for a part of the object, such as `resize` of Pods.
fn part_errors(part: &Part, old: &Value, new: &Value) -> Errors {
    Errors::collect(|errors| {
        declared::validate(Some(old), new, errors);
        (part.validate)(old, new, errors);
    })
}

/// Returns the errors of an object of a built-in kind, from the functions in the table at the head of this file. An
/// object is converted to the storage version first, which has all rules of the kind.
fn built_in_errors(now: Timestamp, info: &RequestInfo, old: Option<&Value>, object: &Value) -> Errors {
    let kind = info.resource.kind;
    let (of_new, of_old);
    let (old, object) = if let Some(storage) = kind.storage {
        let convert = |object: &Value| (storage.convert)(storage.api_version, object);
        (of_new, of_old) = (convert(object), old.map(convert));
        (of_old.as_ref(), &of_new)
    } else {
        (old, object)
    };
    let is_whole = info.subresource.is_main() || kind.validation.validates_subresources;
    let is_unchanged =
        |old: &Value| old["spec"] == object["spec"] && old["metadata"]["name"] == object["metadata"]["name"];
    let is_skipped = kind.validation.validates_spec_only && old.is_some_and(is_unchanged);
    let mut errors = match old {
        _ if !is_whole || is_skipped => Errors::default(),
        _ => Errors::collect(|errors| {
            declared::validate(old, object, errors);
            (kind.validation.validate)(object, errors);
            match old {
                None => (kind.validation.validate_create)(object, errors),
                Some(old) => {
                    (kind.validation.validate_update)(old, object, errors);
                    (kind.validation.validate_subresource)(info.subresource, old, object, errors);
                }
            }
        }),
    };
    if let Some(old) = old.filter(|_| info.subresource.is_status()) {
        errors.extend(Errors::collect(|errors| {
            declared::validate_status(old, object, errors);
            (kind.validation.validate_status)(old, object, errors);
            (kind.validation.validate_status_at)(now, old, object, errors);
        }));
    }
    errors
}

/// Returns the errors of the fields behind the subresource `scale` of a custom kind. A write of the status does not
/// validate the desired replicas.
fn scale_errors(info: &RequestInfo, custom: &Custom, object: &Value) -> Errors {
    let mut errors = Errors::default();
    let scale = &custom.version["subresources"]["scale"];
    if scale.is_object() {
        if !info.subresource.is_status() {
            errors.extend(crd::replicas::wrong_in_spec(scale, object));
        }
        errors.extend(crd::replicas::wrong_in_status(scale, object));
    }
    errors
}

/// Returns `Invalid` if there are errors.
fn invalid_unless_empty(resource: &Resource, object: &Value, field_errors: &[FieldError]) -> Result<(), StatusError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let group = resource.kind.requests.error_group.unwrap_or(&resource.id.group);
    StatusError::unless_valid(group, resource.kind_name(), name, field_errors)
}
