//! Embedded objects (`x-kubernetes-embedded-resource`): decodes and encodes their metadata as `ObjectMeta`.
//!
//! Upstream: `pkg/apiserver/schema/objectmeta/{algorithm,coerce}.go` of apiextensions-apiserver.
//!
//! A field with `x-kubernetes-embedded-resource: true` holds a whole object, such as a Pod template with its kind. Its
//! metadata is decoded as in Go: unknown fields and wrong types are treated as in a top-level object.

use serde_json::{Value, json};

use crate::{decode, schema::Schema};

/// Checks that `apiVersion`, `kind` and `metadata` of all embedded objects have the right types.
///
/// Runs while the body of a request is decoded (`write/body`), before pruning. The walk is in the
/// order of the JSON; further errors are not collected.
///
/// # Errors
/// Returns the first wrong field, with its path and the reason.
pub(crate) fn fit_embedded(schema: Schema<'_>, object: &mut Value) -> Result<(), String> {
    walk(schema, object, "", &mut |value, path| {
        let wrong = |field: &str, why: &str| Err(format!("{path}.{field}: {why}"));
        for field in ["apiVersion", "kind"] {
            if value.get(field).is_some_and(|value| !value.is_string()) {
                return wrong(field, "must be a string");
            }
        }
        let Some(metadata) = value.get_mut("metadata") else { return Ok(()) };
        decode::typed_metadata(metadata).or_else(|why| wrong("metadata", &why))
    })
}

/// Normalizes the metadata of all embedded objects to the JSON that `ObjectMeta` encodes to.
///
/// Empty fields are removed and timestamps get their canonical form. `null` metadata becomes an
/// empty object. Call it after `fit_embedded` has succeeded.
pub(crate) fn normalize_embedded(schema: Schema<'_>, object: &mut Value) {
    let normalized = walk(schema, object, "", &mut |value, _| {
        if let Some(metadata) = value.get_mut("metadata") {
            if metadata.is_null() {
                *metadata = json!({});
            }
            decode::normalize_metadata(metadata);
        }
        Ok(())
    });
    debug_assert!(normalized.is_ok(), "normalizing never fails");
}

/// Calls the visitor on all embedded objects with their paths, parents before their children.
fn walk(
    schema: Schema<'_>,
    value: &mut Value,
    path: &str,
    visit: &mut impl FnMut(&mut Value, &str) -> Result<(), String>,
) -> Result<(), String> {
    if value.is_object() && schema.flag("x-kubernetes-embedded-resource") {
        visit(value, path)?;
    }
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return Ok(()) };
            for (index, item) in items.iter_mut().enumerate() {
                walk(schema, item, &format!("{path}[{index}]"), visit)?;
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(field) = schema.field(name) {
                    walk(field, value, &child_path(schema, path, name), visit)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the path of a field. Map keys are in brackets.
pub(super) fn child_path(schema: Schema<'_>, path: &str, name: &str) -> String {
    match (path.is_empty(), schema.property(name).is_some()) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (false, false) => format!("{path}[{name}]"),
    }
}
