//! Checks that a CRD schema is structural: every field and item has its type outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, and these only restrict values.
//!
//! Upstream: `pkg/apiserver/schema/{convert,validation,complete}.go` of apiextensions-apiserver.
//!
//! Only a structural schema can drive pruning, defaulting and server-side apply: each value must
//! have exactly one schema that declares its type.

use kctl_cel::SchemaOf;
use serde_json::{Map, Value};

use super::{default_values, keywords, statements};
use crate::{
    field_errors::{Errors, FieldError, text},
    pattern,
};

/// Keywords that cannot be converted to a structural schema. If one of them is present, the schema is not checked for
/// structure at all, because upstream fails in the conversion.
const UNREADABLE: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];
/// Keywords that are forbidden inside `allOf`, `anyOf`, `oneOf` and `not`, which may only validate values.
const NOT_IN_ALTERNATIVES: [&str; 13] = [
    "type",
    "title",
    "description",
    "additionalProperties",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
];
/// Keywords that hold lists of alternative schemas.
pub(super) const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The position of a schema: some keywords are forbidden at the root only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The schema of the whole object.
    Root,
    /// Any nested schema.
    Below,
}

/// Checks the schema of a version from its root. `unfit` is the error of a root keyword that the version's subresources
/// forbid.
///
/// Runs all checks of one version's schema. Keywords are always checked. Defaults are checked only if the schema is
/// structural; rules, where it also has no keyword errors. An unreadable keyword is reported only if no other error was
/// found.
pub(super) fn check(schema: &Value, path: &str, unfit: Option<FieldError>, errors: &mut Errors) {
    let before = errors.len();
    errors.extend(unfit);
    if schema["nullable"] == true {
        errors.forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root");
    }
    let unreadable = unreadable(schema);
    let mut found = Errors::default();
    if unreadable.is_none() {
        invariants(schema, Level::Root, path, &mut found);
        complete(schema, schema, path, &mut found);
        if found.is_empty() {
            default_values::check(schema, path, SchemaOf::Object, &mut found);
        }
    }
    let is_structural = unreadable.is_none() && found.is_empty();
    errors.append(&mut found);
    keywords::check(schema, path, &mut found);
    let rules = if is_structural { statements::check(schema, path, &found) } else { Errors::default() };
    errors.extend(found.into_iter().chain(rules));
    if let Some(key) = unreadable.filter(|_| errors.len() == before) {
        errors.invalid(path, &key.into(), "this keyword is not supported");
    }
}

/// Returns the first keyword that cannot be converted to a structural schema.
fn unreadable(schema: &Value) -> Option<&'static str> {
    let is_there = |key: &str| match &schema[key] {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => key == "additionalItems" || !fields.is_empty(),
        _ => true,
    };
    if let Some(key) = UNREADABLE.into_iter().find(|key| is_there(key)) {
        return Some(key);
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        return Some("x-kubernetes-preserve-unknown-fields");
    }
    if schema["items"].is_array() {
        return Some("items");
    }
    let fields = schema["properties"].as_object().into_iter().flat_map(Map::values);
    let alternatives = ALTERNATIVES.iter().flat_map(|key| schema[*key].as_array().into_iter().flatten());
    let others = ["not", "items", "additionalProperties"].into_iter().map(|key| &schema[key]);
    fields.chain(alternatives).chain(others).filter(|below| below.is_object()).find_map(unreadable)
}

