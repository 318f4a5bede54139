//! Validation of an object, by the rules of its kind or the schema of its CRD.
//!
//! Errors come from four places: metadata, the schema and rules of a CRD, declarative tags
//! (`declared`), and the functions of the kind. All of them are collected into one response.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    autoscaling, crd, decode, go,
    json_path::value_at,
    kinds::{core::event, policy::pod_disruption_budget},
    registry::{Kind, Resource},
    request::RequestInfo,
    schema::Schema,
    state::State,
    status::{FieldError, StatusError},
    validation::{self, declared},
    write::{Write, admin_access, body::identity, prepare},
};

/// Validates changes of fields that the server resets later.
///
/// It runs on the object as the client sent it, so that an attempt to change an immutable field is reported and not
/// silently undone.
pub(super) fn change(state: &State, info: &RequestInfo, write: &Write) -> Vec<FieldError> {
    let mut errors = admin_access::errors(state, info, write.old(), &write.object);
    // A custom object's status is written without metadata.
    let has_metadata = info.resource.custom.is_none() || info.subresource != "status";
    if let Some(old) = write.old().filter(|_| has_metadata) {
        errors.extend(changes_of_metadata(info, old, &write.object));
    }
    errors
}

/// Validates an object, and adds warnings to the response. `errors` were found before and are reported first.
///
/// An object of another type than the path is rejected before its fields are validated. The order of field errors
/// within one `Invalid` is not guaranteed.
///
/// Warnings are added only if the object is valid.
///
/// # Errors
/// Fails with `Invalid` and all field errors.
pub(super) fn validate(
    state: &State,
    info: &RequestInfo,
    write: &Write,
    errors: Vec<FieldError>,
) -> Result<(), StatusError> {
    let (old, object) = (write.old(), &write.object);
    if let Some(error) = identity::of_another_type(&info.resource, object) {
        return Err(error);
    }
    validate_own(state.clock.now(), info, write, errors)?;
    // Upstream has no warnings for a write of the status.
    if write.is_new() || info.subresource != "status" {
        info.round.warn_all(validation::warnings::warnings(&info.resource, old, object));
    }
    warn_of_finalizers(info, old, object);
    Ok(())
}

/// Warns about new finalizers of custom objects that have no domain.
///
/// Built-in kinds reject such finalizers instead, apart from a few.
fn warn_of_finalizers(info: &RequestInfo, old: Option<&Value>, object: &Value) {
    if info.resource.custom.is_none() || !info.subresource.is_empty() {
        return;
    }
    let names = |object: &Value| -> Vec<String> {
        let list = value_at(object, ["metadata", "finalizers"]).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let names_before = old.map(names).unwrap_or_default();
    let standard = ["orphan", "foregroundDeletion", "kubernetes"];
    let new = names(object).into_iter().filter(|name| !names_before.contains(name));
    let undomained = new.filter(|name| !name.contains('/') && !standard.contains(&name.as_str()));
    info.round.warn_all(undomained.map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental \
                 conflicts with other finalizer writers"
        )
    }));
}

/// Validates metadata and fields of an object. Its type is already known to match the path of the request.
///
/// The subresource selects the functions of the kind: `validate_part` for a part such as `resize`, `validate_status` for
/// the status, and otherwise those of the whole object. Kinds with `validates_spec_only` skip an unchanged spec. A
/// `HorizontalPodAutoscaler` is converted to `autoscaling/v2` first, which has all of its rules.
fn validate_own(
    now: Timestamp,
    info: &RequestInfo,
    write: &Write,
    mut field_errors: Vec<FieldError>,
) -> Result<(), StatusError> {
    let (old, object, resource) = (write.old(), &write.object, &info.resource);
    let rules = resource.rules;
    // kube-apiserver validates the metadata of Events and PodDisruptionBudgets only if the rest is valid. The metadata
    // of a custom object has to decode first (`getObjectMeta` of
    // `apiextensions-apiserver/pkg/registry/customresource/validator.go`).
    if resource.custom.is_some()
        && let Err(why) = decode::typed_metadata(&object["metadata"])
    {
        return refuse(resource, object, &[FieldError::invalid("metadata", &object["metadata"], &why)]);
    }
    let is_metadata_last = [&event::KIND, &pod_disruption_budget::KIND].into_iter().any(|kind| resource.is(kind));
    let of_metadata = if is_metadata_last { Vec::new() } else { validation::metadata(resource, object) };
    if let (Some(custom), Some(schema)) = (&resource.custom, resource.schema()) {
        // Upstream skips CEL rules if the object has no name.
        let mut errors = of_metadata;
        // JSON distinguishes 1 from 1.0; the result of an apply does not.
        let mut whole = object.clone();
        go::whole_numbers(&mut whole);
        errors.extend(validated(schema, info, if info.applies() { &whole } else { object }, old));
        errors.extend(wrong_in_scale(info, object));
        let object = &whole;
        if !custom.rules().is_empty() {
            let forgiven = custom.rules().validate(schema, object, old, &mut errors);
            info.round
                .warn_all(forgiven.iter().map(|field_error| format!("{}: {}", field_error.field, field_error.message)));
        }
        field_errors.extend(errors);
    } else {
        field_errors.extend(of_metadata);
    }
    if let Some(old) = old.filter(|_| prepare::writes_part(resource, &info.subresource)) {
        field_errors.extend(Kind::errors(|errors| {
            declared::validate(Some(old), object, errors);
            (rules.validate_part)(&info.subresource, old, object, errors);
        }));
        return refuse(resource, object, &field_errors);
    }
    let whole = info.subresource.is_empty() || rules.validates_subresources;
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
            change_errors(info, old, object)
        } else {
            let validate = rules.validate_create.unwrap_or(rules.validate);
            Kind::errors(|errors| {
                declared::validate(None, object, errors);
                validate(object, errors);
            })
        };
        field_errors.extend(found);
    }
    if let Some(old) = old.filter(|_| info.subresource == "status") {
        field_errors.extend(Kind::errors(|errors| {
            declared::validate_status(old, object, errors);
            (rules.validate_status)(old, object, errors);
            (rules.validate_status_at)(now, old, object, errors);
        }));
    }
    if is_metadata_last && field_errors.is_empty() {
        field_errors = validation::metadata(resource, object);
    }
    refuse(resource, object, &field_errors)
}

