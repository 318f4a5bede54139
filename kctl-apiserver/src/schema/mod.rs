//! Schemas of objects: one cursor over the types of the built-in kinds and over the structural schemas of
//! `CustomResourceDefinition`s.
//!
//! A built-in type is read from the published `OpenAPI` document (`data/types.json`), with a table for frequent lookups
//! (`nodes.rs`). A structural schema is read from its JSON each time. Both have the same methods, so callers need not
//! distinguish them.

mod nodes;

use std::{collections::HashMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::Value;

use nodes::SchemaNode;

/// A position in a schema. References (`$ref`) are already resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schema<'a> {
    /// The type itself: `properties`, `items` and so on.
    node: &'a Value,
    /// The node with the `$ref`: list types and merge keys are next to the reference.
    usage: &'a Value,
    /// The node in the table of built-in types; `None` for a structural schema.
    built_in_type: Option<&'static SchemaNode>,
}

/// The way in which server-side apply merges a list (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListType<'a> {
    /// The list is one value; an apply replaces it.
    Atomic,
    /// The items are scalars, and each occurs once.
    Set,
    /// The items are objects, identified by the values of these fields (`x-kubernetes-list-map-keys`).
    Map(&'a [Value]),
}

/// The name of a kind's type.
#[derive(Deserialize)]
struct Named {
    /// The full name, such as `io.k8s.api.core.v1.Pod`.
    name: String,
    r#type: Value,
}

/// The types of `data/types.json`.
struct BuiltIn {
    /// The schemas by full name.
    types: HashMap<String, Value>,
    /// The versions of each kind, with the names of their types.
    kinds: HashMap<String, Vec<(String, String)>>,
}

/// Parsed at the first use.
static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    let named: Vec<Named> =
        serde_json::from_str(include_str!("../../data/types.json")).expect("the file is generated and tested");
    let mut kinds: HashMap<String, Vec<_>> = HashMap::new();
    for Named { name, r#type } in &named {
        for gvk in r#type["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
            let part = |key: &str| gvk[key].as_str().unwrap_or_default();
            let api_version = api_version(part("group"), part("version"));
            kinds.entry(part("kind").to_owned()).or_default().push((api_version, name.clone()));
        }
    }
    BuiltIn { types: named.into_iter().map(|named| (named.name, named.r#type)).collect(), kinds }
});

/// Returns the `apiVersion` of objects: `GROUP/VERSION`, or `VERSION` in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A value computed once for each position in the schemas of the built-in types, such as its defaults.
pub(crate) struct PerPosition<T>(Vec<T>);

impl<T> PerPosition<T> {
    /// Computes the value for all positions of the built-in types.
    pub(crate) fn new(compute: impl Fn(Schema<'static>) -> T) -> Self {
        Self(nodes::all().map(compute).collect())
    }

    /// Returns the value at a position, or `None` for positions in other schemas.
    pub(crate) fn get(&self, schema: &Schema<'_>) -> Option<&T> {
        self.0.get(schema.built_in_type?.number)
    }
}

/// Returns the name of the type of a built-in kind, or `None` if the kind is not built in.
pub(crate) fn name_of(api_version: &str, kind: &str) -> Option<&'static str> {
    let versions = BUILT_IN.kinds.get(kind)?;
    versions.iter().find(|(version, _)| version == api_version).map(|(_, name)| name.as_str())
}

impl Schema<'static> {
    /// Returns the schema of a built-in kind, or `None` if the kind is not built in.
    pub(crate) fn built_in(api_version: &str, kind: &str) -> Option<Self> {
        Self::for_type(name_of(api_version, kind)?)
    }

    /// Returns the schema of a built-in type, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn for_type(name: &str) -> Option<Self> {
        nodes::find_schema(name)
    }

    /// Returns the names of all built-in types.
    pub(crate) fn type_names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.types.keys().map(String::as_str)
    }
}

impl<'a> Schema<'a> {
    /// Returns a cursor at the root of a structural schema (`openAPIV3Schema` of a `CustomResourceDefinition`).
    pub(crate) fn structural(node: &'a Value) -> Self {
        Self { node, usage: node, built_in_type: None }
    }

