//! Manifests for kubernetes-controller-sharding: the `ControllerRing`, the permissions of the sharder, and the
//! permissions of a shard.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::{
    Manifest, RbacOptions,
    rbac::{Permission, PermissionScope, PermissionTarget, bound_roles},
};
use crate::{
    object::Kind,
    spec::{ControllerSpec, RelationKind},
};

/// Name of the sharder's service account, as its project installs it.
const SHARDER: &str = "sharder";
/// Namespace of that service account.
const SHARDER_NAMESPACE: &str = "sharding-system";
/// Number of replicas of a Deployment in a ring, as with leader election.
const REPLICAS: u32 = 2;

/// A resource, by group and plural.
type Resource = (String, String);

/// Returns the permissions of a shard in addition to its controllers' permissions. It creates and renews its Lease in
/// the program's namespace, and removes the labels of primaries that it hands over.
///
/// The Lease has the name of the Pod, so the role cannot be limited to it.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kctl_runtime::{reconcile::Controller, spec::{ControllerSpec, SpecBuilder}};
/// # struct Settings;
/// # impl Controller for Settings {
/// #     type Primary = ConfigMap;
/// #     type Verbs = ();
/// #     fn spec() -> ControllerSpec { SpecBuilder::<Self>::new("Settings", file!(), line!()).build() }
/// # }
/// use kctl_runtime::manifest::ring_permissions;
///
/// let permissions: Vec<String> = ring_permissions(&[Settings::spec()], "shop").iter().map(ToString::to_string).collect();
/// assert_eq!(permissions, [
///     "patch configmaps",
///     "create leases.coordination.k8s.io in namespace shop",
///     "get leases.coordination.k8s.io in namespace shop",
///     "update leases.coordination.k8s.io in namespace shop",
/// ]);
/// ```
pub fn ring_permissions(specs: &[ControllerSpec], namespace: &str) -> Vec<Permission> {
    let permission = |scope: &PermissionScope, target: &PermissionTarget, verb: &str, because: &str| Permission {
        scope: scope.clone(),
        target: target.clone(),
        verb: verb.into(),
        because: BTreeSet::from([because.to_owned()]),
        framework: true,
    };
    let target = |group: &str, resource: &str| PermissionTarget::Resource {
        group: group.into(),
        resource: resource.into(),
        name: String::new(),
    };
    let mut permissions = BTreeSet::new();
    for spec in specs {
        let primary = target(&spec.primary.kind.group, &spec.primary.kind.plural);
        let limited = spec.namespaces.iter().filter(|_| spec.primary.namespaced);
        let mut scopes: Vec<PermissionScope> = limited.cloned().map(PermissionScope::Namespace).collect();
        if scopes.is_empty() {
            scopes.push(PermissionScope::Everywhere);
        }
        let because = "kctl: hands primaries over in a controller ring";
        permissions.extend(scopes.iter().map(|scope| permission(scope, &primary, "patch", because)));
    }
    let (here, leases) = (PermissionScope::Namespace(namespace.into()), target("coordination.k8s.io", "leases"));
    let verbs = ["create", "get", "update"];
    permissions.extend(verbs.map(|verb| permission(&here, &leases, verb, "kctl: the Lease of a shard")));
    permissions.into_iter().collect()
}

/// Returns the roles of a shard, and the role that lets the sharder label the objects of the ring.
///
/// They come in addition to [`rbac`](super::rbac()), and replace the roles of leader election and shards.
///
/// # Errors
/// An object cannot be written as YAML.
pub fn ring_rbac(
    specs: &[ControllerSpec],
    options: &RbacOptions,
    ring: &str,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let (name, permissions) =
        (format!("{}-controller-ring", options.name), ring_permissions(specs, &options.namespace));
    let mut manifests: Vec<Manifest> = bound_roles(&name, options, &permissions)?.into_iter().flatten().collect();
    manifests.extend(sharder_rbac(specs, ring)?);
    Ok(manifests)
}

