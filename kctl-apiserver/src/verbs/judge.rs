//! Whether an object may be stored: reads it and what was there before, hands on the refusal.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{identity, strategy};
use crate::{
    admit::rules,
    autoscaling, crd, go,
    kinds::Resource,
    request::Call,
    schema::Schema,
    status::{Cause, Refusal},
};

/// Checks an object of any kind; its writer is told of errors that are forgiven.
pub(super) fn validate(call: &Call, old: Option<&Value>, object: &Value, causes: Vec<Cause>) -> Result<(), Refusal> {
    match identity::of_another_type(&call.resource, object) {
        Some(refusal) => Err(refusal),
        None => validate_own(call, old, object, causes),
    }
}

/// The same of an object that is of the type of its path.
fn validate_own(call: &Call, old: Option<&Value>, object: &Value, mut causes: Vec<Cause>) -> Result<(), Refusal> {
    let resource = &call.resource;
    let of = (resource.of.group.as_str(), resource.of.resource.as_str());
    let mut of_metadata = crate::admit::metadata(resource, object);
    // Of these the metadata is judged for itself, when nothing else is wrong.
    let is_for_itself = of == ("policy", "poddisruptionbudgets") || (of == ("", "events") && old.is_none());
    let for_itself = if is_for_itself { std::mem::take(&mut of_metadata) } else { Vec::new() };
    judge_metadata(call, old, object, &mut of_metadata, &mut causes);
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
            call.session.warn_all(forgiven.iter().map(|cause| format!("{}: {}", cause.field, cause.message)));
        }
        causes.extend(errors);
    } else {
        causes.extend(of_metadata);
    }
    if resource.of.resource == "customresourcedefinitions" && call.subresource == "status" {
        causes.extend(crd::validate_definition_status(object));
    } else if resource.of.resource == "customresourcedefinitions" {
        let mut found = match old {
            Some(old) => crd::validate_change_of_definition(old, object),
            None => crd::validate_definition(object),
        };
        // Both say what is wrong with the name.
        found.retain(|cause| !causes.contains(cause));
        causes.extend(found);
    }
    if let Some(old) = old.filter(|_| strategy::is_part_of_pod(resource, &call.subresource)) {
        // Of a pod that cannot be resized at all nothing else is told.
        if call.subresource != "resize" || object["spec"]["os"]["name"] != "windows" {
            causes.extend(rules::causes(resource, object, false));
        }
        causes.extend(rules::forbidden_in_pod(&call.subresource, old, object));
        return refuse(resource, object, &causes);
    }
    let whole = call.subresource.is_empty()
        || ["certificatesigningrequests", "namespaces"].contains(&resource.of.resource.as_str());
    let judged_before = rules::are_about_spec_alone(resource)
        && old
            .is_some_and(|old| old["spec"] == object["spec"] && old["metadata"]["name"] == object["metadata"]["name"]);
    let in_second = |object: &Value| autoscaling::converted(autoscaling::SECOND, object);
    let (of_old, of_new);
    let (object, old) = if autoscaling::is_autoscaler(resource) {
        (of_new, of_old) = (in_second(object), old.map(in_second));
        (&of_new, of_old.as_ref())
    } else {
        (object, old)
    };
    if resource.custom.is_none() && whole && !judged_before {
        causes.extend(match old {
            Some(old) => causes_of_change(call, old, object),
            None => [rules::causes(resource, object, true), rules::new_causes(resource, object)].concat(),
        });
    }
    if let Some(old) = old.filter(|_| resource.custom.is_none() && call.subresource == "status") {
        causes.extend(rules::status_causes(resource, old, object));
    }
    if causes.is_empty() {
        causes = for_itself;
    }
    refuse(resource, object, &causes)
}

/// What is wrong with a changed object of a built-in kind, in the order of the real server.
fn causes_of_change(call: &Call, old: &Value, new: &Value) -> Vec<Cause> {
    let resource = &call.resource;
    let forbidden = rules::forbidden_changes(resource, old, new);
    let state = || rules::causes(resource, new, false);
    let mut causes = match rules::turn(resource) {
        rules::Turn::First => [forbidden, state()].concat(),
        rules::Turn::Last => [state(), forbidden].concat(),
        rules::Turn::Only => forbidden,
    };
    causes.extend(rules::fixed(resource, &call.subresource, old, new));
    causes
}

