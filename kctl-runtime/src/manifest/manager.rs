//! Permissions of the manager itself, apart from its controllers: the Lease, and the authorization of metrics.

use std::collections::BTreeSet;

use super::{
    Manifest, RbacOptions,
    rbac::{Rule, binding, role},
};
use crate::shard::{seat_name, slot_name};

/// The options of the manager that need permissions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// `true` for several replicas with leader election. Needs a role for the Lease.
    pub leader_elect: bool,
    /// `true` for `/metrics` over TLS with authorization. Needs a role for `TokenReview` and `SubjectAccessReview`.
    pub metrics: bool,
    /// The number of slots of several replicas that share the keys. Needs a role for the Leases of slots and seats.
    ///
    /// `Some(0)` is one replica of a program that shares its keys unless `--shards=0` turns it off.
    pub shards: Option<u32>,
    /// `true` for a program that serves webhooks and runs no controller. All of its replicas work without an election.
    pub webhooks_alone: bool,
}

impl ManagerOptions {
    /// Turns on leader election by a Lease, with two replicas in the Deployment.
    #[must_use]
    pub fn with_leader_election(mut self) -> Self {
        self.leader_elect = true;
        self
    }

    /// Turns on `/metrics`, served over TLS to clients that the cluster authorizes.
    #[must_use]
    pub fn with_metrics(mut self) -> Self {
        self.metrics = true;
        self
    }

    /// Makes several replicas share the keys by this number of slots; 0 turns sharding off.
    ///
    /// ```
    /// use kctl_runtime::manifest::ManagerOptions;
    ///
    /// let options = ManagerOptions::default().with_metrics().with_shards(24);
    /// assert_eq!((options.metrics, options.leader_elect, options.shards), (true, false, Some(24)));
    /// ```
    #[must_use]
    pub fn with_shards(mut self, slots: u32) -> Self {
        self.shards = Some(slots);
        self
    }

    /// Declares that the program serves webhooks and runs no controller, so that two replicas need no election.
    #[must_use]
    pub fn with_webhooks_alone(mut self) -> Self {
        self.webhooks_alone = true;
        self
    }

    /// Returns `true` if several replicas can run at the same time.
    pub(in crate::manifest) fn has_replicas(self) -> bool {
        self.leader_elect || self.slots().is_some() || self.webhooks_alone
    }

    /// Returns the number of slots, `None` without shards.
    pub(in crate::manifest) fn slots(self) -> Option<u32> {
        self.shards.filter(|n| *n > 0)
    }
}

fn string_set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// Returns the rules of leader election. A `create` cannot be limited to a name.
fn election(name: &str) -> Vec<Rule> {
    let rule = |names: &[&str], verbs: &[&str]| Rule {
        groups: string_set(&["coordination.k8s.io"]),
        resources: string_set(&["leases"]),
        names: string_set(names),
        verbs: string_set(verbs),
        because: string_set(&["kctl: leader election"]),
        ..Rule::default()
    };
    vec![rule(&[], &["create"]), rule(&[name], &["get", "list", "update", "watch"])]
}

/// Returns the rules of a sharded program. A `create` cannot be limited to a name, nor a `list` by label.
fn sharding(app: &str, n: u32) -> Vec<Rule> {
    let slots = (0..n).flat_map(|number| [slot_name(app, number), seat_name(app, number)]);
    let rule = |names: BTreeSet<String>, verbs: &[&str]| Rule {
        groups: string_set(&["coordination.k8s.io"]),
        resources: string_set(&["leases"]),
        names,
        verbs: string_set(verbs),
        because: string_set(&["kctl: slots of a sharded program"]),
        ..Rule::default()
    };
    let named = std::iter::once(app.to_owned()).chain(slots).collect();
    vec![rule(BTreeSet::new(), &["create", "list", "watch"]), rule(named, &["get", "update"])]
}

/// Returns the rules to authenticate and authorize readers of metrics.
fn reviews() -> Vec<Rule> {
    let rule = |group: &str, resource: &str| Rule {
        groups: string_set(&[group]),
        resources: string_set(&[resource]),
        verbs: string_set(&["create"]),
        because: string_set(&["kctl: authentication and authorization of metrics requests"]),
        ..Rule::default()
    };
    vec![rule("authentication.k8s.io", "tokenreviews"), rule("authorization.k8s.io", "subjectaccessreviews")]
}

/// Returns the roles and bindings of the manager.
///
/// - For the Lease, a Role in the program's namespace that is limited to the Lease's name.
/// - For shards, a Role in the program's namespace for the Leases of its slots and seats.
/// - For metrics, a `ClusterRole` to create reviews.
/// - The `ClusterRole` `NAME-metrics-reader`, without a binding: bind it to the service account of Prometheus.
///
/// ```
/// use kctl_runtime::manifest::{ManagerOptions, RbacOptions, manager_rbac};
///
/// let options = RbacOptions::new("settings", "shop");
/// let manager = ManagerOptions::default().with_leader_election();
/// let files: Vec<String> = manager_rbac(&options, manager)?.into_iter().map(|manifest| manifest.file).collect();
/// assert_eq!(files, [
///     "rbac/role-settings-leader-election.shop.yaml",
///     "rbac/rolebinding-settings-leader-election.shop.yaml",
/// ]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An object cannot be written as YAML.
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
        let (name, namespace) = (format!("{}-leader-election", options.name), Some(&options.namespace));
        manifests.push(role("Role", &name, options, namespace, &election(&options.name))?);
        manifests.push(binding("Role", &name, options, namespace)?);
    }
    if let Some(n) = manager.slots() {
        let (name, namespace) = (format!("{}-shards", options.name), Some(&options.namespace));
        manifests.push(role("Role", &name, options, namespace, &sharding(&options.name, n))?);
        manifests.push(binding("Role", &name, options, namespace)?);
    }
    Ok(manifests)
}

/// Returns the role to bind to the service account of a scraper.
fn reader(options: &RbacOptions) -> Result<Manifest, serde_saphyr::SerializeError> {
    let rule = Rule {
        urls: string_set(&["/metrics"]),
        verbs: string_set(&["get"]),
        because: string_set(&["kctl: subjects of this role may read the metrics"]),
        ..Rule::default()
    };
    role("ClusterRole", &format!("{}-metrics-reader", options.name), options, None, &[rule])
}
