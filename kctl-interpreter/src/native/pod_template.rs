//! Requirements and references of a Pod template, which all kinds with Pods share.
//!
//! Karmada's sources are `GenerateReplicaRequirements` in `pkg/util/helper/binding.go` and
//! `GetDependenciesFromPodTemplate` in `pkg/util/helper/pod.go`. The library `kube` of Lua scripts
//! offers both functions for custom resources with a Pod template.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{NativeError, Result, resources};
use crate::{
    operation::{DependentReference, NodeClaim, ReplicaRequirements, Replicas},
    typed::{Parts, Typed},
};

/// The fields of a workload that [`replicas`] reads. Decoding only these takes a fraction of the
/// time of decoding all.
pub(super) const NEEDS: Parts = &[
    ("Pod", &["spec"]),
    ("Deployment", &["spec"]),
    ("DeploymentSpec", &["replicas", "template"]),
    ("Job", &["spec"]),
    ("JobSpec", &["completions", "parallelism", "template"]),
    ("ReplicaSet", &["spec"]),
    ("ReplicaSetSpec", &["replicas", "template"]),
    ("StatefulSet", &["spec"]),
    ("StatefulSetSpec", &["replicas", "template"]),
    ("PodTemplateSpec", &["spec"]),
    ("PodSpec", &["affinity", "containers", "initContainers", "nodeSelector", "overhead", "tolerations"]),
    ("Container", &["resources"]),
];

/// The fields of a workload that [`dependencies_of_pod_spec`] reads, and its namespace.
pub(super) const REFERENCES: Parts = &[
    ("Pod", &["metadata", "spec"]),
    ("Deployment", &["metadata", "spec"]),
    ("ObjectMeta", &["namespace"]),
    (
        "PodSpec",
        &["containers", "ephemeralContainers", "imagePullSecrets", "initContainers", "serviceAccountName", "volumes"],
    ),
    ("Container", &["env", "envFrom"]),
    ("EphemeralContainer", &["env", "envFrom"]),
    ("EnvVar", &["valueFrom"]),
];

/// Returns the requirements of one Pod of a `PodTemplateSpec`; `None` if it requests no resources
/// and has no node requirements.
///
/// Use it in a function for `InterpretReplica` of a custom resource with a Pod template. Requests
/// of all containers are added up, limits replace requests that are absent, and the overhead is added. The node claim
/// has the node selector, the required node affinity and the tolerations. `namespace` and `priority_class_name` of the
/// result are empty.
///
/// ```
/// use kctl_interpreter::native::pod_requirements;
/// use serde_json::json;
///
/// let template = json!({ "spec": { "containers": [
///     { "name": "web", "resources": { "requests": { "cpu": "500m" }, "limits": { "cpu": "1", "memory": "1Gi" } } },
///     { "name": "log", "resources": { "requests": { "cpu": "250m" } } },
/// ] } });
/// let requirements = pod_requirements(&template)?.unwrap_or_default();
/// assert_eq!(requirements.resource_request["cpu"], "750m");
/// assert_eq!(requirements.resource_request["memory"], "1Gi", "a limit stands in for an absent request");
/// assert!(requirements.node_claim.is_none());
/// # Ok::<_, kctl_interpreter::native::NativeError>(())
/// ```
///
/// # Errors
/// [`NativeError::ObjectInvalid`] if the template is not a `PodTemplateSpec`; the message names the
/// field.
pub fn requirements(template: &Value) -> Result<Option<ReplicaRequirements>> {
    let template = Typed::parts_of_json("PodTemplateSpec", template, NEEDS);
    requirements_of_pod_spec(template.map_err(NativeError::object("PodTemplateSpec"))?.at("/spec"))
}

