//! `PATCH`: JSON patch, merge patch, strategic merge patch and server-side apply.

use http::StatusCode;
use serde_json::{Value, json};

use super::{VerbResponse, update};
use crate::{
    apply, authorizer, conversion, decode, go,
    patch::{StrategicMergeError, json::JsonPatchError, json_patch},
    registry::TypeMeta,
    request::RequestInfo,
    schema::Schema,
    state::State,
    status::StatusError,
    write::{
        self, FieldManager, Ownership, Unpersisted, Write, body, namespace,
        precondition::{self, Subject},
    },
};

/// The type of a patch, which its media type names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchType {
    /// `application/json-patch+json`: a list of operations (RFC 6902).
    Json,
    /// `application/merge-patch+json`: the changed fields (RFC 7396).
    Merge,
    /// `application/strategic-merge-patch+json`: the changed fields of a built-in type, whose lists are merged by key.
    StrategicMerge,
    /// `application/apply-patch+yaml`: all fields that the field manager sets (server-side apply).
    Apply,
}

impl PatchType {
    /// Returns the type of the patch in a request.
    ///
    /// # Errors
    /// `UnsupportedMediaType` if the type is unknown, or not supported for the kind: custom resources have no strategic
    /// merge patch.
    pub(super) fn from_request(info: &RequestInfo) -> Result<Self, StatusError> {
        let is_custom = info.resource.custom.is_some();
        let common_types = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        match info.header("content-type").split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ if is_custom => Err(StatusError::unsupported_media_type(common_types)),
            "application/strategic-merge-patch+json" => Ok(Self::StrategicMerge),
            other => {
                let accepted = format!("{common_types}, application/strategic-merge-patch+json");
                let status_error = StatusError::unsupported_media_type(&accepted);
                // Upstream's router ignores the trailing blank, so its handler returns the error.
                Err(if other.ends_with(' ') { status_error } else { status_error.with_empty_details() })
            }
        }
    }
}

/// Checks that a patch is JSON, or YAML for an apply. kube-apiserver parses it for its audit log, before the object is
/// looked up (`validateAndTranscodePatch` in `k8s.io/apiserver/pkg/endpoints/handlers/patch.go`).
///
/// # Errors
/// Fails with 400.
pub(super) fn check_syntax(info: &RequestInfo) -> Result<(), StatusError> {
    if info.applies() {
        let text = std::str::from_utf8(&info.body).map_err(|error| decode_error(&error.to_string()))?;
        if parse_plain_json(text).is_none() {
            decode::parse_yaml(text).map_err(|why| decode_error(&why))?;
        }
    } else {
        serde_json::from_slice::<serde::de::IgnoredAny>(&info.body)
            .map_err(|error| decode_error(&error.to_string()))?;
    }
    Ok(())
}

/// Patches an object. The stored object is converted to the version of the request, patched as JSON, decoded again, and
/// then written like an update (`write/mod.rs`). Unlike kube-apiserver's `patchResource`, no retry after a conflict is
/// needed: the whole request runs under the lock. `fieldValidation` looks for duplicate fields in a merge patch itself,
/// and for unknown fields in the patched object.
pub(super) fn patch(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    let patch_type = PatchType::from_request(info)?;
    if patch_type == PatchType::Apply {
        return apply_patch(state, info);
    }
    check_syntax(info)?;
    let old = conversion::find(state, info)?.ok_or_else(|| StatusError::not_found(resource, &info.name))?;
    let object = patch_object(info, patch_type, &old)?;
    let sent = if patch_type == PatchType::Merge { &info.body[..] } else { &[] };
    let (new, _dropped) =
        body::fit_and_report(info, object, Some(&old), sent).map_err(body::BodyError::into_patch_error)?;
    let new = Write::update(&old, new, Ownership::Written);
    Ok(VerbResponse::ok(write::write(state, info, new)?))
}

