//! Finds what kube's derive would panic about: enums whose variants have no common structural schema, types
//! that contain themselves, and keywords that Kubernetes spells in another way. It also reports fields that
//! [`flattened`](super::flattened) has found twice.
//!
//! It reads the schema as schemars prints it, with references, before any step changes it. So it can name the Rust type
//! in a message (`Port: the variants are of types integer and string`), which the finished CRD no longer contains.
//! kube's derive panics about some of these schemas; this module runs first, and reports all problems at once.

use serde_json::{Map, Value};

use super::{
    Problem,
    flattened::LOST,
    owner::resolve,
    structure::COMPLETED,
    union,
    values::{self, Formats},
};

/// Types nested deeper are not checked: they contain themselves, which was reported.
const DEPTH_MAX: usize = 64;

/// Checks the schema of a kind with its references.
///
/// Each type of the user is checked once, however often it is used. Types of k8s-openapi (`io.k8s.…`) are left out: their
/// schemas are known to be valid.
pub(super) fn check(root: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let title = root["title"].as_str().unwrap_or("the kind");
    walk(root, root, title, "", &mut problems, 0);
    if let Some(Value::Object(definitions)) = root.get("$defs") {
        let mut used = Vec::new();
        references(root, root, &mut used);
        let own = definitions.iter().filter(|(name, _)| used.contains(&name.as_str()) && !name.starts_with("io.k8s."));
        for (name, schema) in own {
            walk(root, schema, name, "", &mut problems, 0);
            if contains(root, schema, name, &mut Vec::new()) {
                problems.push(problem(
                    name,
                    "",
                    "the type contains itself, which a CRD can't express",
                    "write `#[kctl(schemaless)]` on the field that holds it",
                ));
            }
        }
    }
    problems
}

fn problem(name: &str, path: &str, what: impl Into<String>, help: impl Into<String>) -> Problem {
    let path = if path.is_empty() { name.to_owned() } else { format!("{name}.{path}") };
    Problem::new(&path, what, help)
}

/// Checks one type, without the types that it refers to.
fn walk(root: &Value, schema: &Value, name: &str, path: &str, problems: &mut Vec<Problem>, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    for text in schema[LOST].as_array().into_iter().flatten().filter_map(Value::as_str) {
        problems.push(problem(name, path, text, "rename one of the two"));
    }
    for (key, mark) in [("exclusiveMinimum", "exclusive_minimum"), ("exclusiveMaximum", "exclusive_maximum")] {
        if schema[key].is_number() {
            let what = format!("API servers don't support a numeric `{key}`");
            problems.push(problem(name, path, what, format!("write `#[kctl({mark} = {})]`", schema[key])));
        }
    }
    if schema["prefixItems"].is_array() {
        problems.push(problem(
            name,
            path,
            "the fields of a tuple have no names, which a CRD can't express",
            "use a struct",
        ));
    }
    for key in ["oneOf", "anyOf"] {
        let is_either = schema["x-kubernetes-int-or-string"] == true;
        let Some(variants) = schema[key].as_array().filter(|_| !is_either) else { continue };
        if !types(root, variants, key, name, path, problems) {
            fields(root, schema, name, path, problems);
        }
        for variant in variants {
            walk(root, variant, name, path, problems, depth + 1);
        }
    }
    for (field, below) in schema["properties"].as_object().into_iter().flatten() {
        walk(root, below, name, &join(path, field), problems, depth + 1);
    }
    for (key, end) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            walk(root, &schema[key], name, &format!("{path}{end}"), problems, depth + 1);
        }
    }
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Reports variants of different JSON types. Returns `true` if it did.
///
/// The remedy depends on the types. A number and a string are an `IntOrString`. Unit variants beside variants with data
/// need empty data. Everything else is a struct with optional fields or has no schema.
fn types(root: &Value, variants: &[Value], key: &str, name: &str, path: &str, problems: &mut Vec<Problem>) -> bool {
    let types: Vec<&str> = variants.iter().filter_map(|one| resolve(root, one)["type"].as_str()).collect();
    let types: Vec<&str> = types.into_iter().filter(|name| *name != "null").collect();
    let Some(other) = types.iter().find(|other| **other != types[0]) else { return false };
    let both = [types[0], other];
    let help = if both.iter().all(|name| ["integer", "string"].contains(name)) {
        "write `#[kctl(int_or_string)]` on the field, or use `IntOrString`"
    } else if key == "anyOf" {
        "make a struct with an optional field for each variant, and say `#[kctl(exactly_one_of(…))]` on it; or write \
         `#[kctl(schemaless)]` on the field"
    } else {
        "give the variants without fields empty ones (`Off {}`), so that all of them are objects"
    };
    let what = format!("the variants are of types {} and {other}; an API server takes one", types[0]);
    problems.push(problem(name, path, what, help));
    true
}

