//! The typed form of a `CustomResourceDefinition`, and its defaults.
//!
//! `Definition` is the read side: the server parses a stored CRD once and serves requests from it.
//! Fields that the server does not need are left out. Validation works on the JSON instead, because
//! it must report paths and wrong values.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settle;
use crate::schema::Schema;

/// The `spec` of a `CustomResourceDefinition`.
///
/// Deserialized from `spec`; unknown fields are ignored. `kctl` exports it for tests that register
/// CRDs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// The API group.
    ///
    /// A DNS subdomain with at least one dot, such as `example.com`.
    pub group: String,
    /// The names of the resource.
    ///
    /// The requested names. The served ones are `status.acceptedNames`.
    pub names: Names,
    /// Namespaced or cluster-scoped.
    ///
    /// Immutable once the CRD is established.
    pub scope: Scope,
    /// The versions, in the order of `spec.versions`.
    ///
    /// Exactly one has `storage: true` in a valid CRD.
    pub versions: Vec<Version>,
    /// Conversion between the versions.
    ///
    /// `None` in the absence of the field.
    #[serde(default)]
    pub conversion: Conversion,
}

/// The names of a resource (`spec.names`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    /// The plural name, as in URLs.
    ///
    /// Together with the group it forms the name of the CRD, `podsets.example.com`.
    pub plural: String,
    /// The singular name; may be empty before defaults.
    ///
    /// kubectl accepts it in place of the plural. The default is the kind in lowercase.
    pub singular: String,
    /// The kind of an object, such as `PodSet`.
    ///
    /// In `CamelCase` by convention. The only rule is a DNS-1035 label in any case.
    pub kind: String,
    /// The kind of a list; may be empty before defaults.
    ///
    /// The default is the kind with `List` at its end.
    pub list_kind: String,
    /// Short names, such as `po` for `pods`.
    ///
    /// Unique in the group, among plurals and singulars too.
    pub short_names: Vec<String>,
    /// Categories: groups of resources for `kubectl get`, such as `all`.
    ///
    /// Not unique: any number of resources share a category.
    pub categories: Vec<String>,
}

/// The scope of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Scope {
    /// Objects are cluster-scoped.
    Cluster,
    /// Objects are namespaced.
    Namespaced,
}

/// One version of a resource.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// The name of the version, such as `v1`.
    ///
    /// Unique in the CRD, a DNS-1035 label.
    pub name: String,
    /// `true` if the API server serves this version.
    ///
    /// A version that is not served stays in the CRD while objects are stored in it.
    #[serde(default)]
    pub served: bool,
    /// `true` for the version in which objects are stored.
    #[serde(default)]
    pub storage: bool,
    /// `true` if each response carries a deprecation warning.
    #[serde(default)]
    pub deprecated: bool,
    /// The warning, if it is not the default one.
    ///
    /// At most 256 bytes. Only set with `deprecated`.
    pub deprecation_warning: Option<String>,
    /// `schema.openAPIV3Schema` below it. Read it with `Version::schema`.
    #[serde(default)]
    schema: Value,
    /// The subresources of an object.
    #[serde(default)]
    pub subresources: Subresources,
    /// The printer columns of `kubectl get`.
    ///
    /// Empty means the single column `Age`, which the table code adds.
    #[serde(default)]
    pub additional_printer_columns: Vec<Column>,
    /// The fields that field selectors can use.
    ///
    /// At most 8. `metadata.name` and `metadata.namespace` always work besides.
    #[serde(default)]
    pub selectable_fields: Vec<SelectableField>,
}

impl Version {
    /// Returns the structural schema of this version, if it has one.
    ///
    /// Borrowed from the version. Validation requires a schema, so `None` is left to CRDs that were
    /// not validated.
    pub fn schema(&self) -> Option<Schema<'_>> {
        self.schema.get("openAPIV3Schema").filter(|schema| schema.is_object()).map(Schema::structural)
    }
}

/// The subresources of a custom resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Subresources {
    /// The subresource `/status`, if it is enabled.
    ///
    /// With it, writes of the object ignore `status`, and writes of `/status` ignore all else.
    pub status: Option<Status>,
    /// The subresource `/scale`, if it is enabled.
    ///
    /// With it, `kubectl scale` and the `HorizontalPodAutoscaler` work on the resource.
    pub scale: Option<Scale>,
}

