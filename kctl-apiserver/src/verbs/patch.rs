//! `PATCH`: JSON, merge, strategic merge and apply.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, body, create, update};
use crate::{apply, crd, decode, request::Call, status::Refusal, store::State};

pub(super) fn patch(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    let content_type = call.header("content-type");
    let media = content_type.split(';').next().unwrap_or_default().trim();
    let of = &call.resource.of;
    if ["application/apply-patch+yaml", "application/apply-patch+json"].contains(&media) {
        return apply_patch(state, call);
    }
    let patch = match media {
        "application/json-patch+json" | "application/merge-patch+json" => &call.body,
        "application/strategic-merge-patch+json" if call.resource.custom.is_none() => &call.body,
        _ => {
            let mut refusal = Refusal::unsupported_media_type("");
            refusal.message = "415: Unsupported Media Type".into();
            refusal.details = json!({});
            return Err(refusal);
        }
    };
    let old = state.get(of, &call.key()).ok_or_else(|| Refusal::not_found(of, &call.name))?;
    let new = patched(call, media, patch, &old)?;
    let body::Decoded { object: mut new, warnings } = body::fit(call, new)?;
    update::match_names(call, &mut new)?;
    let written = update::write(state, call, &old, new, |request, old, new| {
        apply::update(request, Some(old), new);
        Ok(())
    })?;
    Ok(Answer::ok(written).with_warnings(warnings))
}

fn patched(call: &Call, media: &str, patch: &[u8], old: &Value) -> Result<Value, Refusal> {
    let undecodable = |error: serde_json::Error| {
        let why = if error.is_eof() { "unexpected end of JSON input".into() } else { error.to_string() };
        Refusal::bad_request(format!("error decoding patch: {why}"))
    };
    let mut new = old.clone();
    if media == "application/json-patch+json" {
        let patch: json_patch::Patch = serde_json::from_slice(patch).map_err(undecodable)?;
        return match json_patch::patch(&mut new, &patch) {
            Ok(()) => Ok(new),
            Err(_words_differ) => {
                let mut refusal = Refusal::invalid("", "", "", &[]);
                refusal.message = "the server rejected our request due to an error in our request".into();
                refusal.details = json!({});
                Err(refusal)
            }
        };
    }
    let patch: Value = serde_json::from_slice(patch).map_err(undecodable)?;
    if media == "application/merge-patch+json" {
        json_patch::merge(&mut new, &patch);
    } else {
        crate::patch::strategic_merge(call.resource.schema(), &mut new, &patch).map_err(Refusal::bad_request)?;
    }
    Ok(new)
}

fn apply_patch(state: &mut State, call: &Call) -> Result<Answer, Refusal> {
    if !call.params.given("fieldManager") {
        let cause = crate::status::Cause {
            reason: "FieldValueRequired",
            message: "Required value: is required for apply patch".into(),
            field: "fieldManager".into(),
        };
        return Err(Refusal::invalid("meta.k8s.io", "PatchOptions", "", &[cause]));
    }
    let applied = decode::body("application/yaml", &call.body, call.resource.kind())
        .map_err(|why| Refusal::bad_request(format!("error decoding YAML: {why}")))?;
    let body::Decoded { object: mut applied, warnings } = body::fit(call, applied)?;
    update::match_names(call, &mut applied)?;
    let Some(old) = state.get(&call.resource.of, &call.key()) else {
        if !call.subresource.is_empty() {
            return Err(Refusal::not_found(&call.resource.of, &call.name));
        }
        let new = apply::apply(&create::Writing::of(call, state).request(), None, &applied)
            .map_err(|error| refused(call, error))?;
        let managed_fields = new["metadata"]["managedFields"].clone();
        let created = create::store(state, call, new, |_, _, object| {
            object["metadata"]["managedFields"] = managed_fields;
            Ok(())
        })?;
        return Ok(Answer::created(created).with_warnings(warnings));
    };
    let new = apply::apply(&create::Writing::of(call, state).request(), Some(&old), &applied)
        .map_err(|error| refused(call, error))?;
    if let (Some(_), Some(schema)) = (&call.resource.custom, call.resource.schema()) {
        let _pruned = crd::prune(schema, &mut applied);
    }
    let written = update::write(state, call, &old, new, |_, _, _| Ok(()))?;
    Ok(Answer::ok(written).with_warnings(warnings))
}

fn refused(call: &Call, error: apply::ApplyError) -> Refusal {
    let text = error.to_string();
    match error {
        apply::ApplyError::Conflicts(conflicts) => {
            let mut refusal = Refusal::conflict(&call.resource.of, &call.name, "");
            refusal.message = text;
            let causes = conflicts.iter().map(|conflict| {
                json!({ "reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field })
            });
            refusal.details = json!({ "causes": causes.collect::<Vec<_>>() });
            refusal
        }
        apply::ApplyError::Untyped { .. } => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "", text),
        _ => Refusal::bad_request(text),
    }
}
