//! Results of kube-apiserver for values of a field `spec.f` and for CRDs.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::*;
use crate::{field_errors::Errors, json_path::set_at, schema::Schema};

mod formats;
mod rules;

/// Checks the set of reasons and paths, such as `Invalid spec.f` for `FieldValueInvalid`.
fn check_errors(errors: &[crate::field_errors::FieldError], expected: &[&str], case: &str) {
    let meaning =
        |error: &crate::field_errors::FieldError| format!("{} {}", error.reason.replace("FieldValue", ""), error.field);
    let found: BTreeSet<String> = errors.iter().map(meaning).collect();
    assert_eq!(found, expected.iter().map(|&text| text.to_owned()).collect(), "{case}");
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

/// Checks the errors of a CRD that is valid without the change.
fn check_definition(change: impl FnOnce(&mut Value), expected: &[&str], case: &str) {
    let mut object = with(change);
    crate::crd::default_definition(&mut object);
    check_errors(&validate_definition(&object), expected, case);
}

/// Returns the schema of an object whose field `spec.f` has this schema.
fn with_field(field: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}})
}

/// Compares the errors of each line of `schemas.json`: a scenario, a schema and its errors. The schema is the root
/// schema of the version (`schema`), or the schema of its field `spec.f` (`field`); `~` is replaced by its path.
#[test]
fn schemas_have_the_errors_of_kube_apiserver() {
    let cases: Vec<(&str, &str, Value, Vec<&str>)> = serde_json::from_str(include_str!("schemas.json")).unwrap();
    assert!(cases.len() >= 68, "{} cases", cases.len());
    for (scenario, place, schema, errors) in cases {
        let case = format!("{scenario}: {schema}");
        let (path, schema) = match place {
            "field" => ("spec.validation.openAPIV3Schema.properties[spec].properties[f]", with_field(&schema)),
            "schema" => ("spec.validation.openAPIV3Schema", schema),
            place => panic!("{case}: the place {place} is unknown"),
        };
        let errors: Vec<_> = errors.iter().map(|error| error.replace('~', path)).collect();
        let expected: Vec<_> = errors.iter().map(String::as_str).collect();
        let change = |object: &mut Value| object["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        check_definition(change, &expected, &case);
    }
}

/// Compares the errors of each line of `values.json`: a scenario, the schema of the field `spec.f`, a value of it and
/// its errors. As in a write, defaults are set first.
#[test]
fn values_have_the_errors_of_kube_apiserver() {
    let cases: Vec<(&str, Value, Value, Vec<&str>)> = serde_json::from_str(include_str!("values.json")).unwrap();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    for (scenario, field, value, errors) in cases {
        let case = format!("{scenario}: {field} {value}");
        let schema = with_field(&field);
        let schema = Schema::structural(&schema);
        let mut object = json!({"spec": {"f": value}});
        crate::crd::default(schema, &mut object);
        check_errors(&validate(schema, &object, None), &errors, &case);
    }
}

/// Compares the errors of each line of `definitions.json`: a scenario, the values that a valid CRD gets at JSON
/// pointers, and the errors.
#[test]
fn definitions_have_the_errors_of_kube_apiserver() {
    let cases: Vec<(&str, Map<String, Value>, Vec<&str>)> =
        serde_json::from_str(include_str!("definitions.json")).unwrap();
    assert_eq!(cases.len(), 39);
    for (scenario, values, errors) in cases {
        let case = format!("{scenario}: {values:?}");
        let set = |object: &mut Value| values.into_iter().for_each(|(at, value)| set_at(object, &at, Some(value)));
        check_definition(set, &errors, &case);
    }
}

#[test]
fn deeply_nested_rule_is_an_error() {
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    for rule in ["(".repeat(200_000), "[".repeat(5_000), "a&&".repeat(6_600) + "a"] {
        let (rule_len, rules) = (rule.len(), json!([{"rule": rule}]));
        let spec = json!({"type": "object", "default": {}, "x-kubernetes-validations": rules});
        let mut object = with(|object| *object.pointer_mut(place).unwrap() = spec);
        crate::crd::default_definition(&mut object);
        let errors = validate_definition(&object);
        let field = "spec.validation.openAPIV3Schema.properties[spec]";
        assert!(errors.iter().any(|error| error.field.starts_with(field)), "{rule_len} bytes");
    }
}

/// Checks each line of `pruned.json` after its schema: a scenario, an object, what is left of it, and the paths of the
/// fields that were removed.
#[test]
fn unknown_fields_are_removed_and_named() {
    let (schema, cases): (Value, Vec<(&str, Value, Value, Value)>) =
        serde_json::from_str(include_str!("pruned.json")).unwrap();
    assert_eq!(cases.len(), 10);
    for (scenario, mut object, expected, paths) in cases {
        let mut removed = crate::crd::prune(Schema::structural(&schema), &mut object);
        removed.sort();
        assert_eq!(object, expected, "{scenario}");
        assert_eq!(json!(removed), paths, "{scenario}");
    }
}

/// Checks each line of `defaults.json`: a scenario, the fields of a schema, an object, and the object with defaults.
#[test]
fn absent_values_and_nulls_get_defaults() {
    let cases: Vec<(&str, Value, Value, Value)> = serde_json::from_str(include_str!("defaults.json")).unwrap();
    assert_eq!(cases.len(), 20);
    for (scenario, fields, mut object, expected) in cases {
        let schema = json!({"type": "object", "properties": fields});
        crate::crd::default(Schema::structural(&schema), &mut object);
        assert_eq!(object, expected, "{scenario}: {fields}");
    }
}

/// Takes minutes if the path of each rule is searched in all errors.
#[test]
fn rules_of_many_wrong_schemas_are_skipped() {
    let rules = json!([{"rule": "wrong"}]);
    let field = json!({"type": "string", "uniqueItems": true, "x-kubernetes-validations": rules});
    let fields: Map<String, Value> = (0..80_000).map(|n| (format!("k{n}"), field.clone())).collect();
    let change = |object: &mut Value| {
        let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        set_at(object, place, Some(fields.into()));
    };
    let mut object = with(change);
    crate::crd::default_definition(&mut object);
    let errors = validate_definition(&object);
    assert_eq!(errors.len(), 80_000);
    assert!(errors.iter().all(|error| error.reason == "FieldValueForbidden"));
}

/// Takes minutes if each version or key is compared with all others.
#[test]
fn many_versions_and_keys_are_compared_as_sets() {
    let version = |n: u32| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}});
        json!({"name": format!("v{n}"), "served": true, "storage": n == 0, "schema": schema})
    };
    let change = |object: &mut Value| object["spec"]["versions"] = (0..20_000).map(version).collect();
    check_definition(change, &[], "versions");
    let keys: Vec<String> = (0..50_000).map(|n| format!("k{n}")).collect();
    let fields: Map<String, Value> = keys.iter().map(|key| (key.clone(), json!({"type": "string"}))).collect();
    let items = json!({"type": "object", "required": keys, "properties": fields});
    let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": items});
    check_errors(&Errors::collect(|errors| keywords::check(&list, "list", errors)), &[], "keys");
}

#[test]
fn enum_error_quotes_strings_once() {
    let schema = with_field(&json!({"type": "string", "enum": ["A", "B"]}));
    let errors = validate(Schema::structural(&schema), &json!({"spec": {"f": "C"}}), None);
    assert_eq!(errors[0].message, r#"Unsupported value: "C": supported values: ["A", "B"]"#);
}

#[test]
fn estimate_of_message_names_format_for_numbers() {
    let errors = |expression: &str| {
        let rule = json!({"rule": "self.max < 10", "messageExpression": expression});
        let field = json!({"type": "object", "properties": {"max": {"type": "integer"}},
            "x-kubernetes-validations": [rule]});
        let change =
            |object: &mut Value| object["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = with_field(&field);
        let mut object = with(change);
        crate::crd::default_definition(&mut object);
        validate_definition(&object)
    };
    let rejected = errors("'max is ' + string(self.max)");
    assert!(rejected[0].message.contains("'max is %d'.format([self.max])"), "{}", rejected[0].message);
    check_errors(&errors("'max is %d'.format([self.max])"), &[], "the remedy works");
}
