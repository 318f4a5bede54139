//! What a pod template needs, for the `kube` library: resources with a claim on nodes, and the objects it refers to.
//!
//! Follows Karmada's `helper.GenerateReplicaRequirements` and `helper.GetDependenciesFromPodTemplate`.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, Volume};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::quantity::{Format, Quantity};

/// Reads a pod template. Quantities may be numbers, as in YAML.
///
/// # Errors
/// A field has the wrong type, or a quantity is none.
pub(super) fn parse(mut template: Value) -> Result<PodSpec, String> {
    if let Some(spec) = template.get_mut("spec") {
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        for list in lists {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                for kind in ["limits", "requests"] {
                    let pointer = format!("/resources/{kind}");
                    quantities_as_text(container.pointer_mut(&pointer))?;
                }
            }
        }
        quantities_as_text(spec.get_mut("overhead"))?;
    }
    let template = PodTemplateSpec::deserialize(template).map_err(|error| error.to_string())?;
    Ok(template.spec.unwrap_or_default())
}

fn quantities_as_text(quantities: Option<&mut Value>) -> Result<(), String> {
    for (name, quantity) in quantities.and_then(Value::as_object_mut).into_iter().flatten() {
        if quantity.is_number() {
            *quantity = Value::String(quantity.to_string());
        }
        let text =
            quantity.as_str().ok_or_else(|| format!("resource {name} is no quantity: write a string or number"))?;
        Quantity::parse(text).map_err(|error| format!("resource {name}: {error}"))?;
    }
    Ok(())
}

/// Returns `ReplicaRequirements` of a pod, `null` if it claims nothing.
pub(super) fn requirements(spec: &PodSpec) -> Value {
    let mut requirements = Map::new();
    if let Some(claim) = node_claim(spec) {
        requirements.insert("nodeClaim".to_owned(), claim);
    }
    let resources = resources(spec);
    if !resources.is_empty() {
        let texts = resources.into_iter().map(|(name, quantity)| (name, Value::String(quantity)));
        requirements.insert("resourceRequest".to_owned(), Value::Object(texts.collect()));
    }
    if requirements.is_empty() { Value::Null } else { Value::Object(requirements) }
}

fn node_claim(spec: &PodSpec) -> Option<Value> {
    let node_affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = node_affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let tolerations = spec.tolerations.as_ref().filter(|tolerations| !tolerations.is_empty());
    let mut claim = Map::new();
    let parts = [
        ("hardNodeAffinity", required.map(serde_json::to_value)),
        ("nodeSelector", spec.node_selector.as_ref().map(serde_json::to_value)),
        ("tolerations", tolerations.map(serde_json::to_value)),
    ];
    for (name, part) in parts {
        // These types are plain data: they always have a JSON form.
        if let Some(Ok(part)) = part {
            claim.insert(name.to_owned(), part);
        }
    }
    (!claim.is_empty()).then_some(Value::Object(claim))
}

type Resources = BTreeMap<String, i64>;

/// Returns the resources of a pod: the sum of its containers, at least each of its init containers, and the overhead.
fn resources(spec: &PodSpec) -> BTreeMap<String, String> {
    let mut total = Resources::new();
    for container in &spec.containers {
        for (name, value) in requests(container) {
            let entry = total.entry(name).or_default();
            *entry = entry.saturating_add(value);
        }
    }
    for container in spec.init_containers.iter().flatten() {
        for (name, value) in requests(container) {
            let entry = total.entry(name).or_default();
            *entry = value.max(*entry);
        }
    }
    for (name, quantity) in spec.overhead.iter().flatten() {
        if let Some(value) = amount(name, &quantity.0) {
            let entry = total.entry(name.clone()).or_default();
            *entry = entry.saturating_add(value);
        }
    }
    total.into_iter().filter(|(_, value)| *value > 0).map(|(name, value)| (name.clone(), text(&name, value))).collect()
}