/// Returns the `ControllerRing` with the kinds of the declarations: those that controllers reconcile, and those that
/// they own.
///
/// If all controllers are limited to namespaces, the ring selects these. Otherwise the sharder's default counts: all
/// namespaces but `kube-system` and `sharding-system`.
///
/// # Errors
/// The object cannot be written as YAML.
pub fn controller_ring(specs: &[ControllerSpec], ring: &str) -> Result<Manifest, serde_saphyr::SerializeError> {
    let resource = |(group, resource): &Resource| json!({ "group": group, "resource": resource });
    let resources = resources(specs).into_iter().map(|(primary, controlled)| {
        let mut object = resource(&primary);
        if !controlled.is_empty() {
            object["controlledResources"] = controlled.iter().map(resource).collect();
        }
        object
    });
    let mut spec = json!({ "resources": resources.collect::<Vec<_>>() });
    if specs.iter().all(|spec| !spec.namespaces.is_empty()) {
        let namespaces: BTreeSet<&String> = specs.iter().flat_map(|spec| &spec.namespaces).collect();
        let name = json!({ "key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces });
        spec["namespaceSelector"] = json!({ "matchExpressions": [name] });
    }
    let object = json!({
        "apiVersion": "sharding.timebertt.dev/v1alpha1",
        "kind": "ControllerRing",
        "metadata": { "name": ring },
        "spec": spec,
    });
    Manifest::new(format!("sharding/controllerring-{ring}.yaml"), object)
}

/// Returns the Deployment with the flag of the ring, several replicas and rolling updates.
///
/// `deployment` comes from [`deployment`](super::deployment()) without leader election and shards.
///
/// # Errors
/// The object cannot be written as YAML.
pub fn deployment_in_ring(deployment: Manifest, ring: &str) -> Result<Manifest, serde_saphyr::SerializeError> {
    let Manifest { file, mut object, .. } = deployment;
    let spec = &mut object["spec"];
    spec["replicas"] = REPLICAS.into();
    // The defaults of API servers, written down as for leader election.
    let rolling_update = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
    spec["strategy"] = json!({ "type": "RollingUpdate", "rollingUpdate": rolling_update });
    let args = &mut spec["template"]["spec"]["containers"][0]["args"];
    args.as_array_mut().into_iter().for_each(|args| args.push(format!("--controller-ring={ring}").into()));
    Manifest::new(file, object)
}

/// Returns the role that lets the sharder list and label the objects of a ring, and its binding.
fn sharder_rbac(specs: &[ControllerSpec], ring: &str) -> Result<[Manifest; 2], serde_saphyr::SerializeError> {
    let name = format!("sharding:controllerring:{ring}");
    let mut by_group: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (primary, controlled) in resources(specs) {
        for (group, resource) in controlled.into_iter().chain([primary]) {
            by_group.entry(group).or_default().insert(resource);
        }
    }
    let rules = by_group
        .iter()
        .map(|(group, resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": ["list", "patch"] }));
    let meta = |kind: &str| json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": name } });
    let mut role = meta("ClusterRole");
    role["rules"] = rules.collect();
    let mut binding = meta("ClusterRoleBinding");
    binding["roleRef"] = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name });
    binding["subjects"] = json!([{ "kind": "ServiceAccount", "name": SHARDER, "namespace": SHARDER_NAMESPACE }]);
    Ok([
        Manifest::new(format!("sharding/clusterrole-{ring}.yaml"), role)?,
        Manifest::new(format!("sharding/clusterrolebinding-{ring}.yaml"), binding)?,
    ])
}

/// Returns the kinds that controllers reconcile, each with those that they own.
///
/// A kind that one controller owns and another reconciles is assigned by its own key.
fn resources(specs: &[ControllerSpec]) -> BTreeMap<Resource, BTreeSet<Resource>> {
    let resource_of = |kind: &Kind| (kind.group.clone(), kind.plural.clone());
    let primaries: BTreeSet<Resource> = specs.iter().map(|spec| resource_of(&spec.primary.kind)).collect();
    let mut resources: BTreeMap<Resource, BTreeSet<Resource>> = BTreeMap::new();
    for spec in specs {
        let owned = spec.relations.iter().filter(|relation| {
            relation.declared_as == RelationKind::Owned && relation.map.is_none() && relation.cluster.is_empty()
        });
        let owned = owned.map(|relation| resource_of(&relation.kind)).filter(|owned| !primaries.contains(owned));
        resources.entry(resource_of(&spec.primary.kind)).or_default().extend(owned);
    }
    resources
}