/// Merges a strategic merge patch into an object.
///
/// # Errors
/// 400 for a malformed `$retainKeys`, 500 for any other error of the merge.
pub(super) fn merge_strategically(
    schema: Option<Schema<'_>>,
    object: &mut Value,
    patch: &Value,
) -> Result<(), StatusError> {
    crate::patch::strategic_merge(schema, object, patch).map_err(|error| match error {
        StrategicMergeError::BadRetainKeys => StatusError::bad_request(error.to_string()),
        StrategicMergeError::Rejected(why) => StatusError::server_error(why),
    })
}

/// Returns the patched object. A merge patch or strategic merge patch in whose metadata no key contains `managedFields` is
/// applied to a copy without them; [`apply::update`] takes them from the live object. A patch that sets them replaces the
/// stored list, and `apply::update` decides about the result. On the main resource an empty list removes all managers;
/// `null` keeps the stored ones.
fn patch_object(info: &RequestInfo, patch_type: PatchType, old: &Value) -> Result<Value, StatusError> {
    debug_assert!(patch_type != PatchType::Apply, "`apply_patch` merges by ownership");
    if patch_type == PatchType::Json {
        let mut object = old.clone();
        apply_json_patch(&mut object, &info.body)?;
        return Ok(object);
    }
    let mut patch = decode::json(&info.body).map_err(|why| decode_error(&why))?;
    if !patch.is_object() && !patch.is_null() {
        return Err(decode_error(&decode::type_error("body", "an object", &patch)));
    }
    // A directive of a strategic merge patch about the list, such as `$setElementOrder/managedFields`, needs the stored
    // list as well.
    let is_named =
        |meta: &Value| meta.as_object().is_some_and(|meta| meta.keys().any(|key| key.contains("managedFields")));
    let names_managers = patch.get("metadata").is_some_and(is_named);
    let mut object = if names_managers { old.clone() } else { apply::without_managed_fields(old) };
    if patch_type == PatchType::Merge {
        if patch.is_null() && info.resource.custom.is_some() {
            return Err(decode_error("must not be null"));
        }
        crate::patch::merge(&mut object, &patch);
        return Ok(object);
    }
    // A strategic merge patch applies to the decoded Go type, in which `1.0` and `1` are the same integer.
    go::whole_numbers(&mut patch);
    merge_strategically(info.resource.schema(), &mut object, &patch)?;
    for field in ["kind", "apiVersion"] {
        if !patch[field].is_null() && !patch[field].is_string() {
            return Err(
                body::BodyError::Content(decode::type_error(field, "a string", &patch[field])).into_patch_error()
            );
        }
    }
    // The object keeps the type of the path, even if the patch changes `kind` or `apiVersion`.
    object["kind"] = old["kind"].clone();
    object["apiVersion"] = old["apiVersion"].clone();
    Ok(object)
}

/// Returns the error of a patch that cannot be decoded: 400 `BadRequest`.
fn decode_error(why: &str) -> StatusError {
    StatusError::bad_request(format!("error decoding patch: {why}"))
}

/// Applies a JSON patch (RFC 6902).
///
/// # Errors
/// 400 if the patch does not decode, 413 if it has too many operations, 422 if an operation fails.
pub(super) fn apply_json_patch(object: &mut Value, patch: &[u8]) -> Result<(), StatusError> {
    json_patch(object, patch).map_err(|error| match error {
        JsonPatchError::Undecodable(_) => StatusError::bad_request(error.to_string()),
        JsonPatchError::TooManyOperations(_) => {
            StatusError::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", error.to_string())
        }
        JsonPatchError::Rejected => {
            StatusError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", error.to_string()).with_empty_details()
        }
    })
}