/// Returns the requests of a container; a limit without a request is one.
fn requests(container: &Container) -> Resources {
    let resources = container.resources.as_ref();
    let limits = resources.and_then(|resources| resources.limits.as_ref()).into_iter().flatten();
    let requests = resources.and_then(|resources| resources.requests.as_ref()).into_iter().flatten();
    limits.chain(requests).filter_map(|(name, quantity)| Some((name.clone(), amount(name, &quantity.0)?))).collect()
}

/// Returns an amount in the unit in which Karmada counts the resource; none for a resource that it does not count.
fn amount(name: &str, quantity: &str) -> Option<i64> {
    let quantity = Quantity::parse(quantity).ok()?;
    match name {
        "cpu" => Some(quantity.scaled(-3)),
        "memory" | "ephemeral-storage" | "pods" => Some(quantity.scaled(0)),
        name => is_scalar(name).then(|| quantity.scaled(0)),
    }
}

fn is_scalar(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    (!is_native && !name.starts_with("requests."))
        || name.starts_with("hugepages-")
        || name.contains("kubernetes.io/")
        || name.starts_with("attachable-volumes-")
}

fn text(name: &str, value: i64) -> String {
    let (exponent, format) = match name {
        "cpu" => (-3, Format::DecimalSi),
        "memory" | "ephemeral-storage" => (0, Format::BinarySi),
        name if name.starts_with("hugepages-") => (0, Format::BinarySi),
        _ => (0, Format::DecimalSi),
    };
    Quantity::new(value, exponent, format).to_string()
}

/// Returns the objects that a pod in `namespace` refers to, each once, by kind and name; `null` if there are none.
pub(super) fn dependencies(spec: &PodSpec, namespace: &str) -> Value {
    let mut names: [BTreeSet<&str>; 4] = Default::default();
    let [config_maps, secrets, service_accounts, claims] = &mut names;
    let pull_secrets = spec.image_pull_secrets.iter().flatten();
    secrets.extend(pull_secrets.map(|reference| reference.name.as_str()));
    for (env_from, env) in containers(spec) {
        for source in env_from.iter().flatten() {
            config_maps.extend(source.config_map_ref.as_ref().map(|reference| reference.name.as_str()));
            secrets.extend(source.secret_ref.as_ref().map(|reference| reference.name.as_str()));
        }
        for value in env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            config_maps.extend(value.config_map_key_ref.as_ref().map(|reference| reference.name.as_str()));
            secrets.extend(value.secret_key_ref.as_ref().map(|reference| reference.name.as_str()));
        }
    }
    for volume in spec.volumes.iter().flatten() {
        volume_dependencies(volume, config_maps, secrets);
        claims.extend(volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.as_str()));
    }
    service_accounts.extend(spec.service_account_name.as_deref().filter(|name| *name != "default"));
    let kinds = ["ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"];
    let references: Vec<Value> = kinds
        .into_iter()
        .zip(&names)
        .flat_map(|(kind, names)| names.iter().map(move |name| (kind, name)))
        .filter(|(_, name)| !name.is_empty())
        .map(|(kind, name)| match namespace {
            "" => json!({"apiVersion": "v1", "kind": kind, "name": name}),
            namespace => json!({"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}),
        })
        .collect();
    if references.is_empty() { Value::Null } else { Value::Array(references) }
}

type Environment<'a> =
    (&'a Option<Vec<k8s_openapi::api::core::v1::EnvFromSource>>, &'a Option<Vec<k8s_openapi::api::core::v1::EnvVar>>);

fn containers(spec: &PodSpec) -> impl Iterator<Item = Environment<'_>> {
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    containers
        .map(|container| (&container.env_from, &container.env))
        .chain(ephemeral.map(|container| (&container.env_from, &container.env)))
}

