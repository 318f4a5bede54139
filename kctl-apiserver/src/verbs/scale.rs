//! The `scale` subresource: a uniform view of the replicas of all kinds that have them.
//!
//! A `Scale` is created from the object at each read, and a write of it changes one field of the object. Built-in kinds
//! have their replicas at `spec.replicas`; custom kinds name the paths in the CRD.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{VerbResponse, patch::PatchType, scale_owners};
use crate::{
    admission::{self, Attributes},
    apply, conversion, decode,
    field_errors::Errors,
    metadata::validate_managed_fields,
    patch,
    registry::TypeMeta,
    request::{Operation, RequestInfo, Verb},
    schema::Schema,
    state::State,
    status::{GroupResource, StatusError},
    table::labels,
    write::{
        self, AdmissionStep, FieldManager, Ownership, Write, body, namespace,
        precondition::{self, Subject},
    },
};

/// Returns a path in the CRD's `subresources.scale` as field names.
fn custom_path(info: &RequestInfo, field: &str) -> Option<Vec<String>> {
    let path = info.resource.custom.as_ref()?.version["subresources"]["scale"][field].as_str()?;
    Some(path.trim_start_matches('.').split('.').map(str::to_owned).collect())
}

/// Returns the path of the desired replicas (`part` is `spec`) or of the observed ones (`status`).
fn replicas_path(info: &RequestInfo, part: &str) -> Vec<String> {
    custom_path(info, &format!("{part}ReplicasPath")).unwrap_or_else(|| vec![part.into(), "replicas".into()])
}

/// Returns the value at a path.
fn value_at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(object, |value, part| &value[part])
}

/// Returns the Scale of an object. The version is `autoscaling/v1` for all kinds. Zero replicas are omitted in `spec`,
/// not in `status`, as Go's tags define.
fn scale_of(info: &RequestInfo, object: &Value) -> Value {
    let mut meta = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object["metadata"][field].is_null() {
            meta[field] = object["metadata"][field].clone();
        }
    }
    let selector = match custom_path(info, "labelSelectorPath") {
        Some(path) => value_at(object, &path).as_str().unwrap_or_default().to_owned(),
        None => labels::query(&object["spec"]["selector"]),
    };
    let mut spec = json!({});
    if let Some(replicas) = value_at(object, &replicas_path(info, "spec")).as_i64().filter(|replicas| *replicas != 0) {
        spec["replicas"] = replicas.into();
    }
    let mut status = json!({ "replicas": value_at(object, &replicas_path(info, "status")).as_i64().unwrap_or(0) });
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status })
}

/// Returns the Scale of an object. A custom object without the replicas field fails with 500 (`ScaleREST.Get` in
/// apiextensions-apiserver, `pkg/registry/customresource/etcd.go`); built-in kinds count it as 0.
pub(super) fn get(state: &State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    let object = conversion::get(state, info)?.ok_or_else(|| StatusError::not_found(resource, &info.name))?;
    let path = replicas_path(info, "spec");
    if info.resource.custom.is_some() && value_at(&object, &path).is_null() {
        return Err(StatusError::internal(&format!("the spec replicas field \".{}\" does not exist", path.join("."))));
    }
    Ok(VerbResponse::ok(scale_of(info, &object)))
}

/// Updates, patches or applies the Scale of an object, and stores the object with its new replicas. Steps: decode, find
/// the object, apply the patch to its `Scale`, validate, check the uid, admit the `Scale`, move the ownership, and
/// write the object without further admission.
pub(super) fn set(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    // Upstream decodes the body before it reads the object.
    let sent = if info.verb == Verb::Update {
        let mut sent = decode_scale(info)?;
        namespace::match_names(info, &mut sent)?;
        Some(sent)
    } else {
        PatchType::from_request(info)?;
        super::patch::check_syntax(info)?;
        None
    };
    let old = conversion::find(state, info)?.ok_or_else(|| StatusError::not_found(resource, &info.name))?;
    let applies = info.applies();
    let mut scale = sent.map_or_else(|| patch_scale(info, &old), Ok)?;
    if !applies {
        namespace::match_names(info, &mut scale)?;
    }
    let Some(replicas) = scale["spec"].get("replicas").map_or(Some(0), Value::as_i64) else {
        return Err(StatusError::bad_request("Scale: spec.replicas must be an integer"));
    };
    validate_scale(info, &scale, replicas)?;
    check_uid(info, &scale, &old)?;
    let replicas = admit_scale(state, info, &old, replicas)?;
    scale["spec"]["replicas"] = replicas.into();
    // kube-apiserver can't apply the scale of a custom kind, unless there are conflicts: it treats the Scale as an
    // object of that kind.
    let cannot_apply = applies && info.resource.custom.is_some();
    let has_managers = !scale_owners::managed_fields_of_scale(&old, &replicas_path(info, "spec")).is_empty();
    let managers = if cannot_apply && !has_managers { Vec::new() } else { managed_fields(state, info, &old, &scale)? };
    if cannot_apply {
        let why = "the scale of a custom kind can't be applied: update or patch it";
        return Err(StatusError::server_error(why));
    }
    let mut new = Value::clone(&old);
    set_replicas(&mut new, &replicas_path(info, "spec"), replicas)?;
    if !applies {
        // A Scale without a `resourceVersion` is written unconditionally.
        let version = scale["metadata"]["resourceVersion"].as_str();
        if let Some(version) = version.filter(|version| !["", "0"].contains(version)) {
            new["metadata"]["resourceVersion"] = version.into();
        }
    }
    let managers = if managers.is_empty() { Value::Null } else { managers.into() };
    let new = Write::update(&old, new, Ownership::Given(managers));
    let written = write::write(state, info, Write { admission: AdmissionStep::Done, ..new })?;
    Ok(VerbResponse::ok(scale_of(info, &written)))
}