/// Reports a field that two variants have and that cannot be one field of a structural schema.
///
/// Kinds of `#[resource]` pass [`union`], which joins fields that differ only in restrictions. For kinds of kube's own
/// derive every difference is a problem.
fn fields(root: &Value, schema: &Value, name: &str, path: &str, problems: &mut Vec<Problem>) {
    let mut whole = inline_refs(root, schema, &mut Vec::new());
    values::complete(&mut whole, Formats::OfTypes);
    let is_joined = root[COMPLETED] == true;
    let found = if is_joined { union::conflict(&mut whole) } else { union::difference(&whole) };
    let Some(conflict) = found else { return };
    let help = if is_joined {
        conflict.help()
    } else {
        "declare the kind with `#[resource]`, which joins such variants, or rename the field in one of them".to_owned()
    };
    let what = if conflict.field.is_empty() {
        conflict.what
    } else {
        format!("`{}` can't be one field: {}", conflict.field, conflict.what)
    };
    problems.push(problem(name, path, what, help));
}

/// Returns a schema with its references resolved. A type within itself is left out, and reported elsewhere.
fn inline_refs<'a>(root: &'a Value, schema: &'a Value, within: &mut Vec<&'a str>) -> Value {
    match schema {
        Value::Object(fields) => {
            let target = schema["$ref"].as_str().and_then(|text| text.strip_prefix("#/$defs/"));
            let mut whole = match target {
                Some(target) if !within.contains(&target) => {
                    within.push(target);
                    let referred = inline_refs(root, &root["$defs"][target], within);
                    within.pop();
                    match referred {
                        Value::Object(fields) => fields,
                        _ => Map::new(),
                    }
                }
                _ => Map::new(),
            };
            for (key, value) in fields.iter().filter(|(key, _)| *key != "$ref" && *key != "$defs") {
                let value = inline_refs(root, value, within);
                match (whole.get_mut(key), value) {
                    (Some(Value::Object(existing)), Value::Object(more)) => existing.extend(more),
                    (Some(Value::Array(existing)), Value::Array(more)) => existing.extend(more),
                    (_, value) => drop(whole.insert(key.clone(), value)),
                }
            }
            Value::Object(whole)
        }
        Value::Array(all) => all.iter().map(|one| inline_refs(root, one, within)).collect(),
        other => other.clone(),
    }
}

/// Collects the types that a schema refers to.
fn references<'a>(root: &'a Value, schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "$defs") {
                let target = value.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix("#/$defs/"));
                match target {
                    Some(target) if !found.contains(&target) => {
                        found.push(target);
                        references(root, &root["$defs"][target], found);
                    }
                    _ => references(root, value, found),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| references(root, value, found)),
        _ => {}
    }
}

/// Returns `true` if a type contains itself at any depth.
fn contains<'a>(root: &'a Value, schema: &'a Value, name: &str, seen: &mut Vec<&'a str>) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            if key != "$ref" {
                return contains(root, value, name, seen);
            }
            let Some(target) = value.as_str().and_then(|text| text.strip_prefix("#/$defs/")) else { return false };
            if target == name {
                return true;
            }
            if seen.contains(&target) {
                return false;
            }
            seen.push(target);
            contains(root, &root["$defs"][target], name, seen)
        }),
        Value::Array(all) => all.iter().any(|value| contains(root, value, name, seen)),
        _ => false,
    }
}
