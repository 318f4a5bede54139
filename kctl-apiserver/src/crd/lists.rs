//! Checks after schema validation: duplicates in lists that are sets or maps, and embedded objects.
//!
//! These checks cannot be expressed in a JSON schema. They run on the whole object after the schema validation, even if
//! that found errors.
//!
//! Upstream: `ValidateListSetsAndMaps` and `objectmeta.Validate` below `pkg/apiserver/schema` of
//! apiextensions-apiserver.

use serde_json::Value;

use super::{embedded::child_path, error_limit::is_limit_reached};
use crate::{
    field::Field,
    field_errors::{Errors, FieldError},
    metadata::validate_embedded,
    schema::{ListType, Schema},
};

/// Calls the visitor on every value that the schema declares, parents first. `path` is the path of `value`.
fn walk<'a>(schema: Schema<'a>, value: &Value, path: &str, visit: &mut impl FnMut(Schema<'a>, &Value, &str)) {
    visit(schema, value, path);
    match value {
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            items.iter().enumerate().for_each(|(i, item)| walk(schema, item, &format!("{path}[{i}]"), visit));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let Some(field) = schema.field(name) else { continue };
                walk(field, value, &child_path(schema, path, name), visit);
            }
        }
        _ => {}
    }
}

/// Reports duplicate items of sets and maps. Each value is reported once, at its first repetition.
///
/// For sets the whole item is compared, for map lists its key fields. An item of a map list that is
/// not an object is `FieldValueInvalid`, and then the list is not compared.
pub(super) fn duplicates(schema: Schema, object: &Value, path: &str, errors: &mut Errors) {
    walk(schema, object, path, &mut |schema, value, path| {
        let Some(items) = value.as_array() else { return };
        match schema.list_type() {
            ListType::Atomic => {}
            ListType::Set => report_duplicates(items.iter().cloned(), path, errors),
            ListType::Map(keys) => {
                if let Some(i) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
                    let detail = "must be an object for an array of list-type map";
                    errors.invalid(&format!("{path}[{i}]"), &items[i], detail);
                } else {
                    report_duplicates(items.iter().map(|item| keys_of(item, keys)), path, errors);
                }
            }
        }
    });
}

/// Returns the key fields of a map-list item. Absent keys are left out, so an absent key differs from `null`.
fn keys_of(item: &Value, keys: &[Value]) -> Value {
    let keys = keys.iter().filter_map(Value::as_str);
    Value::Object(keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone()))).collect())
}

/// Adds one error per value that occurs again. Values are compared as JSON, whose maps are sorted.
fn report_duplicates(keys: impl Iterator<Item = Value>, path: &str, errors: &mut Errors) {
    let mut n_seen = std::collections::HashMap::new();
    for (i, key) in keys.enumerate() {
        let n = n_seen.entry(key.to_string()).or_insert(0_usize);
        *n += 1;
        if is_limit_reached(errors, path) {
            return;
        }
        if *n == 2 {
            errors.duplicate(&format!("{path}[{i}]"));
        }
    }
}

/// Checks apiVersion, kind and metadata of embedded objects.
///
/// Rules for each embedded object:
///
/// - `apiVersion`: present, not empty, at most one slash;
/// - `kind`: present, not empty, a valid kind;
/// - `metadata`: valid if present, but a name is not required.
pub(super) fn validate_embedded_objects(schema: Schema, object: &Value, path: &str, errors: &mut Errors) {
    walk(schema, object, path, &mut |schema, value, path| {
        let is_embedded = value.is_object() && schema.flag("x-kubernetes-embedded-resource");
        if is_embedded && !is_limit_reached(errors, path) {
            embedded_object(&Field::new(value, path, errors));
        }
    });
}

/// Checks one embedded object. Values of the wrong type were rejected while decoding, so they get no second error here.
fn embedded_object(object: &Field<'_>) {
    let (api_version, kind) = (object.at("apiVersion"), object.at("kind"));
    api_version.required_if(api_version.is_null());
    let is_version = !api_version.is_empty() && api_version.text().matches('/').count() <= 1;
    api_version.invalid_if(!api_version.is_null() && !is_version, "must be <group>/<version> or <version>");
    kind.required_if(kind.is_null());
    kind.when_present(Field::kind_name);
    // The kind is unknown, so any name passes. Paths of the metadata rules start with `metadata`.
    let in_object = |error: FieldError| FieldError { field: format!("{}.{}", object.path(), error.field), ..error };
    let found = validate_embedded(&object["metadata"]);
    object.with_errors(|errors, _path| errors.extend(found.into_iter().map(in_object)));
}
