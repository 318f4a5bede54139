//! Results of kube-apiserver 1.36 for values of a field `spec.f` and for CRDs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::schema::Schema;

mod definitions;
mod fields;
mod rules;
mod schemas;
mod values;

/// Validates a value after defaulting, as a write does.
fn check(field: &Value, value: &Value, expected: &[&str]) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}});
    let schema = Schema::structural(&schema);
    let mut object = json!({"spec": {"f": value}});
    crate::crd::default(schema, &mut object);
    check_errors(&validate(schema, &object, None), expected, &format!("{field} {object}"));
}

/// Checks the set of reasons and paths, such as `Invalid spec.f` for `FieldValueInvalid`.
fn check_errors(errors: &[crate::field_errors::FieldError], expected: &[&str], case: &str) {
    let meaning =
        |error: &crate::field_errors::FieldError| format!("{} {}", error.reason.replace("FieldValue", ""), error.field);
    let found: BTreeSet<String> = errors.iter().map(meaning).collect();
    assert_eq!(found, expected.iter().map(|&text| text.to_owned()).collect(), "{case}");
}

fn check_definition(expected: &[&str], object: &Value) {
    let mut defaulted = object.clone();
    crate::crd::default_definition(&mut defaulted);
    check_errors(&validate_definition(&defaulted), expected, &object.to_string());
}

/// Checks the errors of a CRD with this schema. In `expected`, `~` stands for the path of the schema.
fn check_schema(schema: &Value, expected: &[&str]) {
    let expected: Vec<_> = expected.iter().map(|text| text.replace('~', "spec.validation.openAPIV3Schema")).collect();
    check_definition(
        &expected.iter().map(String::as_str).collect::<Vec<_>>(),
        &with(|object| {
            object["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
        }),
    );
}

/// Checks the errors of a CRD whose field `spec.f` has this schema. In `expected`, `~` stands for the path of the
/// field's schema.
fn check_field(field: &Value, expected: &[&str]) {
    let path = "~.properties[spec].properties[f]";
    let expected: Vec<_> = expected.iter().map(|text| text.replace('~', path)).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}});
    check_schema(&schema, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.def.crdtest.example.com"},
        "spec": {
            "group": "def.crdtest.example.com", "names": {"plural": "things", "kind": "Thing"}, "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
        },
    });
    change(&mut object);
    object
}

fn check_with(change: impl FnOnce(&mut Value), expected: &[&str]) {
    check_definition(expected, &with(change));
}
