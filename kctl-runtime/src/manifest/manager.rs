//! What the manager itself needs, beside what its controllers declare: the lease, and who may read its metrics.

use std::collections::BTreeSet;

use super::{
    Manifest, RbacOptions,
    rbac::{Rule, binding, role},
};

/// What the manager is to do in a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManagerOptions {
    /// Several replicas, one of which works.
    pub leader_elect: bool,
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
        namespaced: true,
    };
    vec![rule(&[], &["create"]), rule(&[name], &["get", "list", "update", "watch"])]
}

/// The roles and bindings of the manager, in the namespace in which it runs.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn manager_rbac(
    options: &RbacOptions,
    manager: ManagerOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    if !manager.leader_elect {
        return Ok(Vec::new());
    }
    let name = format!("{}-leader-election", options.name);
    let place = Some(&options.namespace);
    Ok(vec![role("Role", &name, place, &election(&options.name))?, binding("Role", &name, options, place)?])
}