/// Performs server-side apply.
///
/// Creates the object if it does not exist, for which the user needs the verb `create` as well. The applied object is
/// decoded and merged into the live one (`apply/`). The result is decoded again, because the merge may leave nulls and
/// unknown fields.
///
/// If a request has several errors, conflicts come before unknown fields, and unknown fields before the check of the
/// verb `create`. `Conflict` with one cause per field that another manager owns with another value, unless
/// `force=true`.
fn apply_patch(state: &mut State, info: &RequestInfo) -> Result<VerbResponse, StatusError> {
    let resource = &info.resource.id;
    let old = conversion::find(state, info)?;
    // A subresource can't be applied if its object does not exist.
    if old.is_none() && !info.subresource.is_main() && !update::is_created_by_update(info) {
        check_syntax(info)?;
        return Err(StatusError::not_found(resource, &info.name));
    }
    let (applied, repeated) = decode_applied(info)?;
    let new = apply::apply(&FieldManager::from_request(info, state).request(), old.as_deref(), &applied);
    info.round.check_complete()?;
    let new = new.map_err(|error| apply_error(info, error))?;
    let managed_fields = if old.is_none() { new["metadata"]["managedFields"].clone() } else { Value::Null };
    let in_metadata = Unpersisted::in_metadata(&new["metadata"]);
    let fitted = body::fit_and_report(info, new, old.as_deref(), &[]);
    let (mut new, lost) = fitted.map_err(|error| match error {
        // Upstream fails in the conversion of the merged object there.
        body::BodyError::Content(why) if info.resource.custom.is_none() => StatusError::server_error(why),
        other => other.into_patch_error(),
    })?;
    // Upstream decodes the patch strictly after it was applied (`applyPatcher` in `handlers/patch.go`).
    body::report_fields(info, repeated).map_err(StatusError::bad_request)?;
    let unpersisted = Unpersisted::decide(info, in_metadata, &lost);
    let Some(old) = old else {
        // Before the write, which matches only existing objects: 400 comes before 403.
        namespace::match_names(info, &mut new)?;
        authorizer::authorize_creation(state, info)?;
        precondition::check_uid(Subject::from_request(info), &new["metadata"]["uid"], &Value::Null)?;
        let new = Write::create(new, Ownership::Given(managed_fields));
        return Ok(VerbResponse::created(write::write(state, info, Write { unpersisted, ..new })?));
    };
    let new = Write::update(&old, new, Ownership::Applied);
    Ok(VerbResponse::ok(write::write(state, info, Write { unpersisted, ..new })?))
}

/// Decodes the applied object, which must be of the kind of the path. Also returns a message for each duplicate field.
fn decode_applied(info: &RequestInfo) -> Result<(Value, Vec<String>), StatusError> {
    let text = std::str::from_utf8(&info.body).map_err(|error| decode_error(&error.to_string()))?;
    let (mut applied, repeated) = if let Some(applied) = parse_plain_json(text) {
        (applied, Vec::new())
    } else {
        let read = decode::parse_yaml(text).map_err(|why| decode_error(&why))?;
        (read.value, read.repeated)
    };
    if !applied.is_object() && !applied.is_null() {
        return Err(decode_error(&decode::type_error("body", "an object", &applied)));
    }
    check_type(&TypeMeta::from_object(&applied), &info.resource.type_meta())?;
    go::whole_numbers(&mut applied);
    Ok((applied, repeated))
}

/// Checks that the kind and version of a body match the path. Both parts must match, and neither may be absent: an
/// apply without a type has no schema to merge by.
///
/// # Errors
/// Fails with 400.
pub(super) fn check_type(sent: &TypeMeta, expected: &TypeMeta) -> Result<(), StatusError> {
    if sent == expected {
        return Ok(());
    }
    let TypeMeta { kind, api_version } = expected;
    let (sent_kind, sent_version) = (&sent.kind, &sent.api_version);
    let why = format!("must be a {kind} of {api_version}, found kind {sent_kind:?} and apiVersion {sent_version:?}");
    Err(StatusError::bad_request(why))
}

