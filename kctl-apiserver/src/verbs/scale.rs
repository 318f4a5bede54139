//! The `scale` subresource: one shape for the replicas of every kind that has some.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, scale_owners};
use crate::{
    admission::{self, Attributes},
    apply, conversion, decode,
    metadata::validate_metadata,
    names::NameRule,
    request::{Call, Operation, Verb},
    schema::Schema,
    state::State,
    status::{FieldError, GroupResource, StatusError},
    write::{self, Admission, FieldManager, Ownership, Write, body, place, precondition},
};

/// Where a kind keeps what a Scale shows.
struct Paths {
    spec: Vec<String>,
    status: Vec<String>,
    selector: Option<Vec<String>>,
}

fn paths(call: &Call) -> Paths {
    let path = |text: &str| text.trim_start_matches('.').split('.').map(str::to_owned).collect::<Vec<_>>();
    let Some(custom) = &call.resource.custom else {
        return Paths { spec: path("spec.replicas"), status: path("status.replicas"), selector: None };
    };
    let scale = &custom.version["subresources"]["scale"];
    let text = |field: &str| scale[field].as_str();
    Paths {
        spec: path(text("specReplicasPath").unwrap_or("spec.replicas")),
        status: path(text("statusReplicasPath").unwrap_or("status.replicas")),
        selector: text("labelSelectorPath").map(path),
    }
}

fn at<'a>(object: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(object, |value, part| &value[part])
}

fn scale_of(call: &Call, object: &Value) -> Value {
    let paths = paths(call);
    let mut meta = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object["metadata"][field].is_null() {
            meta[field] = object["metadata"][field].clone();
        }
    }
    let selector = match &paths.selector {
        Some(path) => at(object, path).as_str().unwrap_or_default().to_owned(),
        None => selector_text(&object["spec"]["selector"]),
    };
    let mut spec = json!({});
    if let Some(replicas) = at(object, &paths.spec).as_i64().filter(|replicas| *replicas != 0) {
        spec["replicas"] = replicas.into();
    }
    let mut status = json!({ "replicas": at(object, &paths.status).as_i64().unwrap_or(0) });
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status })
}