/// How often the real server tells of a change what is wrong with its metadata, once more than it tells it of all kinds.
enum Again {
    /// All of it.
    Whole,
    /// All of it, but of finalizers what is wrong with each form after the other.
    Parts,
    /// What is no name of a finalizer.
    Finalizers,
}

/// What such a kind tells again: its validation calls that of metadata itself, beside the one of a change.
fn again(call: &Call) -> Option<Again> {
    if !call.subresource.is_empty() {
        return None;
    }
    match (call.resource.of.group.as_str(), call.resource.of.resource.as_str()) {
        ("", "endpoints" | "persistentvolumeclaims" | "pods" | "secrets" | "serviceaccounts")
        | ("apps", "controllerrevisions") => Some(Again::Whole),
        ("", "namespaces" | "nodes") | ("rbac.authorization.k8s.io", "roles" | "rolebindings") | ("batch", "jobs") => {
            Some(Again::Parts)
        }
        ("", "limitranges") | ("storage.k8s.io", "volumeattachments") => Some(Again::Finalizers),
        _ => None,
    }
}

/// Puts what is wrong with the metadata of a changed object where the real server tells it: before the rest when it has another
/// name, and of some kinds twice.
fn judge_metadata(
    call: &Call,
    old: Option<&Value>,
    object: &Value,
    of_metadata: &mut Vec<Cause>,
    causes: &mut Vec<Cause>,
) {
    let Some(old) = old else { return };
    let is_renamed = old["metadata"]["name"] != object["metadata"]["name"];
    if (call.resource.of.group.as_str(), call.resource.of.resource.as_str()) == ("", "configmaps") {
        let at = if is_renamed { 0 } else { causes.len() };
        causes.splice(at..at, of_metadata.clone());
        return;
    }
    if is_renamed {
        causes.splice(0..0, std::mem::take(of_metadata));
        return;
    }
    match again(call) {
        None => {}
        Some(Again::Whole) => of_metadata.extend(of_metadata.clone()),
        Some(Again::Parts) => {
            let is_finalizer = |cause: &Cause| cause.field.starts_with("metadata.finalizers");
            let (finalizers, mut all): (Vec<_>, Vec<_>) = of_metadata.drain(..).partition(is_finalizer);
            all.extend(all.clone());
            all.extend(finalizers.into_iter().flat_map(|cause| [cause.clone(), cause]));
            *of_metadata = all;
        }
        Some(Again::Finalizers) => {
            let repeated = |cause: Cause| {
                if cause.field == "metadata.finalizers" { vec![cause.clone(), cause] } else { vec![cause] }
            };
            *of_metadata = std::mem::take(of_metadata).into_iter().flat_map(repeated).collect();
        }
    }
}

/// What the schema of a custom kind says; of a status, only the status is judged and named.
fn validated(schema: Schema<'_>, call: &Call, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    if call.subresource == "status" {
        crd::validate_status(schema, object, old)
    } else {
        crd::validate(schema, object, old)
    }
}

/// What the subresource `scale` of a custom kind cannot read.
fn wrong_in_scale(call: &Call, object: &Value) -> Vec<Cause> {
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
pub(super) fn changes_of_metadata(call: &Call, old: &Value, new: &Value) -> Vec<Cause> {
    let (was, is) = (&old["metadata"], &new["metadata"]);
    let mut causes = Vec::new();
    let mut add = |reason, message: String, field: &str| {
        causes.push(Cause { reason, message, field: format!("metadata.{field}") });
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
    let kept = strategy::kept_metadata(&call.resource, &call.subresource);
    let is_of = |cause: &Cause, fields: &[&str]| {
        let field = cause.field.strip_prefix("metadata.").unwrap_or_default();
        fields.iter().any(|of| field.starts_with(of))
    };
    let judged = crate::admit::metadata(&call.resource, new).into_iter();
    causes.extend(judged.filter(|cause| is_of(cause, &["labels", "annotations", "ownerReferences"])));
    causes.retain(|cause| !is_of(cause, kept));
    // The kinds' own validation finds them again, but for that of events.
    if call.resource.of.resource != "events" || call.resource.custom.is_some() {
        causes.extend(causes.clone());
    }
    causes
}

fn refuse(resource: &Resource, object: &Value, causes: &[Cause]) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if causes.is_empty() {
        return Ok(());
    }
    // Whatever their group is, events are judged as those of the core.
    let group = if resource.of.group == "events.k8s.io" { "" } else { &resource.of.group };
    Err(Refusal::invalid(group, resource.kind(), name, causes))
}