/// Returns the object if the body is JSON that YAML reads the same way. Parsing JSON is many times faster, and most
/// clients send it. `None` also for JSON whose strings or numbers YAML would read differently, and for duplicate
/// fields.
fn parse_plain_json(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    (!decode::differs_as_yaml(text) && decode::duplicates(text.as_bytes()).is_empty()).then_some(value)
}

/// Returns the error of a failed apply. A conflict has one cause per field, with the reason `FieldManagerConflict`.
pub(super) fn apply_error(info: &RequestInfo, error: apply::ApplyError) -> StatusError {
    let text = error.to_string();
    match error {
        apply::ApplyError::Conflicts(conflicts) => {
            let mut status_error = StatusError::conflict(&info.resource.id, &info.name, "");
            status_error.message = text;
            let errors = conflicts.iter().map(|conflict| {
                json!({ "reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field })
            });
            status_error.details = json!({ "causes": errors.collect::<Vec<_>>() });
            status_error
        }
        apply::ApplyError::Untyped { .. } | apply::ApplyError::Unconverted(_) => StatusError::server_error(text),
        _ => StatusError::bad_request(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServer;

    /// Tests the bounds at which kube-apiserver rejects a patch, measured to the byte and to the operation.
    #[tokio::test(start_paused = true)]
    async fn json_patches_are_bounded_in_operations_and_copies() {
        let server = ApiServer::new();
        let map = json!({ "metadata": { "name": "a" }, "data": { "k": "v" } });
        assert_eq!(server.send_json("POST", "/api/v1/namespaces/default/configmaps", &map).await.0, 201);
        let patch = async |operations: Vec<Value>| {
            let path = "/api/v1/namespaces/default/configmaps/a";
            let operations = Value::from(operations).to_string();
            let (code, response) = server.send("PATCH", path, "application/json-patch+json", operations).await;
            (code, response["reason"].as_str().unwrap_or_default().to_owned())
        };
        let test = json!({ "op": "test", "path": "/data/k", "value": "v" });
        assert_eq!(patch(vec![test.clone(); 10_000]).await.0, 200);
        assert_eq!(patch(vec![test; 10_001]).await, (413, "RequestEntityTooLarge".to_owned()));

        let (len, copy) = (1 << 20, json!({ "op": "copy", "from": "/data/a", "path": "/data/c" }));
        let copied = |more: usize| {
            vec![
                json!({ "op": "add", "path": "/data/a", "value": "x".repeat(len - 2) }),
                json!({ "op": "add", "path": "/data/b", "value": "x".repeat(len - 2 + more) }),
                copy.clone(),
                copy.clone(),
                json!({ "op": "copy", "from": "/data/b", "path": "/data/c" }),
                json!({ "op": "remove", "path": "/data/a" }),
                json!({ "op": "remove", "path": "/data/b" }),
                json!({ "op": "remove", "path": "/data/c" }),
            ]
        };
        assert_eq!(patch(copied(0)).await.0, 200);
        assert_eq!(patch(copied(1)).await, (422, "Invalid".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn strategic_patch_of_a_scale_follows_directives() {
        let server = ApiServer::new();
        let (labels, path) = (json!({ "a": "b" }), "/apis/apps/v1/namespaces/default/deployments");
        let pod =
            json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        let spec = json!({ "replicas": 3, "selector": { "matchLabels": labels }, "template": pod });
        let deployment = json!({ "metadata": { "name": "a" }, "spec": spec });
        assert_eq!(server.send_json("POST", path, &deployment).await.0, 201);
        let patch = json!({ "spec": { "$patch": "replace" } });
        let path = format!("{path}/a/scale");
        let send = async |patch: Value| {
            server.send("PATCH", &path, "application/strategic-merge-patch+json", patch.to_string()).await
        };
        let (code, scale) = send(patch).await;
        assert_eq!((code, &scale["spec"]["replicas"]), (200, &Value::Null));
        let patch = json!({ "spec": { "$retainKeys": "replicas", "replicas": 2 } });
        assert_eq!(send(patch).await.0, 400);
    }
}