/// Sets the replicas of an object. A custom object may have another value on the path, if it was stored before its CRD
/// named the path.
///
/// # Errors
/// 500 if a value on the path is not an object, as upstream (`SetNestedField`).
fn set_replicas(object: &mut Value, path: &[String], replicas: i64) -> Result<(), StatusError> {
    let mut field = object;
    for part in path {
        if !field.is_object() && !field.is_null() {
            let why = format!(".{}: must be a field of an object, found {field}", path.join("."));
            return Err(StatusError::server_error(why));
        }
        field = &mut field[part];
    }
    *field = replicas.into();
    Ok(())
}

/// Checks the uid in a Scale. The one that is applied has none, and the handler of custom resources ignores the uid of
/// a patched Scale. The error of a patch names the subresource.
fn check_uid(info: &RequestInfo, scale: &Value, old: &Value) -> Result<(), StatusError> {
    let resource = &info.resource.id;
    let (required, stored) = (&scale["metadata"]["uid"], &old["metadata"]["uid"]);
    if info.verb == Verb::Update {
        return precondition::check_uid(Subject::from_request(info), required, stored);
    }
    if info.resource.custom.is_some() || info.applies() {
        return Ok(());
    }
    let part = GroupResource::new(&resource.group, &format!("{}/scale", resource.resource));
    precondition::check_uid(Subject { resource: &part, name: &info.name }, required, stored)
}

/// Returns the `managedFields` of the object after its replicas were written or applied through the Scale. `scale` is
/// the written one. The result replaces the managed fields of the object; an empty list means none.
fn managed_fields(state: &State, info: &RequestInfo, old: &Value, scale: &Value) -> Result<Vec<Value>, StatusError> {
    let path = replicas_path(info, "spec");
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    let mut live = scale_of(info, old);
    live["metadata"]["managedFields"] = scale_owners::managed_fields_of_scale(old, &path).into();
    let manager = FieldManager::from_request(info, state);
    let schema = Schema::built_in(scale_owners::API_VERSION, "Scale");
    let request = apply::Request {
        schema,
        api_version: scale_owners::API_VERSION,
        versions: &apply::ONE_FORM,
        ..manager.request()
    };
    let scale = if info.applies() {
        let applied = json!({
            "apiVersion": scale_owners::API_VERSION,
            "kind": "Scale",
            "metadata": { "name": info.name, "namespace": info.namespace },
            "spec": { "replicas": replicas },
        });
        apply::apply(&request, Some(&live), &applied).map_err(|error| super::patch::apply_error(info, error))?
    } else {
        let mut scale = scale_of(info, old);
        // A Scale with 0 replicas omits the field, so no manager owns it.
        crate::json_path::set(&mut scale["spec"], "replicas", (replicas != 0).then(|| replicas.into()));
        apply::update(&request, Some(&live), &mut scale);
        scale
    };
    Ok(scale_owners::managed_fields_of_object(old, &path, &scale))
}

/// Returns the replicas after admission. Webhooks see a `Scale` with the subresource `scale`. They may change the
/// replicas; other changes have no effect.
fn admit_scale(state: &State, info: &RequestInfo, old: &Value, replicas: i64) -> Result<i64, StatusError> {
    let old_scale = Arc::new(scale_of(info, old));
    let mut scale = Value::clone(&old_scale);
    scale["spec"]["replicas"] = replicas.into();
    let mut attributes = Attributes::new(info, Operation::Update, &info.name, scale).with_old(&old_scale);
    admission::mutate(state, &mut attributes)?;
    admission::validate(state, &attributes)?;
    let admitted = attributes.object.as_ref().and_then(|scale| scale["spec"]["replicas"].as_i64());
    Ok(admitted.unwrap_or(0))
}

