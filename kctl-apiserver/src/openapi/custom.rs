//! Custom kinds in the `OpenAPI` documents (`k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder`).
//!
//! Each version of a CRD contributes two types, the object and its list. `OpenAPI` v2 cannot express all of a
//! structural schema, so parts are hidden there.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{META, openapi_version::OpenApiVersion};
use crate::registry::Resource;

/// The document that descriptions of standard fields link to, by a fragment such as `#metadata`.
const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The description of `apiVersion`, upstream's string for all custom kinds.
const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
/// The description of `kind`.
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// Returns the type name of a custom kind: the group with its labels reversed, the version and the kind, such as
/// `com.example.v1.Thing`.
///
/// `kind` is the kind of the object or of the list.
pub(super) fn name_of(resource: &Resource, kind: &str) -> String {
    let reversed: Vec<&str> = resource.id.group.split('.').rev().collect();
    format!("{}.{}.{kind}", reversed.join("."), resource.version)
}

/// Returns the types of a custom kind: the object and its list. Built-in kinds have none here.
///
/// A schema that preserves unknown fields at its root is published in version 2 as an object without fields. The
/// standard fields replace the schemas that the CRD declares for them.
pub(super) fn types(resource: &Resource, version: OpenApiVersion) -> Vec<(String, Value)> {
    let Some(custom) = &resource.custom else { return Vec::new() };
    let name = name_of(resource, resource.kind_name());
    let mut own = match (version, custom.schema.is_object()) {
        (_, false) => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        (OpenApiVersion::Two, true) => older(&custom.schema),
        (OpenApiVersion::Three, true) => complete_schema(&custom.schema),
    };
    let hides_all = version == OpenApiVersion::Two && own["x-kubernetes-preserve-unknown-fields"] == true;
    if hides_all {
        own = json!({ "type": "object" });
    } else {
        let metadata = object_metadata(version);
        for (field, property) in [("apiVersion", text(API_VERSION)), ("kind", text(KIND)), ("metadata", metadata)] {
            own["properties"][field] = property;
        }
    }
    let mut list = json!({
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind_name()),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text(API_VERSION),
            "kind": text(KIND),
            "metadata": standard("list", "types-kinds", "ListMeta", version),
            "items": {
                "description": format!("List of {}. More info: {CONVENTIONS}", resource.id.resource),
                "type": "array",
                "items": version.reference(&name),
            },
        },
    });
    for (shown, kind) in [(&mut own, resource.kind_name()), (&mut list, &resource.list_kind)] {
        let (group, version) = (&resource.id.group, &resource.version);
        shown["x-kubernetes-group-version-kind"] = json!([{ "group": group, "version": version, "kind": kind }]);
        if let Some(fields) = custom.version["selectableFields"].as_array() {
            let path =
                |field: &Value| field["jsonPath"].as_str().unwrap_or_default().trim_start_matches('.').to_owned();
            let fields = fields.iter().map(|field| json!({ "fieldPath": path(field) }));
            shown["x-kubernetes-selectable-fields"] = fields.collect();
        }
    }
    vec![(name, own), (name_of(resource, &resource.list_kind), list)]
}

/// Returns the schema of a string.
fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// Returns the schema of `metadata`.
fn object_metadata(version: OpenApiVersion) -> Value {
    standard("object's", "metadata", "ObjectMeta", version)
}

/// Returns a reference to standard metadata, with its description; `anchor` is the fragment of the conventions.
fn standard(whose: &str, anchor: &str, name: &str, version: OpenApiVersion) -> Value {
    let reference = version.reference(&format!("{META}.{name}"));
    let mut shown = json!({ "description": format!("Standard {whose} metadata. More info: {CONVENTIONS}#{anchor}") });
    match version {
        OpenApiVersion::Two => shown["$ref"] = reference["$ref"].clone(),
        OpenApiVersion::Three => shown["allOf"] = json!([reference]),
    }
    shown
}

/// Returns the schema with `change` applied to it and to all schemas below `properties`, `items` and
/// `additionalProperties`. Schemas in `allOf`, `anyOf` and `oneOf` have no extensions that a change would concern.
fn walk(schema: &Value, change: &impl Fn(&mut Map<String, Value>)) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut fields = fields.clone();
    change(&mut fields);
    for (key, value) in &mut fields {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(|property| *property = walk(property, change));
            }
            ("items" | "additionalProperties", item) => *item = walk(item, change),
            _ => {}
        }
    }
    fields.into()
}

/// Returns `true` if a keyword is `true`.
fn is(fields: &Map<String, Value>, key: &str) -> bool {
    fields.get(key) == Some(&Value::Bool(true))
}

/// Returns a schema for `OpenAPI` v3: extensions are written out. Int-or-string gets its union of types, unless the CRD
/// has written it.
fn complete_schema(schema: &Value) -> Value {
    walk(schema, &|fields| {
        let union = json!([{ "type": "integer" }, { "type": "string" }]);
        let has_union = fields.contains_key("anyOf")
            || fields.get("allOf").and_then(|all| all.get(0)).is_some_and(|first| first["anyOf"] == union);
        if is(fields, "x-kubernetes-int-or-string") && !has_union {
            fields.insert("anyOf".into(), union);
        }
        if is(fields, "x-kubernetes-embedded-resource") {
            embed(fields, OpenApiVersion::Three);
        }
    })
}

/// Adds the fields of an embedded object: `apiVersion`, `kind` and `metadata`. The first two are required.
fn embed(fields: &mut Map<String, Value>, version: OpenApiVersion) {
    let more = "More info: ";
    let api_version = format!(
        "apiVersion defines the versioned schema of this representation of an object. {more}{CONVENTIONS}#resources"
    );
    let kind = format!(
        "kind is a string value representing the type of this object. In CamelCase. {more}{CONVENTIONS}#types-kinds"
    );
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    let metadata = object_metadata(version);
    for (name, property) in [("apiVersion", text(&api_version)), ("kind", text(&kind)), ("metadata", metadata)] {
        properties[name] = property;
    }
    let required = fields.entry("required").or_insert_with(|| json!([]));
    for name in ["kind", "apiVersion"] {
        if let Some(required) = required.as_array_mut().filter(|required| !required.contains(&name.into())) {
            required.push(name.into());
        }
    }
}

/// Returns a schema for `OpenAPI` v2, which lacks defaults, alternatives and `nullable`. A nullable or open value is
/// published without a type, so that old clients accept it, and is not required if nullable.
fn older(schema: &Value) -> Value {
    walk(schema, &|fields| {
        for unknown in ["default", "allOf", "anyOf", "oneOf", "not"] {
            fields.remove(unknown);
        }
        let is_open = is(fields, "x-kubernetes-preserve-unknown-fields");
        if fields.remove("nullable").is_some() || is_open {
            for hidden in ["type", "items", "properties", "additionalProperties"] {
                fields.remove(hidden);
            }
        }
        let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let nullable: HashSet<String> =
            properties.filter(|(_, property)| property["nullable"] == true).map(|(name, _)| name.clone()).collect();
        if let Some(required) = fields.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| !name.as_str().is_some_and(|name| nullable.contains(name)));
            if required.is_empty() {
                fields.remove("required");
            }
        }
        if is(fields, "x-kubernetes-int-or-string") {
            fields.remove("type");
        }
        if is(fields, "x-kubernetes-embedded-resource") && !is_open {
            embed(fields, OpenApiVersion::Two);
        }
    })
}
