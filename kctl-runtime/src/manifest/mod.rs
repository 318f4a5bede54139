//! Generates manifests from declarations: CRDs, RBAC, Deployment, monitoring and a picture.
//!
//! All functions are pure: the same declaration gives the same bytes, sorted, so that a file in a repository
//! can be compared in CI. `kctl`'s subcommands `generate-crds`, `generate-rbac`, `generate-manifests` and `graph`
//! print what the functions here return.
//!
//! ```
//! # use k8s_openapi::api::{core::v1::ConfigMap, core::v1::Secret};
//! # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
//! # struct Settings;
//! # impl Controller for Settings {
//! #     type Primary = ConfigMap;
//! #     type Verbs = ();
//! #     fn spec() -> ControllerSpec {
//! #         SpecBuilder::<Self>::new("Settings", file!(), line!()).reads::<Secret>("reads = Secret").build()
//! #     }
//! # }
//! use kctl_runtime::manifest::{RbacOptions, rbac, stream};
//!
//! // A controller of ConfigMaps with `reads = Secret`.
//! let specs = [Settings::spec()];
//! let options = RbacOptions::new("settings", "shop");
//! let yaml = stream(&rbac(&specs, &options)?);
//! assert!(yaml.contains("# configmap: reads = Secret\n")); // each rule names its reason
//! assert!(yaml.contains("kind: ClusterRoleBinding"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`crds`] and [`definitions`] complete the CRDs of kube's derive, join versions and check the result as
//!   an API server would ([`check`]). [`breaking`] compares two CRDs.
//! - [`permissions`] lists the permissions one by one, [`rules`] merges them, [`rbac`] writes roles and bindings.
//! - [`deployment`], [`metrics_service`], [`disruption_budget`], [`monitoring`] and [`kustomization`] are the
//!   rest of an installation.
//! - [`graph()`] draws which kinds lead to which controllers.

mod crd;
mod deployment;
mod descriptions;
mod graph;
mod manager;
mod monitoring;
mod rbac;
mod resources;
mod ring;
mod webhook;

use serde_json::Value;

pub(crate) use crd::schema_of;
pub use crd::{
    APPLY_BYTES_MAX, Change, Checked, DefinitionError, KindSpec, Problem, breaking, check, crd_manifests, crds,
    definitions,
};
#[doc(hidden)]
pub use crd::{Flattened, Structure};
#[doc(hidden)]
pub use deployment::deployment_in_namespaces;
pub use deployment::{deployment, disruption_budget, kustomization, metrics_service};
pub(crate) use graph::edge_rows;
pub use graph::{Format as GraphFormat, graph};
pub use manager::{ManagerOptions, manager_rbac};
pub use monitoring::monitoring;
pub use rbac::{
    Permission, PermissionScope, PermissionTarget, RbacOptions, Rule, permissions, rbac, rbac_of, rules, user_roles,
};
// `kctl` and its command-line tool alone need these. They are hidden, so that they are not a part of the API.
#[doc(hidden)]
pub use rbac::{
    all_permissions, is_built_in_group, lacks_subresource, permissions_of_rule, rule_problem, subresource_problem,
    verbs_of,
};
pub use resources::{Quantities, QuantityError, Resources};
pub use ring::{controller_ring, ring_rbac};
#[doc(hidden)]
pub use ring::{deployment_in_ring, ring_permissions};
#[doc(hidden)]
pub use webhook::{webhook_permissions, webhook_rbac};

/// A manifest and the file that it belongs in.
///
/// ```
/// use kctl_runtime::manifest::{Manifest, stream};
/// use serde_json::json;
///
/// let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
/// let manifest = Manifest::new("namespace.yaml".into(), object)?;
/// assert!(stream(&[manifest]).starts_with("---\n"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Manifest {
    /// Path relative to the output folder, for example `crds/podsets.apps.example.com.yaml`.
    pub file: String,
    /// The object as JSON.
    pub object: Value,
    /// The object as YAML. Rules of roles have comments that name their reasons.
    pub yaml: String,
}

impl Manifest {
    /// Creates a manifest without comments.
    ///
    /// # Errors
    /// The object cannot be written as YAML.
    pub fn new(file: String, object: Value) -> Result<Self, serde_saphyr::SerializeError> {
        let yaml = serde_saphyr::to_string(&object)?;
        Ok(Self { file, object, yaml })
    }
}

/// The descriptions of built-in types that CRDs contain.
///
/// A Pod template adds several hundred kilobytes of API documentation to a CRD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Descriptions {
    /// Only the descriptions that the user wrote. The default: client-side apply keeps the whole CRD in an
    /// annotation of at most [`APPLY_BYTES_MAX`].
    #[default]
    Own,
    /// All descriptions, so that `kubectl explain` shows them.
    All,
}

/// Joins manifests into one YAML stream, each after a `---` line.
pub fn stream(manifests: &[Manifest]) -> String {
    manifests.iter().fold(String::new(), |stream, manifest| stream + "---\n" + &manifest.yaml)
}

/// Writes objects as one YAML stream, each after a `---` line.
///
/// ```
/// use kctl_runtime::manifest::yaml;
/// use serde_json::json;
///
/// let stream = yaml(&[json!({ "kind": "Pod" }), json!({ "kind": "Secret" })])?;
/// assert_eq!(stream, "---\nkind: Pod\n---\nkind: Secret\n");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An object cannot be written as YAML.
pub fn yaml(objects: &[Value]) -> Result<String, serde_saphyr::SerializeError> {
    let mut stream = String::new();
    for object in objects {
        stream += "---\n";
        stream += &serde_saphyr::to_string(object)?;
    }
    Ok(stream)
}