fn volume_dependencies<'a>(volume: &'a Volume, config_maps: &mut BTreeSet<&'a str>, secrets: &mut BTreeSet<&'a str>) {
    config_maps.extend(volume.config_map.as_ref().map(|source| source.name.as_str()));
    for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
        config_maps.extend(source.config_map.as_ref().map(|source| source.name.as_str()));
        secrets.extend(source.secret.as_ref().map(|source| source.name.as_str()));
    }
    secrets.extend(volume.secret.as_ref().and_then(|source| source.secret_name.as_deref()));
    secrets.extend(volume.azure_file.as_ref().map(|source| source.secret_name.as_str()));
    let references = [
        volume.cephfs.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.cinder.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.flex_volume.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.rbd.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.iscsi.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.storageos.as_ref().and_then(|source| source.secret_ref.as_ref()),
        volume.csi.as_ref().and_then(|source| source.node_publish_secret_ref.as_ref()),
    ];
    secrets.extend(references.into_iter().flatten().map(|reference| reference.name.as_str()));
    let scale_io = volume.scale_io.as_ref().map(|source| &source.secret_ref);
    secrets.extend(scale_io.map(|reference| reference.name.as_str()));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{dependencies, parse, requirements};

    #[test]
    fn requirements_are_the_larger_of_containers_and_init_containers() {
        let limits = |limits: Value| json!([{"name": "c", "resources": {"limits": limits}}]);
        for (name, spec, expected) in [
            ("nothing", json!({"containers": []}), Value::Null),
            (
                "limits stand in for requests",
                json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "100m"}}}]}),
                json!({"resourceRequest": {"cpu": "100m", "memory": "1Gi"}}),
            ),
            (
                "init container and overhead",
                json!({"containers": limits(json!({"cpu": "1"})), "initContainers": limits(json!({"cpu": "2"})), "overhead": {"cpu": "250m"}}),
                json!({"resourceRequest": {"cpu": "2250m"}}),
            ),
            (
                "names",
                json!({"containers": limits(json!({"nvidia.com/gpu": "2", "foo": "1", "hugepages-2Mi": "4Mi", "requests.x/y": "1", "memory": "0"}))}),
                json!({"resourceRequest": {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "2"}}),
            ),
            (
                "claim",
                json!({"containers": [], "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}]}),
                json!({"nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}]}}),
            ),
        ] {
            assert_eq!(requirements(&parse(json!({"spec": spec})).unwrap()), expected, "{name}");
        }
    }

    #[test]
    fn a_field_of_the_wrong_type_is_an_error() {
        for spec in [
            json!({"containers": "x"}),
            json!({"containers": [{"name": 1}]}),
            json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": "x"}}}]}),
            json!({"nodeSelector": {"a": 1}}),
        ] {
            assert!(parse(json!({"spec": spec})).is_err(), "{spec}");
        }
    }

    #[test]
    fn dependencies_are_every_object_that_a_pod_names() {
        let spec = json!({
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}, {"name": ""}],
            "initContainers": [{"name": "i", "env": [{"name": "e", "valueFrom": {"configMapKeyRef": {"name": "env", "key": "k"}}}]}],
            "containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "pull"}}]}],
            "volumes": [
                {"name": "v", "projected": {"sources": [{"configMap": {"name": "projected"}}]}},
                {"name": "w", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "x", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
            ],
        });
        let found = dependencies(&parse(json!({"spec": spec})).unwrap(), "ns");
        let found: Vec<(&str, &str)> = found
            .as_array()
            .into_iter()
            .flatten()
            .map(|object| (object["kind"].as_str().unwrap(), object["name"].as_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                ("ConfigMap", "env"),
                ("ConfigMap", "projected"),
                ("Secret", "csi"),
                ("Secret", "pull"),
                ("ServiceAccount", "sa"),
                ("PersistentVolumeClaim", "data"),
            ]
        );
        let none = json!({"spec": {"containers": [], "serviceAccountName": "default"}});
        assert_eq!(dependencies(&parse(none).unwrap(), "ns"), Value::Null);
    }
}
