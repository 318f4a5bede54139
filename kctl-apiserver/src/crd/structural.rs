//! Checks that a CRD schema is structural: every field and item has its type outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, and these only restrict values.
//!
//! Upstream: `pkg/apiserver/schema/{convert,validation,complete}.go` of apiextensions-apiserver.
//!
//! Only a structural schema can drive pruning, defaulting and server-side apply: each value must
//! have exactly one schema that declares its type.

use kctl_cel::SchemaOf;
use serde_json::{Map, Value};

use super::{
    default_values,
    keywords::{self, ALTERNATIVES, must_be},
    rule_validation,
};
use crate::{
    field::Field,
    field_errors::{Errors, FieldError, pairs},
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
        let root = Field::new(schema, path, &mut found);
        invariants(&root, Level::Root);
        complete(schema, &root);
        if found.is_empty() {
            default_values::check(schema, path, SchemaOf::Object, &mut found);
        }
    }
    let is_structural = unreadable.is_none() && found.is_empty();
    errors.append(&mut found);
    keywords::check(schema, path, &mut found);
    let rules = if is_structural { rule_validation::check(schema, path, &found) } else { Errors::default() };
    errors.extend(found.into_iter().chain(rules));
    if let Some(key) = unreadable.filter(|_| errors.len() == before) {
        errors.invalid(path, &key.into(), "this keyword is not supported");
    }
}

