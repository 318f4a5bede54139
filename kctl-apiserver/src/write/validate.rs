//! Validation of an object, by the rules of its kind or the schema of its CRD.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Write, admin_access, body::identity, prepare};
use crate::{
    admit, autoscaling, crd, go,
    registry::{Kind, Resource},
    request::Call,
    schema::Schema,
    state::State,
    status::{FieldError, StatusError},
    ways::at,
};

/// Returns the errors in what a write changes, before the server takes over what may not be changed.
pub(super) fn change(state: &State, call: &Call, write: &Write) -> Vec<FieldError> {
    let mut errors = admin_access::field_errors(state, call, write.old(), &write.object);
    // A status of a custom kind comes without metadata.
    let has_metadata = call.resource.custom.is_none() || call.subresource != "status";
    if let Some(old) = write.old().filter(|_| has_metadata) {
        errors.extend(changes_of_metadata(call, old, &write.object));
    }
    errors
}

/// Validates an object, and warns about it. `errors` were found before.
pub(super) fn validate(call: &Call, write: &Write, errors: Vec<FieldError>) -> Result<(), StatusError> {
    let (old, object) = (write.old(), &write.object);
    if let Some(error) = identity::of_another_type(&call.resource, object) {
        return Err(error);
    }
    validate_own(call, old, object, errors)?;
    // A write of the status has no warnings.
    if write.is_new() || call.subresource != "status" {
        call.session.warn_all(admit::warnings_about(&call.resource, old, object));
    }
    warn_of_finalizers(call, old, object);
    Ok(())
}

/// Warns about new finalizers of custom objects that lack a domain.
fn warn_of_finalizers(call: &Call, old: Option<&Value>, object: &Value) {
    if call.resource.custom.is_none() || !call.subresource.is_empty() {
        return;
    }
    let names = |object: &Value| -> Vec<String> {
        let list = at(object, ["metadata", "finalizers"]).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = old.map(names).unwrap_or_default();
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    let new = names(object).into_iter().filter(|name| !known.contains(name));
    let undomained = new.filter(|name| !name.contains('/') && !standard.contains(&name.as_str()));
    call.session.warn_all(undomained.map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers"
        )
    }));
}

/// The same of an object that is of the type of its path.
fn validate_own(
    call: &Call,
    old: Option<&Value>,
    object: &Value,
    mut field_errors: Vec<FieldError>,
) -> Result<(), StatusError> {
    let resource = &call.resource;
    let rules = resource.rules;
    let of_metadata = admit::metadata(resource, object);
    if let (Some(custom), Some(schema)) = (&resource.custom, resource.schema()) {
        // A missing name makes rules meaningless too.
        let mut errors = of_metadata;
        // Schemas and the subresource `scale` tell numbers by how they are written, which an apply has forgotten.
        let mut whole = object.clone();
        go::whole_numbers(&mut whole);
        errors.extend(validated(schema, call, if call.applies() { &whole } else { object }, old));
        errors.extend(wrong_in_scale(call, object));
        let object = &whole;
        if !custom.rules().is_empty() {
            let forgiven = custom.rules().validate(schema, object, old, &mut errors);
            call.session
                .warn_all(forgiven.iter().map(|field_error| format!("{}: {}", field_error.field, field_error.message)));
        }
        field_errors.extend(errors);
    } else {
        field_errors.extend(of_metadata);
    }
    if let Some(old) = old.filter(|_| prepare::writes_part(resource, &call.subresource)) {
        field_errors.extend(Kind::errors(|errors| (rules.validate_part)(&call.subresource, old, object, errors)));
        return refuse(resource, object, &field_errors);
    }
    let whole = call.subresource.is_empty() || rules.validates_subresources;
    let judged_before = rules.validates_spec_only
        && old
            .is_some_and(|old| old["spec"] == object["spec"] && old["metadata"]["name"] == object["metadata"]["name"]);
    let in_second = |object: &Value| autoscaling::converted(autoscaling::SECOND, object);
    let (of_old, of_new);
    let (object, old) = if rules.is_autoscaler {
        (of_new, of_old) = (in_second(object), old.map(in_second));
        (&of_new, of_old.as_ref())
    } else {
        (object, old)
    };
    if whole && !judged_before {
        let found = if let Some(old) = old {
            change_errors(call, old, object)
        } else {
            let validate = rules.validate_create.unwrap_or(rules.validate);
            Kind::errors(|errors| validate(object, errors))
        };
        field_errors.extend(found);
    }
    if let Some(old) = old.filter(|_| call.subresource == "status") {
        field_errors.extend(Kind::errors(|errors| (rules.validate_status)(old, object, errors)));
    }
    refuse(resource, object, &field_errors)
}