/// Validates a Scale (`ValidateScale` of `pkg/apis/autoscaling/validation`). For a custom resource only its replicas
/// are validated. Metadata other than the managers is dropped, and not validated. A negative number is `Invalid` at the
/// field's path.
fn validate_scale(info: &RequestInfo, scale: &Value, replicas: i64) -> Result<(), StatusError> {
    let resource = &info.resource.id;
    let (group, kind, field, mut errors) = if info.resource.custom.is_some() {
        let field = format!(".{}", replicas_path(info, "spec").join("."));
        (&*resource.group, info.resource.kind_name(), field, Errors::default())
    } else {
        let errors = validate_managed_fields(&scale["metadata"]);
        ("autoscaling", "Scale", "spec.replicas".to_owned(), errors)
    };
    if replicas < 0 {
        errors.invalid(&field, &replicas.into(), "must not be negative");
    }
    StatusError::unless_valid(group, kind, &info.name, &errors)
}

/// Decodes the body of an update. For custom resources upstream returns an error without a reason.
fn decode_scale(info: &RequestInfo) -> Result<Value, StatusError> {
    let read = body::read_as(info, "Scale", scale_owners::API_VERSION);
    if info.resource.custom.is_none() {
        return read;
    }
    read.map_err(|error| StatusError::bad_request(error.message))
}

/// Returns the Scale after a patch. The version is removed first, so that a patch without one is unconditional.
fn patch_scale(info: &RequestInfo, old: &Value) -> Result<Value, StatusError> {
    let mut scale = scale_of(info, old);
    if let Some(meta) = scale["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
    }
    let body = |media_type: &str| decode::body(media_type, &info.body, "Scale").map_err(StatusError::bad_request);
    match PatchType::from_request(info)? {
        PatchType::Json => super::patch::apply_json_patch(&mut scale, &info.body)?,
        PatchType::Merge => patch::merge(&mut scale, &body("application/json")?),
        PatchType::StrategicMerge => {
            let schema = Schema::built_in(scale_owners::API_VERSION, "Scale");
            super::patch::merge_strategically(schema, &mut scale, &body("application/json")?)?;
            scale["kind"] = "Scale".into();
            scale["apiVersion"] = scale_owners::API_VERSION.into();
        }
        PatchType::Apply => {
            let applied = body("application/yaml")?;
            check_applied_scale(&applied)?;
            patch::merge(&mut scale, &applied);
        }
    }
    body::fit_type(info, &mut scale, "Scale", scale_owners::API_VERSION, &[])
        .map_err(body::BodyError::into_patch_error)?;
    Ok(scale)
}

/// Checks that the applied object is a Scale. Unknown fields fail with 500, as in upstream's strict conversion.
fn check_applied_scale(body: &Value) -> Result<(), StatusError> {
    super::patch::check_type(&TypeMeta::from_object(body), &TypeMeta::new("Scale", scale_owners::API_VERSION))?;
    let Some(schema) = Schema::built_in(scale_owners::API_VERSION, "Scale") else { return Ok(()) };
    let unknown = decode::decode_typed(schema, &mut body.clone(), None, decode::Integers::InRange).unwrap_or_default();
    let Some(first) = unknown.first() else { return Ok(()) };
    Err(StatusError::server_error(format!("{first}: unknown field of Scale")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    #[tokio::test]
    async fn replicas_below_a_string_are_rejected() {
        let server = ApiServer::new();
        let foos = server.create_foo_crd().await;
        for (name, spec) in [("text", json!({ "a": "x" })), ("map", json!({ "a": {} })), ("absent", json!({}))] {
            let foo =
                json!({ "apiVersion": "example.com/v1", "kind": "Foo", "metadata": { "name": name }, "spec": spec });
            server.succeed("POST", foos, &foo).await;
        }
        let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.example.com";
        let mut versions = server.succeed("GET", definition, &Value::Null).await["spec"]["versions"].take();
        versions[0]["subresources"] =
            json!({ "scale": { "specReplicasPath": ".spec.a.n", "statusReplicasPath": ".status.n" } });
        server.succeed("PATCH", definition, &json!({ "spec": { "versions": versions } })).await;
        for (name, expected) in [("text", 500), ("map", 200), ("absent", 200)] {
            let scale = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": name },
                "spec": { "replicas": 3 } });
            let (code, response) = server.send_json("PUT", &format!("{foos}/{name}/scale"), &scale).await;
            assert_eq!(code, expected, "{name}: {response}");
        }
        let replicas =
            |name: &str| server.object("example.com", "foos", "default", name).unwrap()["spec"]["a"]["n"].clone();
        assert_eq!([replicas("map"), replicas("absent")], [json!(3), json!(3)]);
    }
}