/// A label selector as the text that lists take.
fn selector_text(selector: &Value) -> String {
    let labels = selector["matchLabels"]
        .as_object()
        .or_else(|| selector.as_object().filter(|map| map.values().all(Value::is_string)));
    let mut parts: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        parts.push(match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    parts.join(",")
}

pub(super) fn get(state: &State, call: &Call) -> Result<Answer, StatusError> {
    let of = &call.resource.of;
    let object = conversion::find(state, call)?.ok_or_else(|| StatusError::not_found(of, &call.name))?;
    let path = paths(call).spec;
    if call.resource.custom.is_some() && at(&object, &path).is_null() {
        return Err(StatusError::internal(&format!("the spec replicas field \".{}\" does not exist", path.join("."))));
    }
    Ok(Answer::ok(scale_of(call, &object)))
}

pub(super) fn set(state: &mut State, call: &Call) -> Result<Answer, StatusError> {
    let of = &call.resource.of;
    // The body is read before the object is looked for.
    let sent = if call.verb == Verb::Update {
        let mut sent = sent(call)?;
        place::match_names(call, &mut sent)?;
        Some(sent)
    } else {
        super::patch::media_type(call)?;
        None
    };
    let old = conversion::find(state, call)?.ok_or_else(|| StatusError::not_found(of, &call.name))?;
    let applies = call.applies();
    let mut scale = match sent {
        Some(sent) => sent,
        None => patched(call, &old)?,
    };
    if !applies {
        place::match_names(call, &mut scale)?;
    }
    let Some(replicas) = scale["spec"].get("replicas").map_or(Some(0), Value::as_i64) else {
        return Err(StatusError::bad_request("Scale: spec.replicas must be an integer"));
    };
    judge(call, &scale, replicas)?;
    let (given, known) = (scale["metadata"]["uid"].as_str().unwrap_or_default(), &old["metadata"]["uid"]);
    let is_other = !given.is_empty() && given != known;
    if is_other && call.verb == Verb::Update {
        return Err(precondition::failed(call, "UID", given, known));
    }
    // In patches custom kinds leave it unread.
    if is_other && call.resource.custom.is_none() && !applies {
        let why = format!(
            "Precondition failed: UID in precondition: {given}, UID in object meta: {}",
            known.as_str().unwrap_or_default()
        );
        let part = GroupResource::new(&of.group, &format!("{}/scale", of.resource));
        return Err(StatusError::conflict(&part, &call.name, &why));
    }
    let replicas = admitted(state, call, &old, replicas)?;
    scale["spec"]["replicas"] = replicas.into();
    let is_unknown = applies && call.resource.custom.is_some();
    let has_managers = !scale_owners::of_scale(&old, &paths(call).spec).is_empty();
    if is_unknown && !has_managers {
        return Err(unknown_to_managers(call, false));
    }
    let managed = owners(state, call, &old, &scale)?;
    if is_unknown {
        return Err(unknown_to_managers(call, true));
    }
    let mut new = Value::clone(&old);
    let mut place = &mut new;
    for part in paths(call).spec {
        place = &mut place[part];
    }
    *place = replicas.into();
    if !applies {
        // A Scale without a version is written to any.
        let version = scale["metadata"]["resourceVersion"].as_str();
        if let Some(version) = version.filter(|version| !["", "0"].contains(version)) {
            new["metadata"]["resourceVersion"] = version.into();
        }
    }
    let managed = if managed.is_empty() { Value::Null } else { managed.into() };
    let new = Write::update(&old, new, Ownership::Given(managed));
    let written = write::write(state, call, Write { admission: Admission::Done, ..new })?;
    Ok(Answer::ok(scale_of(call, &written)))
}

/// The real server cannot apply the scale of a custom kind: it takes it for an object of that kind as soon as nothing conflicts.
fn unknown_to_managers(call: &Call, has_managers: bool) -> StatusError {
    let sent = decode::body("application/yaml", &call.body, "Scale").unwrap_or_default();
    let namespace = sent["metadata"]["namespace"].as_str().unwrap_or_default();
    let what = if has_managers {
        format!("failed to convert new object ({namespace}/{};", call.name)
    } else {
        "failed to create manager for existing fields: failed to convert live object (/;".to_owned()
    };
    let why = format!(
        "{what} autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: \
         autoscaling/v1"
    );
    StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why)
}

/// The managers of the object after its replicas were written or applied.
fn owners(state: &State, call: &Call, old: &Value, scale: &Value) -> Result<Vec<Value>, StatusError> {
    let path = paths(call).spec;
    if call.verb == Verb::Update && call.resource.custom.is_some() && !scale["kind"].is_string() {
        // The real server cannot tell what changes in an object without a kind, and then nobody owns anything of it.
        return Ok(scale_owners::of_object(old, &path, &json!({})));
    }
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    let mut live = scale_of(call, old);
    live["metadata"]["managedFields"] = scale_owners::of_scale(old, &path).into();
    let manager = FieldManager::of(call, state);
    let schema = Schema::built_in(scale_owners::API_VERSION, "Scale");
    let request = apply::Request {
        schema,
        api_version: scale_owners::API_VERSION,
        versions: &apply::BuiltInKinds,
        ..manager.request()
    };
    let scale = if call.applies() {
        let applied = json!({
            "apiVersion": scale_owners::API_VERSION,
            "kind": "Scale",
            "metadata": { "name": call.name, "namespace": call.namespace },
            "spec": { "replicas": replicas },
        });
        apply::apply(&request, Some(&live), &applied).map_err(|error| super::patch::refused(call, error))?
    } else {
        let mut scale = scale_of(call, old);
        // Scales leave out a zero, which then belongs to nobody.
        crate::ways::set(&mut scale["spec"], "replicas", (replicas != 0).then(|| replicas.into()));
        apply::update(&request, Some(&live), &mut scale);
        scale
    };
    Ok(scale_owners::of_object(old, &path, &scale))
}

