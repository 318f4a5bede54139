//! Migration from client-side to server-side apply. kubectl may take over the fields that it applied on the client
//! side, and its annotation is kept up to date (`lastappliedmanager.go` and `lastappliedupdater.go` upstream).
//!
//! Only the manager `kubectl` is migrated, since `kubectl apply --server-side` uses that name by default. The
//! annotation is the only record of what client-side apply owned: its writes are recorded as updates by the manager
//! `kubectl-client-side-apply`.

use serde_json::Value;

use super::{
    Request,
    field_set::FieldSet,
    managed::Manager,
    shape::Position,
    typed::{compare, field_set},
};
use crate::go;

/// The annotation with the object that client-side apply sent last.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager that is migrated.
const KUBECTL: &str = "kubectl";
/// The size of all annotations of an object in bytes (`TotalAnnotationSizeLimitB` of
/// `k8s.io/apimachinery/pkg/api/validation/objectmeta.go`). Beyond it, the annotation is dropped.
const ANNOTATIONS_LEN_MAX: usize = 256 * 1024;

/// Returns the annotation. An empty annotation counts as absent.
fn last_applied(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Returns the conflicts without fields whose live value kubectl has applied on the client side. A conflict is dropped
/// if the annotation and the live object agree on the field. An annotation that is not JSON allows nothing.
pub(super) fn without_allowed<'m>(
    request: &Request<'_>,
    live: &Value,
    conflicts: Vec<(&'m Manager, FieldSet)>,
) -> Vec<(&'m Manager, FieldSet)> {
    if request.manager != KUBECTL || conflicts.is_empty() {
        return conflicts;
    }
    let parsed = last_applied(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(last) = parsed else { return conflicts };
    let position = Position::root(request.schema);
    let changes = compare(position, &last, live);
    let set = field_set(position, &last);
    let allowed = set.difference(&changes.modified).difference(&changes.added).difference(&changes.removed);
    let remaining = conflicts.into_iter().map(|(manager, set)| (manager, set.difference(&allowed)));
    remaining.filter(|(_, set)| !set.is_empty()).collect()
}

/// Updates the annotation with the applied object, if the object has the annotation. The string ends with a line break,
/// as client-side apply writes it. The annotation itself is not part of its content.
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