/// Returns the errors of a changed object.
///
/// Order: declarative validation, rules of the object, rules of the change, rules of the subresource.
fn change_errors(info: &RequestInfo, old: &Value, new: &Value) -> Vec<FieldError> {
    let rules = info.resource.rules;
    Kind::errors(|errors| {
        declared::validate(Some(old), new, errors);
        (rules.validate)(new, errors);
        (rules.validate_update)(old, new, errors);
        (rules.validate_subresource)(&info.subresource, old, new, errors);
    })
}

/// Validates a custom object by its schema. A write of the status validates only the status.
///
/// Field paths start at the root in both cases.
fn validated(schema: Schema<'_>, info: &RequestInfo, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if info.subresource == "status" {
        crd::validate_status(schema, object, old)
    } else {
        crd::validate(schema, object, old)
    }
}

/// Validates the fields behind the subresource `scale` of a custom kind.
///
/// A write of the status does not validate the desired replicas.
fn wrong_in_scale(info: &RequestInfo, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let scale = info.resource.custom.as_ref().map(|custom| &custom.version["subresources"]["scale"]);
    if let Some(scale) = scale.filter(|scale| scale.is_object()) {
        if info.subresource != "status" {
            errors.extend(crd::replicas::wrong_in_spec(scale, object));
        }
        errors.extend(crd::replicas::wrong_in_status(scale, object));
    }
    errors
}

/// Validates changes of metadata (`ValidateObjectMetaAccessorUpdate`).
///
/// Labels, annotations and owner references are validated here as well, as upstream validates them in both places.
/// Metadata that the subresource does not write has no errors.
pub(crate) fn changes_of_metadata(info: &RequestInfo, old: &Value, new: &Value) -> Vec<FieldError> {
    let (was, is) = (&old["metadata"], &new["metadata"]);
    let mut field_errors = Vec::new();
    let immutable = |field: &str| FieldError::invalid(&format!("metadata.{field}"), &is[field], "field is immutable");
    if was["name"] != is["name"] {
        field_errors.push(immutable("name"));
    }
    let finalizers = |meta: &Value| meta["finalizers"].as_array().cloned().unwrap_or_default();
    let finalizers_before = finalizers(was);
    if was["deletionTimestamp"].is_string() && finalizers(is).iter().any(|name| !finalizers_before.contains(name)) {
        let why = "no new finalizers can be added if the object is being deleted";
        field_errors.push(FieldError::forbidden("metadata.finalizers", why));
    }
    // An absent value is not an error, nor is a changed deletion timestamp: the stored values are kept.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = &is[field];
        let is_kept = value.is_null() || *value == "" || (field == "deletionTimestamp" && was[field].is_string());
        if was[field] != *value && !is_kept {
            field_errors.push(immutable(field));
        }
    }
    let unchanged_fields = prepare::kept_metadata(&info.resource, &info.subresource);
    let is_of = |field_error: &FieldError, fields: &[&str]| {
        let field = field_error.field.strip_prefix("metadata.").unwrap_or_default();
        fields.iter().any(|prefix| field.starts_with(prefix))
    };
    let judged = validation::metadata(&info.resource, new).into_iter();
    field_errors.extend(judged.filter(|field_error| is_of(field_error, &["labels", "annotations", "ownerReferences"])));
    field_errors.retain(|field_error| !is_of(field_error, unchanged_fields));
    field_errors
}

/// Returns `Invalid` if there are errors.
///
/// The group in the error may differ from that of the resource (`error_group`).
fn refuse(resource: &Resource, object: &Value, field_errors: &[FieldError]) -> Result<(), StatusError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let group = resource.rules.error_group.unwrap_or(&resource.id.group);
    StatusError::unless_valid(group, resource.kind(), name, field_errors)
}
