//! `ControllerSpec` → manifests: pure functions of the declaration, sorted and byte-stable.

mod crd;
mod deployment;
mod descriptions;
mod graph;
mod manager;
mod monitoring;
mod rbac;
mod webhook;

use serde_json::Value;

#[doc(hidden)]
pub use crd::Structure;
pub use crd::{
    APPLY_BYTES_MAX, Change, Checked, DefinitionError, KindSpec, Problem, breaking, check, crd_manifests, crds,
    definitions,
};
pub(crate) use crd::{allowed_values, schema_of};
pub use deployment::{deployment, disruption_budget, kustomization, metrics_service};
pub(crate) use graph::wires;
pub use graph::{Format as GraphFormat, graph};
pub use manager::{ManagerOptions, manager_rbac};
pub use monitoring::monitoring;
pub use rbac::{
    Grant, On, Place, RbacOptions, Rule, all_grants, grants, grants_of_rule, knows_subresources, lacks_subresource,
    rbac, rbac_of, rule_problem, rules, subresource_problem, user_roles, verbs_of,
};
pub use webhook::{webhook_grants, webhook_rbac};

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

/// Which descriptions of built-in types CRDs contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Descriptions {
    /// Nothing: their documentation is most of the bytes, and more than client-side apply can keep.
    #[default]
    Own,
    /// Everything.
    All,
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
