//! Definitions of custom resources as the server reads and completes them. Reads the object and hands on its parts, and the
//! object with the defaults and the status that the real server writes.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settle;
use crate::schema::Schema;

/// What a `CustomResourceDefinition` defines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The API group.
    pub group: String,
    /// What the resource is called.
    pub names: Names,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// The versions, in the order of the object.
    pub versions: Vec<Version>,
    /// How objects get from one version to another.
    #[serde(default)]
    pub conversion: Conversion,
}

/// What a resource is called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// The resource in paths.
    pub plural: String,
    /// The alias of `kubectl`; may be empty before defaults.
    pub singular: String,
    /// The kind of an object.
    pub kind: String,
    /// The kind of a list; may be empty before defaults.
    pub list_kind: String,
    /// Short aliases.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
}

/// Whether objects are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Scope {
    /// Objects belong to the cluster.
    Cluster,
    /// Objects are in namespaces.
    Namespaced,
}

/// One version of a resource.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The name, such as `v1`.
    pub name: String,
    /// Whether requests for it are answered.
    #[serde(default)]
    pub served: bool,
    /// Whether objects are stored in it.
    #[serde(default)]
    pub storage: bool,
    /// Whether every answer carries a warning.
    #[serde(default)]
    pub deprecated: bool,
    /// The warning, where it is not the usual one.
    pub deprecation_warning: Option<String>,
    #[serde(default)]
    schema: Value,
    /// What is served below an object.
    #[serde(default)]
    pub subresources: Subresources,
    /// The columns of tables.
    #[serde(default)]
    pub additional_printer_columns: Vec<Column>,
    /// The fields of field selectors.
    #[serde(default)]
    pub selectable_fields: Vec<SelectableField>,
}

impl Version {
    /// The structural schema of objects of this version, if there is one.
    pub fn schema(&self) -> Option<Schema<'_>> {
        self.schema.get("openAPIV3Schema").filter(|schema| schema.is_object()).map(Schema::structural)
    }
}

/// What is served below an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subresources {
    /// `/status`, if it is there.
    pub status: Option<Status>,
    /// `/scale`, if it is there.
    pub scale: Option<Scale>,
}

/// The status subresource has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Status {}

/// Where the numbers of the scale subresource are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// The path of the wanted replicas, such as `.spec.replicas`.
    pub spec_replicas_path: String,
    /// The path of the replicas that are there.
    pub status_replicas_path: String,
    /// The path of the selector of pods as text.
    pub label_selector_path: Option<String>,
}

/// A column of tables.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// The head of the column.
    pub name: String,
    /// `boolean`, `date`, `integer`, `number` or `string`.
    pub r#type: String,
    /// A format of the type.
    #[serde(default)]
    pub format: String,
    /// What the column shows.
    #[serde(default)]
    pub description: String,
    /// Columns above 0 are shown only by `-o wide`.
    #[serde(default)]
    pub priority: i32,
    /// Where the value is, such as `.spec.replicas`.
    pub json_path: String,
}

/// A field of field selectors.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectableField {
    /// Where the value is, such as `.spec.color`.
    pub json_path: String,
}

/// How objects get from one version to another.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Conversion {
    /// Who converts.
    #[serde(default)]
    pub strategy: Strategy,
    /// The webhook as it stands in the definition.
    #[serde(default)]
    pub webhook: Value,
}

/// Who converts objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Strategy {
    /// The server, which changes only the `apiVersion`.
    #[default]
    None,
    /// A webhook.
    Webhook,
}

impl Definition {
    /// Reads the `spec` of a `CustomResourceDefinition`.
    ///
    /// # Errors
    /// The object is not of this shape; after [`super::validate_definition`] said nothing this does not happen.
    pub fn read(object: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(object.get("spec").unwrap_or(&Value::Null))
    }

    /// The version with this name.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The warning that answers of this version carry.
    pub fn deprecation_warning(&self, version: &Version) -> Option<String> {
        let usual = || format!("{}/{} {} is deprecated", self.group, version.name, self.names.kind);
        version.deprecated.then(|| version.deprecation_warning.clone().unwrap_or_else(usual))
    }
}

/// Fills in what the real server fills in when a definition is created: `singular`, `listKind`, the conversion strategy
/// `None`, and the status with the storage version. The names are not accepted yet: see [`super::accept_names`].
pub fn default_definition(object: &mut Value) {
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
    default_definition_spec(object);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    // Of several storage versions, which are refused later, the real server stores the first.
    let mut versions = versions.filter(|version| version["storage"] == true);
    let stored = versions.next().map(|version| version["name"].as_str().unwrap_or_default().into());
    let stored: Vec<Value> = stored.into_iter().collect();
    let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    let Some(object) = object.as_object_mut() else { return };
    match object.get_mut("status").and_then(Value::as_object_mut) {
        None => {
            object.insert("status".to_owned(), status);
        }
        Some(status) => {
            let versions = status.entry("storedVersions").or_insert_with(|| json!([]));
            if let Some(versions) = versions.as_array_mut() {
                for version in stored {
                    if !versions.contains(&version) {
                        versions.push(version);
                    }
                }
            }
        }
    }
}

/// Fills in what the real server fills in whenever it reads a definition (`SetDefaults_CustomResourceDefinitionSpec`), and leaves out
/// what it never writes.
pub(crate) fn default_definition_spec(object: &mut Value) {
    settle::definition(object);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            fill(names, "singular", &kind.to_lowercase());
            fill(names, "listKind", &format!("{kind}List"));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// Sets a text that is missing or empty.
fn fill(names: &mut Map<String, Value>, name: &str, text: &str) {
    if names.get(name).and_then(Value::as_str).is_none_or(str::is_empty) {
        names.insert(name.to_owned(), text.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com", "names": {"plural": "things", "kind": "Thing"}, "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "deprecated": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                    "subresources": {"status": {}, "scale": {
                        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                    "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                }],
            },
        })
    }

    #[test]
    fn names_conversion_and_stored_versions_are_filled_in() {
        let mut object = thing();
        default_definition(&mut object);
        let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
        assert_eq!(object["spec"]["names"], names);
        assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));
        let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]});
        assert_eq!(object["status"], status);
        let filled_in = object.clone();
        default_definition(&mut object);
        assert_eq!(object, filled_in);
    }

    #[test]
    fn names_without_a_kind_stay_empty() {
        let mut object = json!({"spec": {"names": {"plural": "things", "kind": ""}}});
        default_definition(&mut object);
        assert_eq!(object["spec"]["names"], json!({"plural": "things", "kind": ""}));
    }

    #[test]
    fn a_definition_is_read() {
        let mut object = thing();
        default_definition(&mut object);
        let definition = Definition::read(&object).unwrap();
        let version = definition.storage_version().unwrap();
        assert_eq!((definition.scope, definition.conversion.strategy), (Scope::Namespaced, Strategy::None));
        assert_eq!(version.schema().unwrap().type_name(), Some("object"));
        assert!(version.subresources.status.is_some());
        assert_eq!(version.subresources.scale.as_ref().unwrap().spec_replicas_path, ".spec.replicas");
        assert_eq!(version.selectable_fields, [SelectableField { json_path: ".spec.color".to_owned() }]);
        assert_eq!(definition.deprecation_warning(version).unwrap(), "example.com/v1 Thing is deprecated");
        assert!(Definition::read(&json!({})).is_err());
    }
}
