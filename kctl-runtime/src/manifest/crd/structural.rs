//! Checks that a schema is structural, uses supported keywords, and has valid defaults.
//!
//! The rules come from apiextensions-apiserver (`pkg/apiserver/schema`, Kubernetes documentation, "Specifying a
//! structural schema").
//!
//! A schema is structural if each value has one type that does not depend on other values. Only then can an API
//! server drop unknown fields, fill in defaults and apply patches field by field. So everything about the form of an
//! object (`type`, `properties`, `items`, `additionalProperties`, defaults) is outside of `oneOf`, `anyOf`, `allOf`
//! and `not`, which may only restrict values further:
//!
//! ```yaml
//! type: object
//! properties:
//!   disk: { type: string }
//!   bucket: { type: string }
//! oneOf:                      # restricts: exactly one of the two is set
//! - required: [disk]
//! - required: [bucket]
//! ```
//!
//! An API server reports these errors as well, but names the field of the CRD
//! (`spec.versions[0].schema.openAPIV3Schema.properties[spec]…`). The problems here have the path in an object and what
//! to write in Rust.

use serde_json::{Map, Value, json};

use super::{Problem, defaults};

/// The types of a schema. `null` is not one: a value that may be null has a type and `nullable: true`.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Keywords of JSON schema that a CRD cannot use.
const UNSUPPORTED: [&str; 8] =
    ["$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties", "uniqueItems"];
/// Values of `reason` of a CEL rule.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// The position of a schema in the object, which decides about additional rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// The object itself. It must be of type object, and may restrict its metadata.
    Root,
    /// `metadata` of the root: a schema can only restrict its name.
    Metadata,
    /// Any other value, at any depth.
    Below,
}

/// Checks the schema of a version, and adds what an API server would reject to `problems`.
///
/// The root may be neither null nor a map: API servers need its `metadata`.
pub(super) fn check(schema: &Value, problems: &mut Vec<Problem>) {
    if schema["nullable"] == true {
        problems.push(Problem::new("the object", "it can't be null", "leave `nullable` out"));
    }
    if !schema["additionalProperties"].is_null() {
        problems.push(Problem::new("the object", "it can't be a map", "give it fields"));
    }
    check_node(schema, "", Position::Root, problems);
}

/// Returns the path for messages. The empty path is the object itself.
fn name_of(path: &str) -> &str {
    if path.is_empty() { "the object" } else { path }
}

fn below(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Checks keywords whose value has to be of one type: a whole number, a number, a boolean, a list of strings.
///
/// An API server cannot decode such a CRD at all, and its error has the Go type instead of the path.
fn check_decoded(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    type Is = fn(&Value) -> bool;
    let kinds: [(&[&str], &str, Is); 4] = [
        (
            &["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"],
            "a whole number",
            |value| value.is_i64(),
        ),
        (&["maximum", "minimum", "multipleOf"], "a number", Value::is_number),
        (&["exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems"], "true or false", Value::is_boolean),
        (&["required", "x-kubernetes-list-map-keys"], "a list of strings", |value| {
            value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))
        }),
    ];
    for (keys, what, is) in kinds {
        for key in keys.iter().filter(|key| schema.get(**key).is_some_and(|value| !value.is_null() && !is(value))) {
            problems.push(Problem::new(name_of(path), format!("`{key}` is not {what}"), format!("write {what}")));
        }
    }
}