/// Checks a schema, which is at `path`, and those below it (`validateStructuralInvariants`).
fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Errors) {
    if text(&schema["type"]) == "array" && !schema["items"].is_object() {
        errors.required(&format!("{path}.items"), "must be specified");
    }
    if schema["items"].is_object() {
        invariants(&schema["items"], Level::Below, &format!("{path}.items"), errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        invariants(field, Level::Below, &format!("{path}.properties[{name}]"), errors);
    }
    let values = &schema["additionalProperties"];
    if !values.is_null() && level == Level::Root {
        errors.forbidden(&format!("{path}.additionalProperties"), "must not be used at the root");
    }
    if values.is_object() {
        invariants(values, Level::Below, &format!("{path}.additionalProperties"), errors);
    }
    extensions(schema, path, errors);
    type_of(schema, level, path, errors);
    metadata(schema, level, path, errors);
    alternatives(schema, path, errors);
}

/// Checks that an int-or-string is neither an embedded object nor preserves unknown fields.
fn extensions(schema: &Value, path: &str, errors: &mut Errors) {
    if schema["x-kubernetes-int-or-string"] != true {
        return;
    }
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if schema[key] == true {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.invalid(&format!("{path}.{key}"), &true.into(), detail);
        }
    }
}

/// Checks that the schema has a type, which only int-or-string and schemas that preserve unknown fields may omit. An
/// embedded object must be of the type `object` and declare its fields, unless it preserves unknown ones.
///
/// At the root the type must be `object`. A missing one is reported as required, not as the wrong type.
fn type_of(schema: &Value, level: Level, path: &str, errors: &mut Errors) {
    let (field, name) = (format!("{path}.type"), text(&schema["type"]));
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    let is_free =
        schema["x-kubernetes-int-or-string"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true;
    if is_embedded && name != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match name {
            "" => errors.required(&field, detail),
            _ => errors.invalid(&field, &name.into(), detail),
        }
    } else if name.is_empty() && !is_free {
        errors.required(&field, "must not be empty");
    }
    if is_embedded && !schema["additionalProperties"].is_null() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.forbidden(&format!("{path}.additionalProperties"), detail);
    }
    if level == Level::Root && !["", "object"].contains(&name) {
        errors.invalid(&field, &name.into(), "must be object at the root");
    }
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    if is_embedded && schema["x-kubernetes-preserve-unknown-fields"] != true && !has_fields {
        let detail = "must name the fields of an embedded object without x-kubernetes-preserve-unknown-fields";
        errors.required(&format!("{path}.properties"), detail);
    }
}

/// Checks that `kind`, `apiVersion` and `metadata` have their types, and that the metadata of the root restricts only
/// `name` and `generateName`, by value validations.
fn metadata(schema: &Value, level: Level, path: &str, errors: &mut Errors) {
    if level == Level::Root || schema["x-kubernetes-embedded-resource"] == true {
        for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let Some(field) = schema["properties"].get(name) else { continue };
            if text(&field["type"]) != expected {
                let field_path = format!("{path}.properties[{name}].type");
                errors.invalid(&field_path, &text(&field["type"]).into(), &format!("must be {expected}"));
            }
        }
    }
    let Some(metadata) = schema["properties"]["metadata"].as_object().filter(|_| level == Level::Root) else { return };
    let names = metadata.get("properties").and_then(Value::as_object);
    let is_name = |name: &String| ["name", "generateName"].contains(&name.as_str());
    let is_zero = |value: &Value| [Value::Null, false.into(), "".into()].contains(value);
    let is_plain =
        |(key, value): (&String, &Value)| ["type", "default", "properties"].contains(&key.as_str()) || is_zero(value);
    if !names.into_iter().flat_map(Map::keys).all(is_name) || !metadata.iter().all(is_plain) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.forbidden(&format!("{path}.properties[metadata]"), detail);
    }
}

/// Returns `true` for `anyOf: [{type: integer}, {type: string}]`, the only form whose alternatives may have types.
fn is_integer_or_string(any_of: &Value) -> bool {
    let has_type = |schema: &Value, name: &str| {
        schema.as_object().is_some_and(|schema| schema.len() == 1 && schema.get("type").is_some_and(|is| is == name))
    };
    any_of.as_array().is_some_and(
        |all| matches!(all.as_slice(), [schema, other] if has_type(schema, "integer") && has_type(other, "string")),
    )
}