/// The replicas that admission leaves.
fn admitted(state: &State, call: &Call, old: &Value, replicas: i64) -> Result<i64, StatusError> {
    let was = Arc::new(scale_of(call, old));
    let mut scale = Value::clone(&was);
    scale["spec"]["replicas"] = replicas.into();
    let mut attributes = Attributes::new(call, Operation::Update, &call.name, scale).with_old(&was);
    admission::mutate(state, &mut attributes)?;
    admission::validate(state, &attributes)?;
    let left = attributes.object.as_ref().and_then(|scale| scale["spec"]["replicas"].as_i64());
    Ok(left.unwrap_or(0))
}

/// What is wrong with a scale (`ValidateScale` of `pkg/apis/autoscaling/validation`); of a custom kind with its replicas alone.
fn judge(call: &Call, scale: &Value, replicas: i64) -> Result<(), StatusError> {
    let of = &call.resource.of;
    let (group, kind, field, what) = match &call.resource.custom {
        Some(_) => {
            let field = format!(".{}", paths(call).spec.join("."));
            (of.group.as_str(), call.resource.kind(), field, "should be a non-negative integer")
        }
        None => ("autoscaling", "Scale", "spec.replicas".to_owned(), "must be greater than or equal to 0"),
    };
    let mut errors = match &call.resource.custom {
        Some(_) => Vec::new(),
        None => validate_metadata(&scale["metadata"], true, NameRule::Subdomain),
    };
    if replicas < 0 {
        let message = format!("Invalid value: {replicas}: {what}");
        errors.push(FieldError { reason: "FieldValueInvalid", message, field });
    }
    if errors.is_empty() { Ok(()) } else { Err(StatusError::invalid(group, kind, &call.name, &errors)) }
}

/// What is sent as a whole. The handler of custom kinds cannot say why it is none; of a Scale without a kind it makes none.
fn sent(call: &Call) -> Result<Value, StatusError> {
    let read = body::read_as(call, "Scale", scale_owners::API_VERSION);
    if call.resource.custom.is_none() {
        return read;
    }
    let as_sent = body::read_built_in(call, "Scale")?;
    let mut scale = read.map_err(|_unsaid| {
        StatusError::bad_request("no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"")
    })?;
    if !as_sent["kind"].is_string() {
        scale.as_object_mut().map(|scale| scale.remove("kind"));
    }
    Ok(scale)
}

/// The scale of an object as a patch leaves it.
fn patched(call: &Call, old: &Value) -> Result<Value, StatusError> {
    let content_type = call.header("content-type");
    let mut scale = scale_of(call, old);
    if let Some(meta) = scale["metadata"].as_object_mut() {
        meta.remove("resourceVersion");
    }
    if content_type.starts_with("application/json-patch") {
        super::patch::operate(&mut scale, &call.body)?;
    } else {
        let body_type = if content_type.contains("yaml") { "application/yaml" } else { "application/json" };
        let body = decode::body(body_type, &call.body, "Scale").map_err(StatusError::bad_request)?;
        if call.applies() {
            applicable(&body)?;
        }
        json_patch::merge(&mut scale, &body);
    }
    if content_type.starts_with("application/strategic-merge-patch") {
        scale["kind"] = "Scale".into();
        scale["apiVersion"] = scale_owners::API_VERSION.into();
    }
    let fits = body::fit_type(call, &mut scale, "Scale", scale_owners::API_VERSION, &[]);
    fits.map_err(body::Misfit::of_patch)?;
    Ok(scale)
}

/// Whether it can be applied as a Scale.
fn applicable(body: &Value) -> Result<(), StatusError> {
    let text = |key: &str| body[key].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    if (kind, version) != ("Scale", scale_owners::API_VERSION) {
        let version = if version.contains('/') { version.to_owned() } else { format!("/{version}") };
        return Err(StatusError::bad_request(format!("invalid object type: {version}, Kind={kind}")));
    }
    let Some(schema) = Schema::built_in(scale_owners::API_VERSION, "Scale") else { return Ok(()) };
    let unknown = decode::typed(schema, &mut body.clone(), None, decode::Integers::InRange).unwrap_or_default();
    let Some(first) = unknown.first() else { return Ok(()) };
    let (key, kind) = apply::named(body);
    let why = format!("failed to create typed patch object ({key}; {kind}): .{first}: field not declared in schema");
    Err(StatusError::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", why))
}
