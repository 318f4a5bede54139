//! The way from client-side to server-side apply: kubectl may take over what it applied itself before, and keeps the
//! annotation with which it did (`lastappliedmanager.go` and `lastappliedupdater.go` upstream).

use serde_json::Value;

use super::{
    Conflict, Request,
    field_set::path_text,
    shape::Position,
    typed::{compare, field_set},
};
use crate::go;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager that client-side apply is upgraded for.
const KUBECTL: &str = "kubectl";
/// Bytes of all annotations together that an object may have (`TotalAnnotationSizeLimitB` upstream).
const ANNOTATIONS_LEN_MAX: usize = 256 * 1024;

fn last_applied(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// The conflicts without those in fields that kubectl applied with the value that is live.
pub(super) fn without_allowed(request: &Request<'_>, live: &Value, conflicts: Vec<Conflict>) -> Vec<Conflict> {
    if request.manager != KUBECTL {
        return conflicts;
    }
    let parsed = last_applied(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(last) = parsed else { return conflicts };
    let place = Position::root(request.schema);
    let changes = compare(place, &last, live);
    let set = field_set(place, &last);
    let set = set.difference(&changes.modified).difference(&changes.added).difference(&changes.removed);
    let allowed: Vec<String> = set.paths().iter().map(|path| path_text(path)).collect();
    conflicts.into_iter().filter(|conflict| !allowed.contains(&conflict.field)).collect()
}

/// Writes what kubectl applies into its annotation, when the object has one.
pub(super) fn refresh(request: &Request<'_>, object: &mut Value, applied: &Value) {
    if request.manager != KUBECTL || last_applied(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else { return };
    let text = go::json(&applied) + "\n";
    let others = annotations.iter().filter(|(name, _)| *name != ANNOTATION);
    let len: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
    if len + ANNOTATION.len() + text.len() > ANNOTATIONS_LEN_MAX {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.into(), text.into());
    }
}
