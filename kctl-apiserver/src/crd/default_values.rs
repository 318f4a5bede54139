//! Validates the defaults in a schema against the schema itself.
//!
//! Upstream: `pkg/apiserver/schema/defaulting/validation.go` of apiextensions-apiserver.
//!
//! A default is written into objects after the client's request was decoded, and is trusted from
//! then on. So it must already be in the form that pruning, validation and rules accept. Runs only
//! for structural schemas, as pruning needs one.

use kctl_cel::SchemaOf;
use serde_json::Value;

use super::{Rules, prune, validate};
use crate::{
    field_errors::{Errors, FieldError},
    schema::Schema,
};

/// Checks the default of a structural schema, which is at `path` in the CRD, and of those below it. Schemas of map
/// values are skipped, as in upstream. Errors have the path of the default, followed by the path within it.
pub(super) fn check(schema: &Value, path: &str, schema_of: SchemaOf, errors: &mut Errors) {
    check_default(schema, &format!("{path}.default"), schema_of, errors);
    if schema["items"].is_object() {
        check(&schema["items"], &format!("{path}.items"), SchemaOf::Value, errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        check(field, &format!("{path}.properties[{name}]"), SchemaOf::Value, errors);
    }
}

/// Checks the default of one schema: pruning removes nothing, a whole object has `apiVersion` and `kind`, and the value
/// is valid by the schema and its CEL rules. Later steps are skipped after an error, except for one of pruning.
fn check_default(schema: &Value, field: &str, schema_of: SchemaOf, errors: &mut Errors) {
    let value = &schema["default"];
    if value.is_null() {
        return;
    }
    let untyped = without_types(schema);
    let cursor = Schema::structural(&untyped);
    let mut pruned = value.clone();
    if !prune::values(cursor, &mut pruned).is_empty() {
        errors.invalid(field, value, "must not have unknown fields");
    }
    let mut found = Errors::default();
    if schema_of == SchemaOf::Object && value.is_object() {
        let missing = ["apiVersion", "kind"].into_iter().filter(|&name| value.get(name).is_none());
        found.extend(missing.map(|name| FieldError::required(name, "")));
    }
    if found.is_empty() {
        found = validate::once(cursor, value);
    }
    let is_valid = found.is_empty();
    if is_valid {
        let rules = Rules::compile_unjudged(Schema::structural(schema));
        // Transition rules must accept the default on update (unchanged), other rules on creation.
        for old in [Some(value), None] {
            if found.is_empty() {
                rules.validate_default(value, old, &mut found);
            }
        }
    }
    errors.extend(found.into_iter().map(|mut error| {
        error.field = match error.field.as_str() {
            "" | "<nil>" => field.to_owned(),
            // Only CEL rules report an index directly below the default.
            below if below.starts_with('[') && is_valid => format!("{field}{below}"),
            below => format!("{field}.{}", below.trim_start_matches('.')),
        };
        error
    }));
}

/// Returns the schema that upstream validates defaults with. It lacks the flag `x-kubernetes-int-or-string`, so a
/// default there may be of any type. A property of that name is an object, and is kept.
fn without_types(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let remaining =
                fields.iter().filter(|(key, value)| *key != "x-kubernetes-int-or-string" || value.is_object());
            remaining.map(|(key, value)| (key.clone(), without_types(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(without_types).collect(),
        other => other.clone(),
    }
}