/// Checks the contents of alternatives. Two forms of int-or-string are exempt from the ban on types: `anyOf: [integer,
/// string]`, and the same as the first item of `allOf`, which leaves room for other alternatives.
fn alternatives(schema: &Value, path: &str, errors: &mut Errors) {
    let free = |key: &str, index: usize, alternative: &Value| match key {
        "anyOf" => is_integer_or_string(&schema["anyOf"]),
        "allOf" => index == 0 && is_integer_or_string(&alternative["anyOf"]),
        _ => false,
    };
    values(schema, path, &free, errors);
}

/// Checks `pattern` and the alternatives of a schema or of an alternative. `free` gets the keyword, the index and the
/// alternative, and returns `true` for one that may have types: directly for `anyOf`, in its nested `anyOf` for
/// `allOf`.
fn values(schema: &Value, path: &str, free: &dyn Fn(&str, usize, &Value) -> bool, errors: &mut Errors) {
    for key in ALTERNATIVES {
        for (index, nested) in schema[key].as_array().into_iter().flatten().enumerate() {
            let field_path = format!("{path}.{key}[{index}]");
            match (key, free(key, index, nested)) {
                ("allOf", true) => alternative(nested, &field_path, &|key, _, _| key == "anyOf", errors),
                (_, true) => {}
                (_, false) => alternative(nested, &field_path, &|_, _, _| false, errors),
            }
        }
    }
    if schema["not"].is_object() {
        alternative(&schema["not"], &format!("{path}.not"), &|_, _, _| false, errors);
    }
    if let Some(text) = schema["pattern"].as_str().filter(|text| !pattern::is_valid(text)) {
        errors.invalid(&format!("{path}.pattern"), &text.into(), "must be a valid regular expression");
    }
}

/// Checks a schema inside `anyOf`, `oneOf`, `allOf` or `not`, which may only hold value validation.
fn alternative(schema: &Value, path: &str, free: &dyn Fn(&str, usize, &Value) -> bool, errors: &mut Errors) {
    values(schema, path, free, errors);
    let none = |_: &str, _: usize, _: &Value| false;
    if schema["items"].is_object() {
        alternative(&schema["items"], &format!("{path}.items"), &none, errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        alternative(field, &format!("{path}.properties[{name}]"), &none, errors);
    }
    let mut forbid = |key: &str, detail: &str| errors.forbidden(&format!("{path}.{key}"), detail);
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let keys = NOT_IN_ALTERNATIVES
        .into_iter()
        .filter(|key| is_set(&schema[key]) || (*key == "default" && !schema[key].is_null()));
    keys.for_each(|key| forbid(key, "must not be set in an alternative"));
    if !schema["properties"]["metadata"].is_null() {
        forbid("properties[metadata]", "must not be specified in a nested context");
    }
}

/// Checks that each field and item of an alternative is declared outside of the alternatives, too, at `path`
/// (`validateNestedValueValidationCompleteness`). `alternative` starts as the schema itself.
fn complete(alternative: &Value, schema: &Value, path: &str, errors: &mut Errors) {
    if alternative["not"].is_object() {
        below(&alternative["not"], schema, path, errors);
    }
    for nested in ALTERNATIVES.iter().filter_map(|key| alternative[*key].as_array()).flatten() {
        below(nested, schema, path, errors);
    }
}

/// Applies `complete` to an alternative and its nested items and properties. Nothing is reported below a missing
/// declaration.
fn below(alternative: &Value, schema: &Value, path: &str, errors: &mut Errors) {
    const MISSING: &str = "must be declared outside of anyOf, oneOf, allOf and not, because one of them uses it";
    complete(alternative, schema, path, errors);
    if alternative["items"].is_object() {
        let path = format!("{path}.items");
        if schema["items"].is_object() {
            below(&alternative["items"], &schema["items"], &path, errors);
        } else {
            errors.required(&path, MISSING);
        }
    }
    for (name, field) in alternative["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.properties[{name}]");
        match schema["properties"].get(name) {
            Some(schema) => below(field, schema, &path, errors),
            None => errors.required(&path, MISSING),
        }
    }
}