/// Checks one schema, and all below it. `position` has the rules of the root and of its metadata.
fn check_node(schema: &Value, path: &str, position: Position, problems: &mut Vec<Problem>) {
    check_decoded(schema, path, problems);
    check_keywords(schema, path, problems);
    check_value_type(schema, path, position, problems);
    check_extensions(schema, path, problems);
    check_embedded(schema, path, position, problems);
    check_lists(schema, path, problems);
    check_rules(schema, path, problems);
    if !schema["default"].is_null() {
        match position {
            Position::Root => problems.extend(defaults::check_object(schema)),
            Position::Metadata => {
                problems.push(Problem::new(name_of(path), "metadata has no default", "leave it out"));
            }
            Position::Below => problems.extend(defaults::check(schema, path)),
        }
    }
    check_alternatives(schema, path, position, problems);
    for (name, field) in fields_of(schema) {
        let is_metadata = position == Position::Root && name == "metadata";
        let is_known = position == Position::Root && ["apiVersion", "kind"].contains(&name.as_str());
        if is_known && !field["default"].is_null() {
            problems.push(Problem::new(name, "it has no default", "leave it out"));
        }
        check_node(field, &below(path, name), if is_metadata { Position::Metadata } else { Position::Below }, problems);
    }
    for (key, end) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            check_node(&schema[key], &format!("{path}{end}"), Position::Below, problems);
        }
    }
}