/// Returns the objects in `namespace` that Pods of a `PodTemplateSpec` refer to; an empty list if
/// they refer to nothing.
///
/// Use it in a function for `InterpretDependency` of a custom resource with a Pod template. The
/// list has each object once, first `ConfigMap`s, then `Secret`s, the `ServiceAccount` and
/// `PersistentVolumeClaim`s, each sorted by name. The service account `default` is left out,
/// because every namespace has it.
///
/// ```
/// use kctl_interpreter::native::pod_dependencies;
/// use serde_json::json;
///
/// let template = json!({ "spec": {
///     "containers": [{ "name": "web", "envFrom": [{ "configMapRef": { "name": "settings" } }] }],
///     "volumes": [{ "name": "tls", "secret": { "secretName": "certificate" } }],
///     "serviceAccountName": "default",
/// } });
/// let found = pod_dependencies(&template, "shop")?;
/// let names: Vec<_> = found.iter().map(|one| (one.kind.as_str(), one.name.as_str())).collect();
/// assert_eq!(names, [("ConfigMap", "settings"), ("Secret", "certificate")]);
/// assert!(found.iter().all(|one| one.namespace == "shop"));
/// # Ok::<_, kctl_interpreter::native::NativeError>(())
/// ```
///
/// # Errors
/// [`NativeError::ObjectInvalid`] if the template is not a `PodTemplateSpec`; the message names the
/// field.
pub fn dependencies(template: &Value, namespace: &str) -> Result<Vec<DependentReference>> {
    let template = Typed::parts_of_json("PodTemplateSpec", template, REFERENCES);
    Ok(dependencies_of_pod_spec(template.map_err(NativeError::object("PodTemplateSpec"))?.at("/spec"), namespace))
}

/// Returns the replicas of a workload with `spec.replicas` and `spec.template`. An absent number is
/// 0, as in Go, although the API server would default it to 1.
pub(super) fn replicas_of(kind: &'static str, object: &Value) -> Result<Replicas> {
    let workload = Typed::parts_of_object(kind, object, NEEDS).map_err(NativeError::object(kind))?;
    replicas(workload.number("/spec/replicas"), workload.at("/spec/template/spec"))
}

/// Returns the references of a workload with `spec.template`, in the namespace of the workload.
pub(super) fn dependencies_of(kind: &'static str, object: &Value) -> Result<Vec<DependentReference>> {
    let workload = Typed::parts_of_object(kind, object, REFERENCES).map_err(NativeError::object(kind))?;
    Ok(dependencies_of_pod_spec(workload.at("/spec/template/spec"), workload.text("/metadata/namespace")))
}

/// Returns a number of replicas with the requirements of a decoded `PodSpec`.
#[expect(clippy::cast_possible_truncation, reason = "the number was decoded as 32 bits")]
pub(super) fn replicas(replicas: i64, pod_spec: &Value) -> Result<Replicas> {
    Ok(Replicas { replicas: replicas as i32, requirements: requirements_of_pod_spec(pod_spec)? })
}

/// Returns the requirements of a decoded `PodSpec`; `None` if there is neither a node claim nor a
/// resource request.
fn requirements_of_pod_spec(pod_spec: &Value) -> Result<Option<ReplicaRequirements>> {
    let node_claim = node_claim(pod_spec)?;
    let resource_request = resources::pod_requests(pod_spec);
    if node_claim.is_none() && resource_request.is_empty() {
        return Ok(None);
    }
    Ok(Some(ReplicaRequirements { node_claim, resource_request, ..ReplicaRequirements::default() }))
}

/// Returns the node requirements of a decoded `PodSpec` (`GenerateNodeClaimByPodSpec` in Karmada's
/// `pkg/util/helper/binding.go`); `None` for a Pod that can run on any node.
///
/// Preferred affinity is ignored: it does not keep a Pod from a node.
fn node_claim(pod_spec: &Value) -> Result<Option<NodeClaim>> {
    let affinity = &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let (selector, tolerations) = (&pod_spec["nodeSelector"], &pod_spec["tolerations"]);
    // An empty selector counts, because it is a non-nil map in Go.
    if selector.is_null() && affinity.is_null() && tolerations.as_array().is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    let tolerations = Typed::encode_part("Toleration", tolerations);
    Ok(Some(NodeClaim {
        hard_node_affinity: (!affinity.is_null()).then(|| Typed::encode_part("NodeSelector", affinity)),
        node_selector: serde_json::from_value::<Option<_>>(selector.clone())?.unwrap_or_default(),
        tolerations: serde_json::from_value::<Option<_>>(tolerations)?.unwrap_or_default(),
    }))
}

