//! `/openapi/v2` and `/openapi/v3`: the shapes of all kinds, as `kubectl explain` and client-side validation read them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    kinds::{Registry, Resource},
    schema,
};

/// `/openapi/v3`: where the document of each group and version is.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let root = root(&resource.of.group, &resource.version);
        let url = json!({ "serverRelativeURL": format!("/openapi/v3/{root}") });
        paths.insert(root, url);
    }
    json!({ "paths": paths })
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The document of one group and version.
pub(crate) fn v3(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let here: Vec<_> = registry.all().filter(|r| r.of.group == group && r.version == version).collect();
    if here.is_empty() {
        return None;
    }
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    for resource in here {
        let name = add_schema(resource, &mut schemas);
        add_paths(resource, &name, "#/components/schemas/", &mut paths);
    }
    let schemas = schemas
        .into_iter()
        .map(|(name, schema)| (name, with_references(&schema, "#/components/schemas/")))
        .collect::<Map<_, _>>();
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.0" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

/// `/openapi/v2`.
pub(crate) fn v2(registry: &Registry) -> Value {
    let (mut definitions, mut paths) = (Map::new(), Map::new());
    for resource in registry.all() {
        let name = add_schema(resource, &mut definitions);
        add_paths(resource, &name, "#/definitions/", &mut paths);
    }
    let definitions = definitions
        .into_iter()
        .map(|(name, schema)| (name, with_references(&schema, "#/definitions/")))
        .collect::<Map<_, _>>();
    json!({
        "swagger": "2.0",
        "info": { "title": "Kubernetes", "version": "v1.36.0" },
        "paths": paths,
        "definitions": definitions,
    })
}

/// Adds the schema of a kind and of all that it refers to; returns its name.
fn add_schema(resource: &Resource, schemas: &mut Map<String, Value>) -> String {
    let (group, version, kind) = (&resource.of.group, &resource.version, resource.kind());
    let gvk = json!([{ "group": group, "version": version, "kind": kind }]);
    if let Some(custom) = &resource.custom {
        let reversed: Vec<&str> = group.split('.').rev().collect();
        let name = format!("{}.{version}.{kind}", reversed.join("."));
        let mut schema = custom.schema.clone();
        if !schema.is_object() {
            schema = json!({ "type": "object" });
        }
        schema["x-kubernetes-group-version-kind"] = gvk;
        schema["properties"]["apiVersion"] = json!({ "type": "string" });
        schema["properties"]["kind"] = json!({ "type": "string" });
        let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        schema["properties"]["metadata"] = json!({ "$ref": meta });
        schemas.insert(name.clone(), schema);
        add_types(meta, schemas);
        return name;
    }
    let name = schema::name_of(&resource.api_version(), kind).unwrap_or_default().to_owned();
    add_types(&name, schemas);
    name
}

fn add_types(first: &str, schemas: &mut Map<String, Value>) {
    let mut left = BTreeSet::from([first.to_owned()]);
    while let Some(name) = left.pop_first() {
        let Some(schema) = schema::Schema::named(&name).filter(|_| !schemas.contains_key(&name)) else { continue };
        references(schema.json(), &mut left);
        schemas.insert(name, schema.json().clone());
    }
}

fn references(node: &Value, found: &mut BTreeSet<String>) {
    match node {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// References as documents write them.
fn with_references(node: &Value, prefix: &str) -> Value {
    match node {
        Value::Object(map) => {
            let changed = map.iter().map(|(key, value)| match value {
                Value::String(name) if key == "$ref" && !name.starts_with('#') => {
                    (key.clone(), format!("{prefix}{name}").into())
                }
                value => (key.clone(), with_references(value, prefix)),
            });
            Value::Object(changed.collect())
        }
        Value::Array(items) => items.iter().map(|value| with_references(value, prefix)).collect(),
        other => other.clone(),
    }
}

/// The operations of a resource: what kubectl looks at to know that the server validates fields.
fn add_paths(resource: &Resource, schema: &str, prefix: &str, paths: &mut Map<String, Value>) {
    let root = root(&resource.of.group, &resource.version);
    let place = if resource.listed.namespaced { "namespaces/{namespace}/" } else { "" };
    let gvk = json!({ "group": resource.of.group, "version": resource.version, "kind": resource.kind() });
    let body = if prefix.starts_with("#/components") {
        json!({ "requestBody": { "content": { "application/json": { "schema": { "$ref": format!("{prefix}{schema}") } } } } })
    } else {
        json!({})
    };
    let operation = |verb: &str| {
        let mut operation = body.clone();
        operation["x-kubernetes-action"] = verb.into();
        operation["x-kubernetes-group-version-kind"] = gvk.clone();
        operation["parameters"] = ["dryRun", "fieldManager", "fieldValidation"]
            .iter()
            .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }))
            .collect();
        operation["responses"] = json!({ "200": { "description": "OK" } });
        operation
    };
    let collection = format!("/{root}/{place}{}", resource.of.resource);
    let object = json!({ "put": operation("put"), "patch": operation("patch"), "delete": operation("delete") });
    paths.insert(format!("{collection}/{{name}}"), object);
    paths.insert(collection, json!({ "post": operation("post") }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_a_document_is_in_it() {
        let document = v3(&Registry::built_in(), "apps", "v1").unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50);
        for name in found {
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }
}