    /// Returns the JSON of this position, for keywords without a method here.
    pub(crate) fn json(&self) -> &'a Value {
        self.node
    }

    /// Returns the name of a built-in type, such as `io.k8s.api.core.v1.PodSpec`; `None` in structural schemas.
    pub(crate) fn name(&self) -> Option<&'static str> {
        self.built_in_type?.name()
    }

    /// Returns the strings of `enum`, empty if the schema has none.
    pub(crate) fn enum_values(&self) -> Vec<&'a str> {
        self.node.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Follows a `$ref` to its type.
    fn resolve_ref(usage: &'a Value) -> Self {
        let Some(name) = usage.get("$ref").and_then(Value::as_str) else { return Self::structural(usage) };
        // Nothing is known about a missing type.
        let node = BUILT_IN.types.get(name).unwrap_or(&Value::Null);
        Self { node, usage, built_in_type: None }
    }

    /// Returns the schema of a field in `properties`.
    pub(crate) fn property(&self, name: &str) -> Option<Self> {
        match self.built_in_type {
            Some(node) => node.field(name),
            None => self.node.get("properties")?.get(name).map(Self::resolve_ref),
        }
    }

    /// Iterates over `properties`: names and schemas of the declared fields.
    pub(crate) fn properties(&self) -> impl Iterator<Item = (&'a str, Self)> {
        let (built_in_type, fields) = (self.built_in_type, self.node.get("properties").and_then(Value::as_object));
        let field = move |(name, node): (&'a String, &'a Value)| {
            let built_in_type = built_in_type.and_then(|built_in_type| built_in_type.field(name));
            (name.as_str(), built_in_type.unwrap_or_else(|| Self::resolve_ref(node)))
        };
        fields.into_iter().flatten().map(field)
    }

    /// Returns `true` if the schema declares any `properties`.
    pub(crate) fn has_properties(&self) -> bool {
        if let Some(node) = self.built_in_type { node.has_fields() } else { self.properties().next().is_some() }
    }

    /// Returns `true` if `required` lists the field.
    pub(crate) fn requires(&self, name: &str) -> bool {
        if let Some(built_in_type) = self.built_in_type {
            return built_in_type.required.contains(&name);
        }
        let required = self.node.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|field| field == name)
    }

    /// Returns the schema of the values of a map (`additionalProperties`).
    pub(crate) fn additional_properties(&self) -> Option<Self> {
        match self.built_in_type {
            Some(node) => node.additional(),
            None => self.node.get("additionalProperties").filter(|node| node.is_object()).map(Self::resolve_ref),
        }
    }

    /// Returns the schema of a field: the one in `properties`, or else the schema of a map's values.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional_properties())
    }

    /// Returns the schema of the items of a list.
    pub(crate) fn items(&self) -> Option<Self> {
        if let Some(node) = self.built_in_type { node.items() } else { self.node.get("items").map(Self::resolve_ref) }
    }

    /// Returns the name of a referenced type without its package, such as `PodSpec`.
    pub(crate) fn reference(&self) -> Option<&'a str> {
        match self.built_in_type {
            Some(node) => node.reference,
            None => self.usage.get("$ref")?.as_str()?.rsplit('.').next(),
        }
    }

    /// Returns `type`: `string`, `integer`, `number`, `boolean`, `array` or `object`; `None` if any type is allowed.
    pub(crate) fn type_name(&self) -> Option<&'a str> {
        if let Some(node) = self.built_in_type { node.type_name } else { self.text("type") }
    }

    /// Returns `format`, such as `date-time` for a string or `int32` for a number.
    pub(crate) fn format(&self) -> Option<&'a str> {
        if let Some(node) = self.built_in_type { node.format } else { self.text("format") }
    }

    /// Returns a keyword next to a `$ref`, or else of its type.
    fn keyword_at_usage(&self, key: &str) -> Option<&'a Value> {
        self.usage.get(key).or_else(|| self.node.get(key))
    }

    /// Returns a string keyword of the schema, by its key.
    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.keyword_at_usage(key)?.as_str()
    }

    /// Returns a boolean keyword of the schema, by its key; `false` if it is absent.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.keyword_at_usage(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the way in which server-side apply merges this list. A map list without keys, which validation rejects,
    /// counts as atomic.
    pub(crate) fn list_type(&self) -> ListType<'a> {
        if let Some(built_in_type) = self.built_in_type {
            return built_in_type.list_type;
        }
        match self.text("x-kubernetes-list-type") {
            Some("set") => ListType::Set,
            Some("map") => match self.keyword_at_usage("x-kubernetes-list-map-keys").and_then(Value::as_array) {
                Some(keys) => ListType::Map(keys),
                None => ListType::Atomic,
            },
            _ => ListType::Atomic,
        }
    }

    /// Returns `true` if server-side apply treats this object as one value (`x-kubernetes-map-type: atomic`).
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.text("x-kubernetes-map-type") == Some("atomic")
    }

    /// Returns the merge key that strategic merge patches use for a list of objects (`x-kubernetes-patch-merge-key`).
    pub(crate) fn patch_merge_key(&self) -> Option<&'a str> {
        self.text("x-kubernetes-patch-merge-key")
    }

    /// Returns `true` if `x-kubernetes-patch-strategy` contains this strategy: `merge`, `replace` or `retainKeys`.
    pub(crate) fn has_patch_strategy(&self, strategy: &str) -> bool {
        self.text("x-kubernetes-patch-strategy").is_some_and(|all| all.split(',').any(|listed| listed == strategy))
    }

    /// Returns `true` if pruning keeps undeclared fields here (`x-kubernetes-preserve-unknown-fields`).
    pub(crate) fn preserves_unknown_fields(&self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_a_pod_are_merged_by_name() {
        let pod = Schema::built_in("v1", "Pod").unwrap();
        let containers = pod.property("spec").unwrap().property("containers").unwrap();
        assert_eq!(containers.list_type(), ListType::Map(&["name".into()]));
        assert_eq!(containers.patch_merge_key(), Some("name"));
        let ports = containers.items().unwrap().property("ports").unwrap();
        assert_eq!(ports.list_type(), ListType::Map(&["containerPort".into(), "protocol".into()]));
    }

    #[test]
    fn every_reference_leads_to_a_type() {
        fn references<'a>(node: &'a Value, found: &mut Vec<&'a str>) {
            match node {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        BUILT_IN.types.values().for_each(|node| references(node, &mut found));
        assert!(found.len() > 100);
        for name in found {
            assert!(Schema::for_type(name).is_some(), "{name}");
        }
    }
}