/// Returns the first keyword that cannot be converted to a structural schema.
fn unreadable(schema: &Value) -> Option<&'static str> {
    let is_set = |key: &str| match &schema[key] {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => key == "additionalItems" || !fields.is_empty(),
        _ => true,
    };
    if let Some(key) = UNREADABLE.into_iter().find(|key| is_set(key)) {
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

/// Checks a schema and those below it (`validateStructuralInvariants`).
fn invariants(schema: &Field<'_>, level: Level) {
    let (items, values) = (schema.at("items"), schema.at("additionalProperties"));
    items.required_if(schema["type"] == "array" && !items.is_object());
    values.forbidden_if(!values.is_null() && level == Level::Root, "must not be used at the root");
    let fields = schema.at("properties").entries().map(|(_, field)| field);
    let below = [items, values].into_iter().filter(|below| below.is_object());
    below.chain(fields).for_each(|below| invariants(&below, Level::Below));
    extensions(schema);
    type_of(schema, level);
    metadata(schema, level);
    alternatives(schema);
}

/// Checks that an int-or-string is neither an embedded object nor preserves unknown fields.
fn extensions(schema: &Field<'_>) {
    if schema["x-kubernetes-int-or-string"] != true {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"].map(|key| schema.at(key))
    {
        keyword.invalid_if(*keyword == true, "must be false if x-kubernetes-int-or-string is true");
    }
}

/// Checks that the schema has a type, which only int-or-string and schemas that preserve unknown fields may omit. An
/// embedded object must be of the type `object` and declare its fields, unless it preserves unknown ones.
///
/// At the root the type must be `object`. A missing one is reported as required, not as the wrong type.
fn type_of(schema: &Field<'_>, level: Level) {
    let (name, fields, values) = (schema.at("type"), schema.at("properties"), schema.at("additionalProperties"));
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    let preserves = schema["x-kubernetes-preserve-unknown-fields"] == true;
    let is_at_root = level == Level::Root && !name.is_null();
    name.invalid_if(is_at_root && *name != "object", "must be object at the root");
    if !is_embedded {
        let is_free = preserves || schema["x-kubernetes-int-or-string"] == true;
        return name.required_if(name.is_null() && !is_free);
    }
    must_be(&name, "object", "x-kubernetes-embedded-resource");
    let detail = "must not be used if x-kubernetes-embedded-resource is set";
    values.forbidden_if(!values.is_null(), detail);
    let detail = "must name the fields of an embedded object without x-kubernetes-preserve-unknown-fields";
    fields.required_with_if(!preserves && fields.is_empty(), detail);
}

/// Checks that `kind`, `apiVersion` and `metadata` have their types, and that the metadata of the root restricts only
/// `name` and `generateName`, by value validations.
fn metadata(schema: &Field<'_>, level: Level) {
    let fields = schema.at("properties");
    if level == Level::Root || schema["x-kubernetes-embedded-resource"] == true {
        for (name, expected) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            let field = fields.at_key(name);
            let is_other = !field.is_null() && field["type"] != expected;
            field.at("type").invalid_if(is_other, format_args!("must be {expected}"));
        }
    }
    let metadata = fields.at_key("metadata");
    let Some(keywords) = metadata.as_object().filter(|_| level == Level::Root) else { return };
    let names = keywords.get("properties").and_then(Value::as_object);
    let is_name = |name: &String| ["name", "generateName"].contains(&name.as_str());
    let is_zero = |value: &Value| [Value::Null, false.into(), "".into()].contains(value);
    let is_plain =
        |(key, value): (&String, &Value)| ["type", "default", "properties"].contains(&key.as_str()) || is_zero(value);
    if !names.into_iter().flat_map(Map::keys).all(is_name) || !keywords.iter().all(is_plain) {
        metadata.forbidden("must not specify anything other than name and generateName");
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
fn alternatives(schema: &Field<'_>) {
    let free = |key: &str, index: usize, alternative: &Value| match key {
        "anyOf" => is_integer_or_string(&schema["anyOf"]),
        "allOf" => index == 0 && is_integer_or_string(&alternative["anyOf"]),
        _ => false,
    };
    values(schema, &free);
}

/// Checks `pattern` and the alternatives of a schema or of an alternative. `free` gets the keyword, the index and the
/// alternative, and returns `true` for one that may have types: directly for `anyOf`, in its nested `anyOf` for
/// `allOf`.
fn values(schema: &Field<'_>, free: &dyn Fn(&str, usize, &Value) -> bool) {
    for key in ALTERNATIVES {
        for (index, nested) in schema.at(key).items().enumerate() {
            match (key, free(key, index, nested.value())) {
                ("allOf", true) => alternative(&nested, &|key, _, _| key == "anyOf"),
                (_, true) => {}
                (_, false) => alternative(&nested, &|_, _, _| false),
            }
        }
    }
    let (not, expression) = (schema.at("not"), schema.at("pattern"));
    if not.is_object() {
        alternative(&not, &|_, _, _| false);
    }
    let is_valid = expression.as_str().is_none_or(pattern::is_valid);
    expression.invalid_if(!is_valid, "must be a valid regular expression");
}

/// Checks a schema inside `anyOf`, `oneOf`, `allOf` or `not`, which may only hold value validation.
fn alternative(schema: &Field<'_>, free: &dyn Fn(&str, usize, &Value) -> bool) {
    values(schema, free);
    let (items, fields) = (schema.at("items"), schema.at("properties"));
    if items.is_object() {
        alternative(&items, &|_, _, _| false);
    }
    fields.entries().for_each(|(_, field)| alternative(&field, &|_, _, _| false));
    for key in NOT_IN_ALTERNATIVES {
        let keyword = schema.at(key);
        let is_set = match keyword.value() {
            Value::Null => false,
            _ if key == "default" => true,
            Value::Bool(is_set) => *is_set,
            Value::Object(_) => true,
            _ => !keyword.is_empty(),
        };
        keyword.forbidden_if(is_set, "must not be set in an alternative");
    }
    let metadata = fields.at_key("metadata");
    metadata.forbidden_if(!metadata.is_null(), "must not be specified in a nested context");
}

/// Checks that each field and item of an alternative is declared by the schema outside of the alternatives, too
/// (`validateNestedValueValidationCompleteness`). `alternative` starts as the schema itself.
fn complete(alternative: &Value, schema: &Field<'_>) {
    if alternative["not"].is_object() {
        complete_children(&alternative["not"], schema);
    }
    for nested in ALTERNATIVES.iter().filter_map(|key| alternative[*key].as_array()).flatten() {
        complete_children(nested, schema);
    }
}

/// Applies `complete` to an alternative and its nested items and properties. Nothing is reported below a missing
/// declaration.
fn complete_children(alternative: &Value, schema: &Field<'_>) {
    complete(alternative, schema);
    let items = Some(&alternative["items"]).filter(|items| items.is_object());
    let items = items.map(|items| (items, schema.at("items")));
    let fields = pairs(&alternative["properties"]);
    let fields = fields.map(|(name, field)| (field, schema.at("properties").at_key(name)));
    for (nested, declared) in items.into_iter().chain(fields) {
        if declared.is_object() {
            complete_children(nested, &declared);
        } else {
            declared
                .required_with("must be declared outside of anyOf, oneOf, allOf and not, because one of them uses it");
        }
    }
}