/// Returns the objects that a decoded `PodSpec` refers to: each once, in order of kind and name.
///
/// Sources are environment variables of all containers, `imagePullSecrets`, volumes and the service
/// account.
pub(super) fn dependencies_of_pod_spec(pod_spec: &Value, namespace: &str) -> Vec<DependentReference> {
    let mut names = ReferencedNames::default();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        items(&pod_spec[list]).for_each(|container| names.add_container(container));
    }
    for reference in items(&pod_spec["imagePullSecrets"]) {
        add(&mut names.secrets, &reference["name"]);
    }
    for volume in items(&pod_spec["volumes"]) {
        names.add_volume(volume);
    }
    if pod_spec["serviceAccountName"] != "default" {
        add(&mut names.service_accounts, &pod_spec["serviceAccountName"]);
    }
    let kinds = [
        ("ConfigMap", names.config_maps),
        ("Secret", names.secrets),
        ("ServiceAccount", names.service_accounts),
        ("PersistentVolumeClaim", names.claims),
    ];
    let references = kinds.into_iter().flat_map(|(kind, names)| names.into_iter().map(move |name| (kind, name)));
    let references = references.map(|(kind, name)| DependentReference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        label_selector: None,
    });
    references.collect()
}

/// Names of the referenced objects by kind, sorted and without duplicates.
#[derive(Default)]
struct ReferencedNames<'a> {
    /// `ConfigMap`s of environment variables and volumes.
    config_maps: BTreeSet<&'a str>,
    /// `Secret`s of environment variables, volumes and image pulls.
    secrets: BTreeSet<&'a str>,
    /// The service account, unless it is `default`.
    service_accounts: BTreeSet<&'a str>,
    /// `PersistentVolumeClaim`s of volumes.
    claims: BTreeSet<&'a str>,
}

impl<'a> ReferencedNames<'a> {
    /// Adds the references of `envFrom` and `env` of a container.
    fn add_container(&mut self, container: &'a Value) {
        for source in items(&container["envFrom"]) {
            add(&mut self.config_maps, &source["configMapRef"]["name"]);
            add(&mut self.secrets, &source["secretRef"]["name"]);
        }
        for variable in items(&container["env"]) {
            add(&mut self.config_maps, &variable["valueFrom"]["configMapKeyRef"]["name"]);
            add(&mut self.secrets, &variable["valueFrom"]["secretKeyRef"]["name"]);
        }
    }

    /// Adds the references of a volume. A projected volume can have several sources of each kind.
    fn add_volume(&mut self, volume: &'a Value) {
        add(&mut self.claims, &volume["persistentVolumeClaim"]["claimName"]);
        match volume_source(volume, &["projected", "configMap"]) {
            Some("projected") => {
                items(&volume["projected"]["sources"])
                    .for_each(|source| add(&mut self.config_maps, &source["configMap"]["name"]));
            }
            Some(_) => add(&mut self.config_maps, &volume["configMap"]["name"]),
            None => {}
        }
        match volume_source(volume, &SECRET_SOURCES) {
            Some("projected") => {
                items(&volume["projected"]["sources"])
                    .for_each(|source| add(&mut self.secrets, &source["secret"]["name"]));
            }
            Some(source @ ("azureFile" | "secret")) => add(&mut self.secrets, &volume[source]["secretName"]),
            Some("csi") => add(&mut self.secrets, &volume["csi"]["nodePublishSecretRef"]["name"]),
            Some(source) => add(&mut self.secrets, &volume[source]["secretRef"]["name"]),
            None => {}
        }
    }
}

/// The volume sources that may name a Secret, in the order in which they are tried. A volume with
/// several sources is invalid for an API server; here the first counts.
const SECRET_SOURCES: [&str; 11] = [
    "azureFile",
    "cephfs",
    "cinder",
    "flexVolume",
    "projected",
    "rbd",
    "secret",
    "scaleIO",
    "iscsi",
    "storageos",
    "csi",
];

/// Returns the first of `sources` that the volume has.
fn volume_source<'n>(volume: &Value, sources: &[&'n str]) -> Option<&'n str> {
    sources.iter().copied().find(|source| !volume[*source].is_null())
}

/// Returns the items of a list; no items for null.
fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Adds a name unless it is empty or absent.
fn add<'a>(names: &mut BTreeSet<&'a str>, name: &'a Value) {
    if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
        names.insert(name);
    }
}
