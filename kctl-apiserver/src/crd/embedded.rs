//! Objects within custom objects (`x-kubernetes-embedded-resource`): reads them by the type that metadata has, and writes them as it
//! does.
//!
//! Upstream: `pkg/apiserver/schema/objectmeta/{algorithm,coerce}.go` of apiextensions-apiserver.

use serde_json::{Value, json};

use crate::{decode, field_error::FieldError, schema::Schema};

/// Whether versions, kinds and metadata of embedded objects have their types.
///
/// # Errors
/// The first that has not, with its path.
pub(crate) fn fit_embedded(schema: Schema<'_>, object: &mut Value) -> Result<(), String> {
    walk(schema, object, "", &mut |value, path| {
        let wrong = |field: &str, value: &Value, why: &str| {
            let FieldError { field, message, .. } = FieldError::invalid(&format!("{path}.{field}"), value, why);
            Err(format!("{field}: {message}"))
        };
        for field in ["apiVersion", "kind"] {
            match value.get(field) {
                None | Some(Value::String(_)) => {}
                Some(other) => return wrong(field, other, "must be a string"),
            }
        }
        match value.get_mut("metadata") {
            None => Ok(()),
            Some(metadata) => match decode::typed_metadata(metadata) {
                Ok(()) => Ok(()),
                Err(why) => wrong("metadata", metadata, &why),
            },
        }
    })
}

/// Writes the metadata of embedded objects as its type does.
pub(crate) fn settle_embedded(schema: Schema<'_>, object: &mut Value) {
    let settled = walk(schema, object, "", &mut |value, _| {
        if let Some(metadata) = value.get_mut("metadata") {
            if metadata.is_null() {
                *metadata = json!({});
            }
            decode::settle_metadata(metadata);
        }
        Ok(())
    });
    debug_assert!(settled.is_ok(), "nothing that settles fails");
}

/// Shows all embedded objects.
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
                    walk(field, value, &below(schema, path, name), visit)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// The path of a field; keys of maps stand in brackets.
pub(super) fn below(schema: Schema<'_>, path: &str, name: &str) -> String {
    match (path.is_empty(), schema.property(name).is_some()) {
        (true, _) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        (false, false) => format!("{path}[{name}]"),
    }
}
