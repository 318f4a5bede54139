//! What every object must fulfil, and what is filled in for the built-in kinds.

pub mod defaults;
pub mod metadata;
pub mod names;
pub mod quantity;

use serde_json::Value;

pub(crate) use self::defaults::default_object;
use self::{
    metadata::{FieldError, validate_metadata},
    names::NameRule,
};

use crate::{kinds::Resource, schema::Schema, status::Cause};

/// Checks the metadata of an object.
pub(crate) fn metadata(resource: &Resource, object: &Value) -> Vec<Cause> {
    let rule = NameRule::of(&resource.of.group, resource.kind());
    let errors = validate_metadata(&object["metadata"], resource.listed.namespaced, rule);
    // Only kinds of the core's validation ask for a domain (`validateKubeFinalizerName`).
    let generic = resource.custom.is_some() || resource.of.group == "apiextensions.k8s.io";
    let errors =
        errors.into_iter().filter(|error| !(generic && error.message.contains("neither a standard finalizer name")));
    let cause = |error: FieldError| Cause { reason: error.reason, message: error.message, field: error.field };
    errors.map(cause).collect()
}

/// Checks that fields which a built-in kind requires are there.
pub(crate) fn required(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(schema) = resource.schema() {
        required_at(schema, object, "", &mut causes);
    }
    causes
}

fn required_at(schema: Schema<'_>, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(map) => {
            for name in schema.json()["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let empty = map.get(name).is_none_or(|value| value.as_array().is_some_and(Vec::is_empty));
                if empty
                    && schema
                        .property(name)
                        .is_some_and(|field| field.type_name() == Some("array") && name == "containers")
                {
                    let field = if path.is_empty() { name.into() } else { format!("{path}.{name}") };
                    causes.push(Cause { reason: "FieldValueRequired", message: "Required value".into(), field });
                }
            }
            for (name, value) in map {
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if let Some(field) = schema.field(name) {
                    required_at(field, value, &at, causes);
                }
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                required_at(of_items, item, &format!("{path}[{index}]"), causes);
            }
        }
        _ => {}
    }
}
