//! The installation of a program: Deployment, metrics Service, `PodDisruptionBudget` and kustomization.

use serde_json::{Value, json};

use super::{ManagerOptions, Manifest, RbacOptions, Resources};

/// Port of the kubelet's probes.
const PROBES_PORT: u16 = 8081;
/// Port of metrics, as in kubebuilder's scaffold.
const METRICS_PORT: u16 = 8443;
/// Grace period of the Pod: 30 s for reconciles, 5 s for events, and 10 s to release the Lease.
const STOP_SECONDS: u32 = 30 + 5 + 10;

/// Returns a Deployment that runs the program `image` with the service account of [`rbac`](super::rbac).
///
/// With leader election or shards, and for a program with webhooks alone, it has two replicas and rolling updates. Otherwise
/// it has one replica and the strategy `Recreate`, because two would work against each other. The container runs as a
/// non-root user with a read-only file system and no capabilities.
///
/// ```
/// use kctl_runtime::manifest::{ManagerOptions, RbacOptions, Resources, deployment};
///
/// let options = RbacOptions::new("settings", "shop");
/// let manager = ManagerOptions::default().with_leader_election();
/// let resources = Resources::default().with_limits(&"memory=1Gi".parse()?);
/// let manifest = deployment(&options, manager, &resources, "example.com/settings:1")?;
/// assert_eq!(manifest.object["spec"]["replicas"], 2);
/// assert_eq!(manifest.file, "manager/deployment-settings.yaml");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The object cannot be written as YAML.
pub fn deployment(
    options: &RbacOptions,
    manager: ManagerOptions,
    resources: &Resources,
    image: &str,
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let labels = json!({ "app.kubernetes.io/name": name });
    let (replicas, strategy) = if manager.has_replicas() {
        // The defaults of API servers. A field that this manifest sets is removed when the strategy changes to
        // `Recreate`. A default that the API server has set remains, and is then rejected.
        let rolling_update = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
        (2, json!({ "type": "RollingUpdate", "rollingUpdate": rolling_update }))
    } else {
        // Without leader election two replicas would write at the same time.
        (1, json!({ "type": "Recreate" }))
    };
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "strategy": strategy,
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": STOP_SECONDS,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "containers": [container(name, manager, resources, image)],
                },
            },
        },
    });
    Manifest::new(format!("manager/deployment-{name}.yaml"), object)
}

/// Returns the Deployment with `--namespace` flags, so that the program works only on objects in these namespaces.
///
/// `deployment` comes from [`deployment`]. Its roles come from specs with the same namespaces.
///
/// ```
/// use kctl_runtime::manifest::{ManagerOptions, RbacOptions, Resources, deployment, deployment_in_namespaces};
///
/// let options = RbacOptions::new("settings", "system");
/// let manifest = deployment(&options, ManagerOptions::default(), &Resources::default(), "example.com/settings:1")?;
/// let manifest = deployment_in_namespaces(manifest, ["shop"])?;
/// let args = manifest.object["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
/// assert_eq!(args.last().unwrap(), "--namespace=shop");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The object cannot be written as YAML.
pub fn deployment_in_namespaces<'a>(
    deployment: Manifest,
    namespaces: impl IntoIterator<Item = &'a str>,
) -> Result<Manifest, serde_saphyr::SerializeError> {
    let Manifest { file, mut object, .. } = deployment;
    if let Some(args) = object["spec"]["template"]["spec"]["containers"][0]["args"].as_array_mut() {
        args.extend(namespaces.into_iter().map(|namespace| Value::from(format!("--namespace={namespace}"))));
    }
    Manifest::new(file, object)
}

fn container(name: &str, manager: ManagerOptions, resources: &Resources, image: &str) -> Value {
    let mut args = vec!["run".to_owned(), format!("--health-probe-bind-address=:{PROBES_PORT}")];
    if manager.leader_elect {
        // The generated role names this Lease.
        args.extend(["--leader-elect".into(), format!("--leader-election-id={name}")]);
    }
    match manager.shards {
        // Without the flag, the program would use its own number of slots.
        Some(0) => args.push("--shards=0".into()),
        Some(n) => args.extend([format!("--shards={n}"), format!("--leader-election-id={name}")]),
        None => {}
    }
    let mut ports = vec![json!({ "name": "probes", "containerPort": PROBES_PORT, "protocol": "TCP" })];
    if manager.metrics {
        args.push(format!("--metrics-bind-address=:{METRICS_PORT}"));
        ports.push(json!({ "name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP" }));
    }
    let probe = |path: &str, delay: u32, period: u32| {
        json!({
            "httpGet": { "path": path, "port": "probes" },
            "initialDelaySeconds": delay,
            "periodSeconds": period,
        })
    };
    json!({
        "name": "manager",
        "image": image,
        "args": args,
        "ports": ports,
        // The delays and periods of kubebuilder's scaffold.
        "livenessProbe": probe("/livez", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
        "resources": resources.object(),
    })
}

/// Returns the Service that Prometheus uses to find the metrics of every replica, on port 8443.
///
/// # Errors
/// The object cannot be written as YAML.
pub fn metrics_service(options: &RbacOptions) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let labels = json!({ "app.kubernetes.io/name": name });
    let service = format!("{name}-metrics");
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": service, "namespace": namespace, "labels": labels },
        "spec": {
            "selector": labels,
            "ports": [{ "name": "https", "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics" }],
        },
    });
    Manifest::new(format!("manager/service-{service}.yaml"), object)
}

/// Returns a `PodDisruptionBudget` with `maxUnavailable: 1`.
///
/// A drain evicts one replica at a time, also the only one.
///
/// # Errors
/// The object cannot be written as YAML.
pub fn disruption_budget(options: &RbacOptions) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let labels = json!({ "app.kubernetes.io/name": name });
    let object = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels } },
    });
    Manifest::new(format!("manager/poddisruptionbudget-{name}.yaml"), object)
}

/// Returns a `kustomization.yaml` with the files of all manifests.
///
/// Manifests of Karmada's API groups are left out, because they belong to another API server.
///
/// ```
/// use kctl_runtime::manifest::{RbacOptions, disruption_budget, kustomization};
///
/// let options = RbacOptions::new("settings", "shop");
/// let manifests = [disruption_budget(&options)?];
/// let kustomization = kustomization(&manifests)?;
/// assert_eq!(kustomization.object["resources"][0], "manager/poddisruptionbudget-settings.yaml");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The object cannot be written as YAML.
pub fn kustomization(manifests: &[Manifest]) -> Result<Manifest, serde_saphyr::SerializeError> {
    let is_elsewhere = |object: &Value| object["apiVersion"].as_str().is_some_and(|api| api.contains(".karmada.io/"));
    let here = manifests.iter().filter(|manifest| !is_elsewhere(&manifest.object));
    let files: Vec<&str> = here.map(|manifest| manifest.file.as_str()).collect();
    let object = json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": files,
    });
    Manifest::new("kustomization.yaml".into(), object)
}
