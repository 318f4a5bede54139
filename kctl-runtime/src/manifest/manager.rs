//! What the manager itself needs, beside what its controllers declare: the lease, and the checks of who reads its metrics.

use std::collections::BTreeSet;

use super::{
    Manifest, RbacOptions,
    rbac::{Rule, binding, role},
};

/// The options of the manager that need permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManagerOptions {
    /// Several replicas, one of which works.
    pub leader_elect: bool,
    /// `/metrics`, by TLS and for those who may read it.
    pub metrics: bool,
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// The rules of a process that contends for the lease of its name. A create cannot be limited to a name.
fn election(name: &str) -> Vec<Rule> {
    let rule = |names: &[&str], verbs: &[&str]| Rule {
        groups: set(&["coordination.k8s.io"]),
        resources: set(&["leases"]),
        names: set(names),
        verbs: set(verbs),
        because: set(&["kctl: leader election"]),
        ..Rule::default()
    };
    vec![rule(&[], &["create"]), rule(&[name], &["get", "list", "update", "watch"])]
}

/// The rules of a process that asks the API server who reads its metrics.
fn reviews() -> Vec<Rule> {
    let rule = |group: &str, resource: &str| Rule {
        groups: set(&[group]),
        resources: set(&[resource]),
        verbs: set(&["create"]),
        because: set(&["kctl: who may read the metrics"]),
        ..Rule::default()
    };
    vec![rule("authentication.k8s.io", "tokenreviews"), rule("authorization.k8s.io", "subjectaccessreviews")]
}

/// Returns the manager's roles and bindings: for the Lease in its namespace, for metrics in the cluster. The role for readers of
/// metrics has no binding.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn manager_rbac(
    options: &RbacOptions,
    manager: ManagerOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let mut manifests = Vec::new();
    if manager.metrics {
        let name = format!("{}-metrics-auth", options.name);
        manifests.push(role("ClusterRole", &name, options, None, &reviews())?);
        manifests.push(binding("ClusterRole", &name, options, None)?);
        manifests.push(reader(options)?);
    }
    if manager.leader_elect {
        let (name, place) = (format!("{}-leader-election", options.name), Some(&options.namespace));
        manifests.push(role("Role", &name, options, place, &election(&options.name))?);
        manifests.push(binding("Role", &name, options, place)?);
    }
    Ok(manifests)
}

/// The role to bind to the service account of a scraper.
fn reader(options: &RbacOptions) -> Result<Manifest, serde_saphyr::SerializeError> {
    let rule = Rule {
        urls: set(&["/metrics"]),
        verbs: set(&["get"]),
        because: set(&["kctl: whom this role is bound to may read the metrics"]),
        ..Rule::default()
    };
    role("ClusterRole", &format!("{}-metrics-reader", options.name), options, None, &[rule])
}