/// The `status` subresource; it has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Status {}

/// The `scale` subresource: the JSON paths of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// The JSON path of the desired replicas, such as `.spec.replicas`.
    ///
    /// A path of field names with dots between them, below `.spec`.
    pub spec_replicas_path: String,
    /// The JSON path of the observed replicas, such as `.status.replicas`.
    ///
    /// Below `.status`.
    pub status_replicas_path: String,
    /// The JSON path of the serialized label selector.
    ///
    /// Below `.spec` or `.status`. The `HorizontalPodAutoscaler` needs it to find the Pods.
    pub label_selector_path: Option<String>,
}

/// A printer column.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// The heading of the column.
    pub name: String,
    /// The type: `boolean`, `date`, `integer`, `number` or `string`.
    ///
    /// A value of another type is shown as an empty cell.
    pub r#type: String,
    /// The format of the type.
    ///
    /// One of the formats of `OpenAPI`, such as `int32` or `date-time`. Clients use it as a hint.
    #[serde(default)]
    pub format: String,
    /// A description of the column.
    #[serde(default)]
    pub description: String,
    /// The priority; columns above 0 are shown only by `-o wide`.
    ///
    /// 0 or above; the default is 0.
    #[serde(default)]
    pub priority: i32,
    /// The JSON path of the value, such as `.spec.replicas`.
    ///
    /// Starts with a dot. Filters and wildcards work; the first match is shown.
    pub json_path: String,
}

/// A field that field selectors can use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectableField {
    /// The JSON path of the value, such as `.spec.color`.
    pub json_path: String,
}

/// Conversion between the versions of a resource.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Conversion {
    /// The conversion strategy.
    #[serde(default)]
    pub strategy: Strategy,
    /// The webhook, as in `spec.conversion.webhook`.
    #[serde(default)]
    pub webhook: Value,
}

/// The strategy by which objects are converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Strategy {
    /// The API server only changes `apiVersion`.
    ///
    /// All versions must then have compatible schemas.
    #[default]
    None,
    /// A webhook converts objects.
    ///
    /// `conversion/` sends the request; failures make reads of other versions fail.
    Webhook,
}

impl Definition {
    /// Parses the `spec` of a `CustomResourceDefinition`.
    ///
    /// Reads `spec` only: names that the status has not accepted yet are in the result.
    ///
    /// # Errors
    /// Fails if the object does not have the form of a CRD. This can't happen if [`super::validate_definition`]
    /// returned no errors.
    pub fn read(object: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(object.get("spec").unwrap_or(&Value::Null))
    }

    /// Returns the version with this name.
    ///
    /// Also returns versions that are not served: callers check `served`.
    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the storage version.
    ///
    /// `None` only for an invalid CRD. If several are marked, the first.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// Returns the deprecation warning of responses in this version.
    ///
    /// `None` for a version that is not deprecated. The default names group, version and kind.
    pub fn deprecation_warning(&self, version: &Version) -> Option<String> {
        let usual = || format!("{}/{} {} is deprecated", self.group, version.name, self.names.kind);
        version.deprecated.then(|| version.deprecation_warning.clone().unwrap_or_else(usual))
    }
}

/// Fills in the defaults that kube-apiserver sets when a CRD is created: `singular`, `listKind`, the conversion
/// strategy `None`, and the status with the storage version. Does not accept the names: see [`super::accept_names`].
///
/// Runs once, on create, before validation. Conditions stay `null` until the first acceptance
/// writes them, as upstream stores them.
pub fn default_definition(object: &mut Value) {
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
    default_definition_spec(object);
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    // If there are several storage versions, which validation rejects later, the first one is recorded.
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

/// Sets the defaults that kube-apiserver sets whenever it decodes a CRD (`SetDefaults_CustomResourceDefinitionSpec`),
/// and drops fields that it never encodes.
///
/// Idempotent. A CRD without a kind gets no derived names; validation reports the missing kind.
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

/// Sets a string field that is missing or empty.
///
/// A value of another type counts as missing and is replaced.
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