fn fields_of(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn has_fields(schema: &Value) -> bool {
    schema["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

/// Reports unsupported keywords, and keywords that exclude each other.
///
/// `$ref` remains only where schemars could not inline a type, because the type contains itself. A tuple has a list of
/// schemas in `items`, one for each position.
fn check_keywords(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut push = |what: String, help: &str| problems.push(Problem::new(name_of(path), what, help));
    for key in UNSUPPORTED {
        let is_set = schema.get(key).is_some_and(|value| !value.is_null() && value != false);
        if is_set {
            let help = match key {
                "$ref" => "write `#[kctl(schemaless)]` on a field of a type that contains itself",
                "uniqueItems" => "write `#[kctl(list = set)]`",
                // schemars writes it for maps whose keys are numbers.
                "patternProperties" => "use `String` as the key type of a map, or write `#[kctl(schemaless)]`",
                _ => "leave it out",
            };
            push(format!("`{key}` is not supported"), help);
        }
    }
    if has_fields(schema) && (schema["additionalProperties"].is_object() || schema["additionalProperties"] == false) {
        push("a type can't have both fields and arbitrary keys".into(), "put the map into a separate field");
    }
    if schema["items"].is_array() {
        push("items of a list have one type".into(), "use a struct instead of a tuple");
    }
    #[cfg(feature = "rules")]
    if let Some(text) = schema["pattern"].as_str()
        && let Err(error) = kctl_cel::pattern(text)
    {
        push(format!("`{text}` is not a regular expression: {error}"), "write one that Go's regexp reads");
    }
}

/// Checks that a value has one known type, unless it may be anything.
///
/// A type may be missing with `x-kubernetes-int-or-string`, `x-kubernetes-preserve-unknown-fields` and
/// `x-kubernetes-embedded-resource`. A list needs the type of its items.
fn check_value_type(schema: &Value, path: &str, position: Position, problems: &mut Vec<Problem>) {
    let is_free =
        schema["x-kubernetes-int-or-string"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true;
    let mut push = |what: String, help: &str| problems.push(Problem::new(name_of(path), what, help));
    let Some(name) = schema["type"].as_str().filter(|name| !name.is_empty()) else {
        if schema["type"].is_array() {
            push("several types for one value".into(), "use one type, or `#[kctl(schemaless)]`");
        } else if !is_free && schema["x-kubernetes-embedded-resource"] != true && schema.get("$ref").is_none() {
            let help = if schema["anyOf"].is_array() || schema["oneOf"].is_array() {
                "its variants have no common type: write `#[kctl(int_or_string)]` where they are a number or a string, \
                 or `#[kctl(schemaless)]`"
            } else {
                "write `#[kctl(schemaless)]` where any value goes, or `#[kctl(type_ = \"…\")]`"
            };
            push("the value has no type".into(), help);
        }
        return;
    };
    if position == Position::Root && name != "object" {
        push(format!("it is of type {name}"), "a kind is an object");
    }
    if position == Position::Metadata && name != "object" {
        push(format!("it is of type {name}"), "metadata is an object");
    }
    if !TYPES.contains(&name) {
        push(format!("unknown type `{name}`"), &format!("the types are {}", TYPES.join(", ")));
    }
    if name == "array" && schema["items"].is_null() {
        push("the type of its items is missing".into(), "write the type of the items");
    }
}

/// Checks the `x-kubernetes-…` keywords against each other and the type.
///
/// `list-type` belongs to lists and `map-type` to objects. `int-or-string` excludes `preserve-unknown-fields` and
/// `embedded-resource`, because its value is never an object.
fn check_extensions(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut push = |what: String, help: &str| problems.push(Problem::new(name_of(path), what, help));
    let is = |key: &str| schema[key] == true;
    let (preserves, embeds) = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource");
    if schema[preserves] == false {
        push(format!("`{preserves}` can't be false"), "leave it out");
    }
    if is("x-kubernetes-int-or-string") {
        for other in [preserves, embeds] {
            if is(other) {
                push(
                    format!("`int_or_string` can't be combined with `{other}`"),
                    "leave out `int_or_string` or the other",
                );
            }
        }
    }
    for (key, expected, values) in [
        ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
        ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
    ] {
        let Some(text) = schema[key].as_str() else { continue };
        if schema["type"] != expected {
            let what = format!("`{key}` needs a value of type {expected}");
            push(what, "remove the option, or change the type of the field");
        }
        if !values.contains(&text) {
            push(format!("`{key}` is not one of {}", values.join(", ")), "write one of them");
        }
    }
}

/// Checks embedded objects, and restrictions of metadata.
///
/// An embedded object, such as the Pod template of a Deployment, has `apiVersion`, `kind` and `metadata`, which an API
/// server validates by itself. Its other fields are dropped unless the schema names them or preserves unknown ones.
/// A CRD may restrict only `name` and `generateName` of `metadata`.
fn check_embedded(schema: &Value, path: &str, position: Position, problems: &mut Vec<Problem>) {
    let mut push = |what: &str, help: &str| problems.push(Problem::new(name_of(path), what, help));
    let is_embedded = schema["x-kubernetes-embedded-resource"] == true;
    if is_embedded {
        if schema["type"] != "object" {
            push("an embedded object is of type object", "write `#[kctl(embedded)]` on a field with an object");
        }
        if !has_fields(schema) && schema["x-kubernetes-preserve-unknown-fields"] != true {
            push("all of the embedded object would be dropped", "write `#[kctl(embedded, preserve_unknown)]`");
        }
        if !schema["additionalProperties"].is_null() {
            push("an embedded object can't be a map", "write `#[kctl(embedded, preserve_unknown)]` on a `Json` field");
        }
    }
    if !is_embedded && position != Position::Root {
        return;
    }
    for (name, expected) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        let Some(field) = schema["properties"].get(name) else { continue };
        if field["type"] != expected {
            push(&format!("`{name}` must be of type {expected}"), "rename the field");
        }
    }
    let Some(metadata) = schema["properties"]["metadata"].as_object().filter(|_| position == Position::Root) else {
        return;
    };
    let names = metadata.get("properties").and_then(Value::as_object);
    let is_named = names.into_iter().flat_map(Map::keys).all(|name| ["name", "generateName"].contains(&name.as_str()));
    let allowed = ["type", "properties", "default"];
    if !is_named || metadata.keys().any(|key| !allowed.contains(&key.as_str())) {
        push("only the name of metadata can be restricted", "remove the rest: API servers validate it");
    }
}

/// Checks the items of sets and maps, and the keys of maps.
///
/// Server-side apply merges a `set` by whole items and a `map` by its keys. So items of a set must be compared as a
/// whole. Items of a map must be objects, and each key must be a scalar that is required or has a default.
fn check_lists(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
    let keys = schema["x-kubernetes-list-map-keys"].as_array().map(Vec::as_slice).unwrap_or_default();
    let items = &schema["items"];
    let mut push = |what: String, help: String| problems.push(Problem::new(name_of(path), what, help));
    if !keys.is_empty() && list_type != "map" {
        push("it has keys but is not a map".into(), "write `#[kctl(list = map(\"name\"))]`".into());
    }
    if list_type == "map" && keys.is_empty() {
        push("a list that is a map needs keys".into(), "write `#[kctl(list = map(\"name\"))]`".into());
    }
    if !items.is_object() || !["set", "map"].contains(&list_type) || schema["type"] != "array" {
        return;
    }
    if items["nullable"] == true {
        push(format!("items of a {list_type} can't be null"), "use items that are not an `Option`".into());
    }
    if list_type == "set" {
        let is_split = match items["type"].as_str() {
            Some("object") => items["x-kubernetes-map-type"] != "atomic",
            Some("array") => items["x-kubernetes-list-type"].as_str().is_some_and(|list_type| list_type != "atomic"),
            _ => false,
        };
        if is_split {
            let help = "write `#[kctl(map = atomic)]` on the type of the items, or `list = map(\"…\")` on the list";
            push("items of a set are compared as a whole".into(), help.into());
        }
        return;
    }
    if items["type"] != "object" {
        push("items of a map are objects".into(), "write `#[kctl(list = set)]`".into());
        return;
    }
    for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
        if keys[..index].iter().any(|earlier| earlier == key) {
            push(format!("the key `{key}` occurs twice"), "write it once".into());
        }
        check_map_key(items, key, &mut push);
    }
}

/// Checks a key of a map: a field of its items that is a scalar and never absent.
fn check_map_key(items: &Value, key: &str, push: &mut impl FnMut(String, String)) {
    let Some(field) = items["properties"].get(key) else {
        return push(format!("its items have no field `{key}`"), "write the name as in JSON".into());
    };
    if ["object", "array"].contains(&field["type"].as_str().unwrap_or_default()) {
        push(format!("the key `{key}` is not a scalar"), "use a field with a string or a number".into());
    }
    if field["nullable"] == true {
        push(
            format!("the key `{key}` can be null"),
            format!("use a type other than `Option` for `{key}`, or write `#[kctl(nullable = false)]` on it"),
        );
    }
    let is_required = items["required"].as_array().is_some_and(|all| all.iter().any(|name| name == key));
    if !is_required && field["default"].is_null() {
        push(
            format!("the key `{key}` can be missing"),
            format!("use a type other than `Option` for `{key}`, or write `#[kctl(default = …)]` on it"),
        );
    }
}

/// Checks all fields of a rule except its expression, which [`cel`](super::cel) compiles.
///
/// A rule of several lines needs a message, because the API server would print the rule instead.
fn check_rules(schema: &Value, path: &str, problems: &mut Vec<Problem>) {
    let all = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    for rule in all {
        let text = |key: &str| rule[key].as_str();
        let source = text("rule").unwrap_or_default();
        let mut push = |what: String, help: &str| problems.push(Problem::new(name_of(path), what, help));
        let blank = |key: &str| text(key).is_some_and(|text| !text.is_empty() && text.trim().is_empty());
        let breaks = |text: &str| text.trim().contains(['\n', '\r']);
        if source.trim().is_empty() {
            push("a rule without an expression".into(), "write the condition");
        } else if breaks(source) && text("message").is_none_or(|text| text.trim().is_empty()) {
            push(format!("the rule `{source}` has several lines and no message"), "write `message = \"…\"`");
        }
        for key in ["message", "messageExpression", "fieldPath"] {
            if blank(key) {
                push(format!("the {key} of the rule `{source}` is blank"), "write one, or leave it out");
            }
        }
        for key in ["message", "fieldPath"] {
            if text(key).is_some_and(breaks) {
                push(format!("the {key} of the rule `{source}` has several lines"), "write one line");
            }
        }
        if let Some(reason) = text("reason").filter(|reason| !REASONS.contains(reason)) {
            push(format!("unknown reason `{reason}`"), &format!("write one of {}", REASONS.join(", ")));
        }
        let field = text("fieldPath").unwrap_or_default();
        if !field.trim().is_empty() && super::paths::schema_at_path(schema, field).is_none() {
            let help = "write it from the type of the rule, as `.name`";
            push(format!("the rule `{source}` names `{field}`, which is not a field"), help);
        }
    }
}

/// Checks `anyOf`, `oneOf`, `allOf` and `not`, which may only restrict the schema that contains them.
fn check_alternatives(schema: &Value, path: &str, position: Position, problems: &mut Vec<Problem>) {
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    let is_int_or_string = schema["anyOf"] == types;
    let is_int_or_string_in_all_of = schema["allOf"][0]["anyOf"] == types;
    let n_any = schema["anyOf"].as_array().map_or(0, Vec::len) + schema["oneOf"].as_array().map_or(0, Vec::len);
    for (index, (key, one)) in all_of(schema).enumerate() {
        if key == "anyOf" && is_int_or_string {
            continue;
        }
        let is_first_all = key == "allOf" && is_int_or_string_in_all_of && index == n_any;
        let either = if is_first_all { IntOrString::Allowed } else { IntOrString::Forbidden };
        // API servers compare alternatives with the schema around them only at the root.
        let base = (position == Position::Root).then_some(schema);
        check_nested(one, base, path, either, problems);
    }
}

/// Returns the alternatives of a schema with their keyword, in a fixed order.
fn all_of(schema: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let lists = ["anyOf", "oneOf", "allOf"].into_iter();
    let lists = lists.flat_map(|key| schema[key].as_array().into_iter().flatten().map(move |one| (key, one)));
    lists.chain(schema.get("not").filter(|not| not.is_object()).map(|not| ("not", not)))
}

/// Decides if the alternatives `integer` and `string` are allowed in a restriction, as `IntOrString` prints them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IntOrString {
    Allowed,
    Forbidden,
}

/// Checks a restriction. `base` is the schema that contains it, if that has to name all fields.
fn check_nested(schema: &Value, base: Option<&Value>, path: &str, either: IntOrString, problems: &mut Vec<Problem>) {
    let forbidden = [
        "type",
        "title",
        "description",
        "default",
        "nullable",
        "additionalProperties",
        "x-kubernetes-validations",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
    ];
    for key in forbidden {
        let is_set = schema.get(key).is_some_and(|value| !value.is_null() && value != false && value != "");
        if is_set {
            let help =
                "its variants must be objects with different fields, or write `#[kctl(schemaless)]` on the field";
            problems.push(Problem::new(name_of(path), format!("`{key}` can't depend on the variant"), help));
        }
    }
    #[cfg(feature = "rules")]
    if let Some(text) = schema["pattern"].as_str()
        && let Err(error) = kctl_cel::pattern(text)
    {
        let what = format!("`{text}` is not a regular expression: {error}");
        problems.push(Problem::new(name_of(path), what, "write one that Go's regexp reads"));
    }
    for (name, field) in fields_of(schema) {
        if name == "metadata" {
            problems.push(Problem::new(name_of(path), "metadata can't depend on the variant", "rename the field"));
        }
        let base_field = base.map(|base| base["properties"].get(name));
        if base_field == Some(None) {
            let what = format!("`{name}` is only in a variant");
            problems.push(Problem::new(name_of(path), what, "it must be a field of the type too"));
        }
        check_nested(field, base_field.flatten(), &below(path, name), IntOrString::Forbidden, problems);
    }
    if schema["items"].is_object() {
        check_nested(&schema["items"], None, &format!("{path}[]"), IntOrString::Forbidden, problems);
    }
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    for (key, one) in all_of(schema) {
        if either == IntOrString::Allowed && key == "anyOf" && schema["anyOf"] == types {
            continue;
        }
        check_nested(one, base, path, IntOrString::Forbidden, problems);
    }
}
