//! Finds what kube's derive would panic about: enums whose variants have no common structural schema, types
//! that contain themselves, and keywords that Kubernetes spells in another way. It also reports fields that
//! [`flattened`](super::flattened) has found twice.
//!
//! It reads the schema as schemars prints it, with references, before any step changes it. So it can name the Rust type
//! in a message (`Port: the variants are of types integer and string`), which the finished CRD no longer contains.
//! kube's derive panics about some of these schemas. This module runs first, and reports all problems at once.

use serde_json::{Map, Value};

use super::{
    Problem,
    flattened::LOST,
    owner::{resolve, type_of_ref},
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
    TypeCheck { root, name: title, problems: &mut problems }.walk(root, "", 0);
    let mut used = Vec::new();
    references(root, root, &mut used);
    for (name, schema) in root["$defs"].as_object().into_iter().flatten() {
        if !used.contains(&name.as_str()) || name.starts_with("io.k8s.") {
            continue;
        }
        let mut check = TypeCheck { root, name, problems: &mut problems };
        check.walk(schema, "", 0);
        if contains(root, schema, name, &mut Vec::new()) {
            let help = "write `#[kctl(schemaless)]` on the field that holds it";
            check.report("", "the type contains itself, which a CRD can't express", help);
        }
    }
    problems
}

/// The check of one type, without the types that it refers to.
struct TypeCheck<'a> {
    /// The schema of the kind, with the definitions of all types.
    root: &'a Value,
    /// The name of the type, with which each path in a message begins.
    name: &'a str,
    problems: &'a mut Vec<Problem>,
}

/// The steps of the check. Each `path` is the place within the type, and empty for the type itself.
impl TypeCheck<'_> {
    fn report(&mut self, path: &str, what: impl Into<String>, help: impl Into<String>) {
        let path = if path.is_empty() { self.name.to_owned() } else { format!("{}.{path}", self.name) };
        self.problems.push(Problem::new(&path, what, help));
    }

    /// Checks a schema and those below it.
    fn walk(&mut self, schema: &Value, path: &str, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        for text in schema[LOST].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.report(path, text, "rename one of the two");
        }
        for (key, mark) in [("exclusiveMinimum", "exclusive_minimum"), ("exclusiveMaximum", "exclusive_maximum")] {
            if schema[key].is_number() {
                let what = format!("API servers don't support a numeric `{key}`");
                self.report(path, what, format!("write `#[kctl({mark} = {})]`", schema[key]));
            }
        }
        if schema["prefixItems"].is_array() {
            self.report(path, "the fields of a tuple have no names, which a CRD can't express", "use a struct");
        }
        for key in ["oneOf", "anyOf"] {
            let is_int_or_string = schema["x-kubernetes-int-or-string"] == true;
            let Some(variants) = schema[key].as_array().filter(|_| !is_int_or_string) else { continue };
            if !self.types(variants, key, path) {
                self.fields(schema, path);
            }
            for variant in variants {
                self.walk(variant, path, depth + 1);
            }
        }
        for (field, below) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            self.walk(below, &path, depth + 1);
        }
        for (key, end) in [("items", "[]"), ("additionalProperties", "{}")] {
            if schema[key].is_object() {
                self.walk(&schema[key], &format!("{path}{end}"), depth + 1);
            }
        }
    }

    /// Reports variants of different JSON types. Returns `true` if it did.
    ///
    /// The remedy depends on the types. A number and a string are an `IntOrString`. Unit variants in an enum that has
    /// variants with data need empty data. Everything else is a struct with optional fields or has no schema.
    fn types(&mut self, variants: &[Value], key: &str, path: &str) -> bool {
        let types = variants.iter().filter_map(|one| resolve(self.root, one)["type"].as_str());
        let types: Vec<&str> = types.filter(|name| *name != "null").collect();
        let Some(other) = types.iter().find(|other| **other != types[0]) else { return false };
        let both = [types[0], other];
        let help = if both.iter().all(|name| ["integer", "string"].contains(name)) {
            "write `#[kctl(int_or_string)]` on the field, or use `IntOrString`"
        } else if key == "anyOf" {
            "make a struct with an optional field for each variant, and say `#[kctl(exactly_one_of(…))]` on it; or \
             write `#[kctl(schemaless)]` on the field"
        } else {
            "give the variants without fields empty ones (`Off {}`), so that all of them are objects"
        };
        let what = format!("the variants are of types {} and {other}; an API server takes one", types[0]);
        self.report(path, what, help);
        true
    }

    /// Reports a field that two variants have and that cannot be one field of a structural schema.
    ///
    /// Kinds of `#[resource]` pass [`union`], which joins fields that differ only in restrictions. For kinds of kube's
    /// own derive every difference is a problem.
    fn fields(&mut self, schema: &Value, path: &str) {
        let mut whole = inline_refs(self.root, schema, &mut Vec::new());
        values::complete(&mut whole, Formats::OfTypes);
        let is_joined = self.root[COMPLETED] == true;
        let found = if is_joined { union::conflict(&mut whole) } else { union::difference(&whole) };
        let Some(conflict) = found else { return };
        let help = if is_joined {
            conflict.help()
        } else {
            "declare the kind with `#[resource]`, which joins such variants, or rename the field in one of them"
                .to_owned()
        };
        let what = if conflict.field.is_empty() {
            conflict.what
        } else {
            format!("`{}` can't be one field: {}", conflict.field, conflict.what)
        };
        self.report(path, what, help);
    }
}

/// Returns a schema with its references resolved. A type within itself is left out, and reported elsewhere.
fn inline_refs<'a>(root: &'a Value, schema: &'a Value, within: &mut Vec<&'a str>) -> Value {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Array(all) => return all.iter().map(|one| inline_refs(root, one, within)).collect(),
        other => return other.clone(),
    };
    let mut whole = Map::new();
    if let Some(name) = type_of_ref(&schema["$ref"]).filter(|name| !within.contains(name)) {
        within.push(name);
        if let Value::Object(referred) = inline_refs(root, &root["$defs"][name], within) {
            whole = referred;
        }
        within.pop();
    }
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

/// Collects the types that a schema refers to.
fn references<'a>(root: &'a Value, schema: &'a Value, found: &mut Vec<&'a str>) {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Array(all) => return all.iter().for_each(|value| references(root, value, found)),
        _ => return,
    };
    for (key, value) in fields.iter().filter(|(key, _)| *key != "$defs") {
        match type_of_ref(value).filter(|name| key == "$ref" && !found.contains(name)) {
            Some(name) => {
                found.push(name);
                references(root, &root["$defs"][name], found);
            }
            None => references(root, value, found),
        }
    }
}

/// Returns `true` if a type contains itself at any depth.
fn contains<'a>(root: &'a Value, schema: &'a Value, name: &str, seen: &mut Vec<&'a str>) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            if key != "$ref" {
                return contains(root, value, name, seen);
            }
            let Some(target) = type_of_ref(value) else { return false };
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