/// Returns the errors of a changed object.
fn change_errors(call: &Call, old: &Value, new: &Value) -> Vec<FieldError> {
    let rules = call.resource.rules;
    Kind::errors(|errors| {
        (rules.validate)(new, errors);
        (rules.validate_update)(old, new, errors);
        (rules.validate_subresource)(&call.subresource, old, new, errors);
    })
}

/// What the schema of a custom kind says; of a status, only the status is judged and named.
fn validated(schema: Schema<'_>, call: &Call, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if call.subresource == "status" {
        crd::validate_status(schema, object, old)
    } else {
        crd::validate(schema, object, old)
    }
}

/// What the subresource `scale` of a custom kind cannot read.
fn wrong_in_scale(call: &Call, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let scale = call.resource.custom.as_ref().map(|custom| &custom.version["subresources"]["scale"]);
    if let Some(scale) = scale.filter(|scale| scale.is_object()) {
        if call.subresource != "status" {
            errors.extend(crd::replicas::wrong_in_spec(scale, object));
        }
        errors.extend(crd::replicas::wrong_in_status(scale, object));
    }
    errors
}

/// What an update may not change in the metadata of an object (`ValidateObjectMetaAccessorUpdate`).
pub(crate) fn changes_of_metadata(call: &Call, old: &Value, new: &Value) -> Vec<FieldError> {
    let (was, is) = (&old["metadata"], &new["metadata"]);
    let mut field_errors = Vec::new();
    let mut add = |reason, message: String, field: &str| {
        field_errors.push(FieldError { reason, message, field: format!("metadata.{field}") });
    };
    if was["name"] != is["name"] {
        let name = is["name"].as_str().unwrap_or_default();
        add("FieldValueInvalid", format!("Invalid value: {name:?}: field is immutable"), "name");
    }
    let names = |meta: &Value| -> Vec<String> {
        let list = meta["finalizers"].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let known = names(was);
    let added: BTreeSet<String> = names(is).into_iter().filter(|name| !known.contains(name)).collect();
    if was["deletionTimestamp"].is_string() && !added.is_empty() {
        let shown: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let message = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        );
        add("FieldValueForbidden", message, "finalizers");
    }
    // Of an object that is being deleted the time is kept whatever is sent, and a grace that is left out.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = &is[field];
        let is_kept = value.is_null() || *value == "" || (field == "deletionTimestamp" && was[field].is_string());
        if was[field] != *value && !is_kept {
            add("FieldValueInvalid", format!("Invalid value: {value}: field is immutable"), field);
        }
    }
    let kept = prepare::kept_metadata(&call.resource, &call.subresource);
    let is_of = |field_error: &FieldError, fields: &[&str]| {
        let field = field_error.field.strip_prefix("metadata.").unwrap_or_default();
        fields.iter().any(|of| field.starts_with(of))
    };
    let judged = admit::metadata(&call.resource, new).into_iter();
    field_errors.extend(judged.filter(|field_error| is_of(field_error, &["labels", "annotations", "ownerReferences"])));
    field_errors.retain(|field_error| !is_of(field_error, kept));
    field_errors
}

fn refuse(resource: &Resource, object: &Value, field_errors: &[FieldError]) -> Result<(), StatusError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if field_errors.is_empty() {
        return Ok(());
    }
    let group = resource.rules.error_group.unwrap_or(&resource.of.group);
    Err(StatusError::invalid(group, resource.kind(), name, field_errors))
}
