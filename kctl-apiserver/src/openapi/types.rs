//! Schemas of built-in types in the documents: with descriptions, and in version 3 with default values.
//!
//! The types come from `data/types.json`, which validation uses too, and the descriptions from
//! `data/descriptions.json`.

use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{META, custom, openapi_version::OpenApiVersion};
use crate::{
    registry::Resource,
    schema::{self, Schema},
};

/// The type of `/version`.
pub(super) const VERSION: &str = "io.k8s.apimachinery.pkg.version.Info";

/// The descriptions of a type and its fields.
#[derive(Deserialize)]
struct TypeDescriptions {
    /// The name of the type; empty in the first entry of the file.
    #[serde(default)]
    name: String,
    /// The description of the type itself.
    r#type: Option<String>,
    /// Descriptions of the fields by JSON name.
    #[serde(default)]
    fields: HashMap<String, Text>,
    /// Descriptions that many types share: the first entry of the file has only these.
    #[serde(default)]
    shared: Vec<String>,
}

/// A description, which is stored once if many types share it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    /// A description that only this field has.
    Own(String),
    /// Index into the shared descriptions.
    Shared(usize),
}

/// All descriptions. Loaded at the first use, because most servers never show them.
struct Descriptions {
    /// Strings that several types use, such as the description of `apiVersion`.
    shared: Vec<String>,
    /// The descriptions of each type, by full type name.
    types: HashMap<String, TypeDescriptions>,
}

/// The descriptions of `data/descriptions.json`.
static DESCRIPTIONS: LazyLock<Descriptions> = LazyLock::new(|| {
    let mut all: Vec<TypeDescriptions> =
        serde_json::from_str(include_str!("../../data/descriptions.json")).expect("the file is generated and tested");
    let shared = std::mem::take(&mut all[0].shared);
    Descriptions { shared, types: all.into_iter().map(|described| (described.name.clone(), described)).collect() }
});

/// Returns the type name of a kind, which belongs to the resource or to a subresource.
///
/// A subresource of a custom kind can have a built-in type, such as `Scale`.
pub(super) fn name_of(resource: &Resource, group: &str, version: &str, kind: &str) -> String {
    if resource.custom.is_some() && (group, kind) == (resource.id.group.as_str(), resource.kind_name()) {
        return custom::name_of(resource, kind);
    }
    // Connection options have no type in the documents, so their kind is used.
    schema::name_of(&schema::api_version(group, version), kind).map_or_else(|| kind.to_owned(), str::to_owned)
}

/// Returns the type name of the resource's list.
pub(super) fn list_of(resource: &Resource) -> String {
    match &resource.custom {
        Some(_) => custom::name_of(resource, &resource.list_kind),
        None => name_of(resource, &resource.id.group, &resource.version, &resource.list_kind),
    }
}

/// Groups that apiextensions-apiserver does not serve. `DeleteOptions` and `WatchEvent` in documents of custom
/// resources leave them out.
const NOT_OF_CUSTOM: [&str; 4] =
    ["admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"];

/// Returns the schema of a built-in type with its descriptions; `None` for an unknown type. In version 3,
/// `group_version` is the group and version of the document of built-in kinds.
///
/// References are written in the form of the version.
pub(super) fn built_in(name: &str, version: OpenApiVersion, group_version: Option<(&str, &str)>) -> Option<Value> {
    let schema = Schema::for_type(name)?.json();
    let mut shown = form(schema, version);
    if let Some(described) = DESCRIPTIONS.types.get(name) {
        if let Some(text) = &described.r#type {
            shown["description"] = text.as_str().into();
        }
        for (field, text) in &described.fields {
            let text = match text {
                Text::Own(text) => Some(text),
                Text::Shared(index) => DESCRIPTIONS.shared.get(*index),
            };
            shown["properties"][field]["description"] = text.map(String::as_str).into();
        }
    }
    if version == OpenApiVersion::Three {
        complete_for_v3(name, &mut shown, group_version);
    }
    Some(shown)
}

/// Adds what only version 3 has. Quantities and int-or-string become unions.
fn complete_for_v3(name: &str, shown: &mut Value, group_version: Option<(&str, &str)>) {
    if let Some(properties) = shown.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(beside_reference);
    }
    let union: Option<[&str; 2]> = match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => Some(["string", "number"]),
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some(["integer", "string"]),
        _ => None,
    };
    if let (Some(union), Some(fields)) = (union, shown.as_object_mut()) {
        fields.remove("type");
        fields.insert("oneOf".into(), union.iter().map(|name| json!({ "type": name })).collect());
    }
    // All groups have these types; a document shows only its own.
    let is_shared_type = ["DeleteOptions", "WatchEvent"].iter().any(|kind| name == format!("{META}.{kind}"));
    let kinds = shown.get_mut("x-kubernetes-group-version-kind").and_then(Value::as_array_mut);
    if let (true, Some(kinds)) = (is_shared_type, kinds) {
        kinds.retain(|kind| {
            let text = |key: &str| kind[key].as_str().unwrap_or_default();
            let own = |group_version| text("group").is_empty() || (text("group"), text("version")) == group_version;
            group_version.map_or_else(|| !NOT_OF_CUSTOM.contains(&text("group")), own)
        });
    }
}

/// Wraps a reference in `allOf`, because version 3 allows no keyword next to it.
fn beside_reference(property: &mut Value) {
    if let Some(fields) = property.as_object_mut().filter(|fields| fields.len() > 1)
        && let Some(reference) = fields.remove("$ref")
    {
        fields.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
}

/// Returns a schema in the form of the version, without descriptions. Version 2 has no defaults.
fn form(node: &Value, version: OpenApiVersion) -> Value {
    let Some(fields) = node.as_object() else { return node.clone() };
    let mut shown = Map::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("default", _) if version == OpenApiVersion::Two => {}
            ("$ref", Value::String(name)) => {
                shown.extend(version.reference(name).as_object().cloned().unwrap_or_default());
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter().map(|(name, property)| (name.clone(), form(property, version)));
                shown.insert(key.clone(), properties.collect::<Map<_, _>>().into());
            }
            ("items" | "additionalProperties", item) => {
                shown.insert(key.clone(), form(item, version));
            }
            (_, value) => {
                shown.insert(key.clone(), value.clone());
            }
        }
    }
    shown.into()
}

/// Collects the names of all types that a schema or an operation refers to.
pub(super) fn references(node: &Value, found: &mut BTreeSet<String>) {
    match node {
        Value::Object(map) => {
            let name = map.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
            found.extend(name.map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
