//! `ControllerSpec` → manifests: pure functions of the declaration, sorted and byte-stable.

mod deployment;
mod descriptions;
mod graph;
mod manager;
mod monitoring;
mod rbac;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

pub use deployment::{deployment, metrics_service};
pub(crate) use graph::wires;
pub use graph::{Format as GraphFormat, graph};
pub use manager::{ManagerOptions, manager_rbac};
pub use monitoring::monitoring;
pub use rbac::{
    Grant, On, Place, RbacOptions, Rule, grants, grants_of_rule, rbac, rbac_of, rules, user_roles, verbs_of,
};

use crate::{spec::ControllerSpec, worker::panic_text};

/// A manifest with the file that it belongs into.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Relative path, for example `crds/podsets.apps.example.com.yaml`.
    pub file: String,
    /// The object.
    pub object: Value,
    /// The object as YAML, with comments.
    pub yaml: String,
}

impl Manifest {
    /// A manifest without comments.
    ///
    /// # Errors
    /// When the object cannot be written as YAML.
    pub fn new(file: String, object: Value) -> Result<Self, serde_saphyr::SerializeError> {
        let yaml = serde_saphyr::to_string(&object)?;
        Ok(Self { file, object, yaml })
    }
}

/// What the definitions say about built-in types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Descriptions {
    /// Nothing: their documentation is most of the bytes, and more than client-side apply can keep.
    #[default]
    Own,
    /// Everything.
    All,
}

/// Why a definition cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "the definition of {kind}, the kind of {location}, cannot be made: {cause}; give each field one type in all variants"
)]
pub struct DefinitionError {
    kind: String,
    location: String,
    cause: String,
}

/// A custom resource as its type declares it.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Such as `Workload`.
    pub kind: String,
    /// What needs it: file and line.
    pub location: String,
    /// Makes the definition. It panics where a schema contradicts itself.
    pub crd: fn() -> CustomResourceDefinition,
    /// Makes the JSON schema with its references, where the type has one.
    pub schema: Option<fn() -> Value>,
}

impl Declared {
    /// The primary of a controller, where it is a custom resource.
    pub fn by(spec: &ControllerSpec) -> Option<Self> {
        let (kind, location) = (spec.primary.kind.kind.clone(), spec.location.clone());
        Some(Self { kind, location, crd: spec.crd?, schema: spec.schema })
    }
}

/// The definitions of custom resources, each once, by name.
///
/// # Errors
/// When a schema contradicts itself: two variants of an enum give one field two types.
pub fn definitions(
    declared: impl IntoIterator<Item = Declared>,
    descriptions: Descriptions,
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    let mut crds = BTreeMap::new();
    for Declared { kind, location, crd, schema } in declared {
        let made = std::panic::catch_unwind(crd);
        let mut crd = made.map_err(|panic| DefinitionError { kind, location, cause: panic_text(&*panic) })?;
        if let (Descriptions::Own, Some(schema)) = (descriptions, schema) {
            descriptions::strip_built_in(&mut crd, &schema());
        }
        crds.insert(crd.metadata.name.clone(), crd);
    }
    Ok(crds.into_values().collect())
}

/// The definitions of all custom resources that the controllers reconcile, by name.
///
/// # Errors
/// As [`definitions`].
pub fn crds(
    specs: &[ControllerSpec],
    descriptions: Descriptions,
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    definitions(specs.iter().filter_map(Declared::by), descriptions)
}

/// The definitions as files.
///
/// # Errors
/// When a definition cannot be made, or cannot be written as YAML.
pub fn crd_manifests(
    declared: impl IntoIterator<Item = Declared>,
    descriptions: Descriptions,
) -> Result<Vec<Manifest>, Box<dyn std::error::Error + Send + Sync>> {
    let file = |crd: &CustomResourceDefinition| format!("crds/{}.{}.yaml", crd.spec.names.plural, crd.spec.group);
    let crds = definitions(declared, descriptions)?;
    crds.iter().map(|crd| Ok(Manifest::new(file(crd), serde_json::to_value(crd)?)?)).collect()
}

/// Manifests as one YAML stream.
pub fn stream(manifests: &[Manifest]) -> String {
    manifests.iter().fold(String::new(), |stream, manifest| stream + "---\n" + &manifest.yaml)
}

/// Objects as one YAML stream.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let mut stream = String::new();
    for object in objects {
        stream += "---\n";
        stream += &serde_saphyr::to_string(object)?;
    }
    Ok(stream)
}
