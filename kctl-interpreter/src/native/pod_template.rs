//! What a pod template needs and what it depends on.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{NativeError, Result, resources};
use crate::{
    operation::{DependentReference, NodeClaim, ReplicaRequirements, Replicas},
    typed::{Parts, Typed},
};

/// What [`replicas`] reads of a workload.
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

/// What [`referenced`] reads of a pod, with its namespace.
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

/// Returns what a pod of a template needs: resources, and what it asks of nodes; `None` for nothing.
///
/// # Errors
/// The template is not a `PodTemplateSpec`: correct the field that the error names.
pub fn requirements(template: &Value) -> Result<Option<ReplicaRequirements>> {
    let template = Typed::parts_of_json("PodTemplateSpec", template, NEEDS);
    required(template.map_err(NativeError::object("PodTemplateSpec"))?.at("/spec"))
}

/// Returns what a pod of a template reads from its namespace; nothing is an empty list.
///
/// # Errors
/// The template is not a `PodTemplateSpec`: correct the field that the error names.
pub fn dependencies(template: &Value, namespace: &str) -> Result<Vec<DependentReference>> {
    let template = Typed::parts_of_json("PodTemplateSpec", template, REFERENCES);
    Ok(referenced(template.map_err(NativeError::object("PodTemplateSpec"))?.at("/spec"), namespace))
}

/// Returns the replicas of a workload with `spec.replicas` and `spec.template`. An absent number is 0.
pub(super) fn replicas_of(kind: &'static str, object: &Value) -> Result<Replicas> {
    let workload = Typed::parts_of_object(kind, object, NEEDS).map_err(NativeError::object(kind))?;
    replicas(workload.number("/spec/replicas"), workload.at("/spec/template/spec"))
}

/// Returns the dependencies of a workload with `spec.template`.
pub(super) fn dependencies_of(kind: &'static str, object: &Value) -> Result<Vec<DependentReference>> {
    let workload = Typed::parts_of_object(kind, object, REFERENCES).map_err(NativeError::object(kind))?;
    Ok(referenced(workload.at("/spec/template/spec"), workload.text("/metadata/namespace")))
}

/// Returns a number of replicas with the needs of a decoded `PodSpec`.
#[expect(clippy::cast_possible_truncation, reason = "the number was decoded as 32 bits")]
pub(super) fn replicas(replicas: i64, pod_spec: &Value) -> Result<Replicas> {
    Ok(Replicas { replicas: replicas as i32, requirements: required(pod_spec)? })
}

fn required(pod_spec: &Value) -> Result<Option<ReplicaRequirements>> {
    let node_claim = node_claim(pod_spec)?;
    let resource_request = resources::requested(pod_spec);
    if node_claim.is_none() && resource_request.is_empty() {
        return Ok(None);
    }
    Ok(Some(ReplicaRequirements { node_claim, resource_request, ..ReplicaRequirements::default() }))
}

fn node_claim(pod_spec: &Value) -> Result<Option<NodeClaim>> {
    let affinity = &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let (selector, tolerations) = (&pod_spec["nodeSelector"], &pod_spec["tolerations"]);
    // An empty selector is one, though it selects nothing; Go's map is not nil then.
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

/// Returns what a decoded `PodSpec` refers to, each once, in order of kind and name.
pub(super) fn referenced(pod_spec: &Value, namespace: &str) -> Vec<DependentReference> {
    let mut names = Names::default();
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

#[derive(Default)]
struct Names<'a> {
    config_maps: BTreeSet<&'a str>,
    secrets: BTreeSet<&'a str>,
    service_accounts: BTreeSet<&'a str>,
    claims: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
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

/// The volume sources that may name a secret. Of a volume with several sources, which no API server accepts, the first
/// counts.
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

fn volume_source<'n>(volume: &Value, sources: &[&'n str]) -> Option<&'n str> {
    sources.iter().copied().find(|source| !volume[*source].is_null())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn add<'a>(names: &mut BTreeSet<&'a str>, name: &'a Value) {
    if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
        names.insert(name);
    }
}
