//! Removes the API documentation of built-in types from a CRD.
//!
//! It is most of the bytes, and often more than client-side apply can keep in its annotation (262,144).
//!
//! `kubectl apply` without `--server-side` stores the applied object in that annotation, and fails for a larger one with
//! `metadata.annotations: Too long`. controller-gen has the option `maxDescLen=0` for it, which also removes the
//! descriptions that the user wrote. Here only built-in types lose theirs.

use std::collections::HashSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Removes descriptions that come from k8s-openapi's types. Descriptions that the user wrote are kept.
///
/// `root` is the schema of the kind with references, in which the names of built-in types begin with `io.k8s.`.
pub(super) fn strip_built_in(crd: &mut CustomResourceDefinition, root: &Value) {
    let definitions = root.get("$defs").or_else(|| root.get("definitions")).and_then(Value::as_object);
    let mut built_in = HashSet::new();
    for (_, definition) in definitions.into_iter().flatten().filter(|(name, _)| name.starts_with("io.k8s.")) {
        collect(definition, &mut built_in);
    }
    let schemas = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut());
    for schema in schemas.filter_map(|validation| validation.open_api_v3_schema.as_mut()) {
        strip(schema, &built_in);
    }
}

fn collect<'a>(node: &'a Value, found: &mut HashSet<&'a str>) {
    match node {
        Value::Object(map) => {
            found.extend(map.get("description").and_then(Value::as_str));
            map.values().for_each(|value| collect(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
        _ => {}
    }
}

fn strip(schema: &mut JSONSchemaProps, built_in: &HashSet<&str>) {
    if schema.description.as_deref().is_some_and(|text| built_in.contains(text)) {
        schema.description = None;
    }
    for field in schema.properties.iter_mut().flat_map(|fields| fields.values_mut()) {
        strip(field, built_in);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        strip(values, built_in);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => strip(items, built_in),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(|items| strip(items, built_in)),
        None => {}
    }
    for all in [&mut schema.all_of, &mut schema.any_of, &mut schema.one_of].into_iter().flatten() {
        for one in all.iter_mut() {
            strip(one, built_in);
        }
    }
}
