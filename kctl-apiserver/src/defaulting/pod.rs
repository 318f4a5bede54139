//! Defaults of Pods and Pod templates (`pkg/apis/core/v1/defaults.go`).
//!
//! Only a Pod, not a template, gets requests from limits, host ports, tolerations and the QoS class. They depend on
//! rules that apply when a Pod is created from the template.

use serde_json::{Value, json};

use crate::{
    amounts::ResourceMap,
    defaulting::{add, fill, image, is_text, items, part},
    feature_gates::{self, Gate},
    json_path::{at_mut, value_at},
};

/// Seconds that a Pod remains on a node that is not ready, the default of the `DefaultTolerationSeconds` plugin
/// (`--default-not-ready-toleration-seconds` and `--default-unreachable-toleration-seconds`).
const TOLERATION_SECONDS: u64 = 300;

/// Fills in the defaults of a Pod, with the tolerations of the admission plugin and the QoS class, which is computed
/// after requests have been copied from limits.
pub(crate) fn pod(object: &mut Value) {
    let spec = part(object, "spec");
    let is_on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            copy_limits(container);
            let ports = items(container, "ports").filter(|_| is_on_host);
            ports.for_each(|port| fill(port, "hostPort", port["containerPort"].clone()));
        }
    }
    pod_spec(spec);
    add(spec, "enableServiceLinks", true);
    // In a template, a negative number is kept, with a warning.
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = 1.into();
    }
    add_default_tolerations(spec);
    let class = quality_of_service(spec);
    let status = part(object, "status");
    fill(status, "qosClass", class);
    same_addresses(status);
}

/// Sets `podIP` and `podIPs[0]` to the same address. If they differ, `podIP` takes precedence.
fn same_addresses(status: &mut Value) {
    let address = status["podIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
    let first = status["podIPs"][0]["ip"].clone();
    match address {
        Some(address) if first != address.as_str() => status["podIPs"] = json!([{ "ip": address }]),
        None if first.is_string() => status["podIP"] = first,
        _ => {}
    }
}

/// Fills in the defaults of a Pod template in a field. The field and its `spec` are created if they are absent.
pub(crate) fn template(object: &mut Value, key: &str) {
    pod_spec(part(part(object, key), "spec"));
}

/// Fills in the defaults that Pods and templates share (`SetDefaults_PodSpec`).
fn pod_spec(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "schedulerName", "default-scheduler");
    add(spec, "securityContext", json!({}));
    add(spec, "terminationGracePeriodSeconds", 30);
    // The deprecated alias is a copy of the name. If only the alias is set, the name is copied from it.
    let account = ["serviceAccountName", "serviceAccount"].map(|key| spec.get(key).cloned());
    if let Some(account) = account.into_iter().flatten().find(|name| name != "") {
        spec["serviceAccountName"] = account.clone();
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items(spec, list).for_each(container);
    }
    for volume in items(spec, "volumes") {
        if volume.as_object().is_some_and(|fields| fields.keys().all(|key| key == "name")) {
            add(volume, "emptyDir", json!({}));
        }
        volume_source(volume);
    }
}

/// Sets absent requests of a container to its limits: a limit without a request reserves what it allows.
fn copy_limits(container: &mut Value) {
    let Some(limits) = value_at(container, ["resources", "limits"]).and_then(Value::as_object) else { return };
    let has_request =
        |name: &String| value_at(container, ["resources", "requests", name]).is_some_and(|request| !request.is_null());
    if limits.keys().all(has_request) {
        return;
    }
    let limits = limits.clone();
    let requests = part(part(container, "resources"), "requests");
    limits.into_iter().for_each(|(name, limit)| add(requests, &name, limit));
}

/// Removes `lifecycle.stopSignal` unless `ContainerStopSignals` is on, and a `lifecycle` without other fields.
fn forget_signal(container: &mut Value) {
    if feature_gates::is_enabled(Gate::ContainerStopSignals) {
        return;
    }
    let Some(fields) = container.as_object_mut() else { return };
    let Some(lifecycle) = fields.get_mut("lifecycle").and_then(Value::as_object_mut) else { return };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        fields.remove("lifecycle");
    }
}

/// Fills in the defaults of a container, its ports, probes and hooks.
fn container(container: &mut Value) {
    if container["imagePullPolicy"].as_str().is_none_or(str::is_empty) {
        let policy = image::pull_policy(container["image"].as_str().unwrap_or_default());
        fill(container, "imagePullPolicy", policy);
    }
    forget_signal(container);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    items(container, "ports").for_each(|port| fill(port, "protocol", "TCP"));
    items(container, "env").filter_map(|env| env.get_mut("valueFrom")).for_each(reference_to_itself);
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        container.get_mut(key).into_iter().for_each(probe);
    }
    for hook in ["preStop", "postStart"] {
        at_mut(container, ["lifecycle", hook]).into_iter().for_each(http_get);
    }
}

/// Sets the version of a reference to a field of the Pod.
fn reference_to_itself(from: &mut Value) {
    if let Some(field) = from.get_mut("fieldRef") {
        fill(field, "apiVersion", "v1");
    }
}

/// Fills in the defaults of a probe: times in seconds, thresholds in attempts. The empty service of gRPC means the
/// whole server.
fn probe(probe: &mut Value) {
    fill(probe, "timeoutSeconds", 1);
    fill(probe, "periodSeconds", 10);
    fill(probe, "successThreshold", 1);
    fill(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc") {
        add(grpc, "service", "");
    }
}

/// Fills in path and scheme of the `httpGet` of a probe or a hook.
fn http_get(handler: &mut Value) {
    if let Some(http) = handler.get_mut("httpGet") {
        fill(http, "path", "/");
        fill(http, "scheme", "HTTP");
    }
}

/// Defaults of the sources of volumes, including the source of a `PersistentVolume`. The mode of files is 0644 in
/// octal.
pub(crate) fn volume_source(volume: &mut Value) {
    for kind in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(kind) {
            add(source, "defaultMode", 420);
        }
    }
    let fixed: [(&str, &[(&str, Value)]); 4] = [
        ("hostPath", &[("type", "".into())]),
        ("iscsi", &[("iscsiInterface", "default".into())]),
        ("rbd", &[("pool", "rbd".into()), ("user", "admin".into()), ("keyring", "/etc/ceph/keyring".into())]),
        ("scaleIO", &[("storageMode", "ThinProvisioned".into()), ("fsType", "xfs".into())]),
    ];
    for (key, fields) in fixed {
        if let Some(source) = volume.get_mut(key) {
            for (name, value) in fields {
                fill(source, name, value.clone());
            }
        }
    }
    if let Some(image) = volume.get_mut("image") {
        let is_always = image::is_latest(image["reference"].as_str().unwrap_or_default());
        fill(image, "pullPolicy", if is_always { "Always" } else { "IfNotPresent" });
    }
    if let Some(disk) = volume.get_mut("azureDisk") {
        add(disk, "cachingMode", "ReadWrite");
        add(disk, "fsType", "ext4");
        add(disk, "readOnly", false);
        add(disk, "kind", "Shared");
    }
    volume.get_mut("downwardAPI").into_iter().for_each(downward_files);
    for source in volume.get_mut("projected").into_iter().flat_map(|projected| items(projected, "sources")) {
        source.get_mut("downwardAPI").into_iter().for_each(downward_files);
        if let Some(token) = source.get_mut("serviceAccountToken") {
            add(token, "expirationSeconds", 3600);
        }
    }
    if let Some(claim) = at_mut(volume, ["ephemeral", "volumeClaimTemplate"]) {
        add(part(claim, "spec"), "volumeMode", "Filesystem");
    }
}

/// Fills in the defaults of each file of the downward API.
fn downward_files(source: &mut Value) {
    items(source, "items").for_each(reference_to_itself);
}

/// Adds the tolerations of the plugin `DefaultTolerationSeconds`, unless the Pod already tolerates these taints. An
/// empty key tolerates all taints, and an empty effect all effects.
fn add_default_tolerations(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = items(spec, "tolerations").any(|toleration| {
            let is = |field: &str, text: &str| toleration.get(field).is_none() || is_text(toleration, field, text);
            (is("key", key) || is_text(toleration, "key", ""))
                && (is("effect", "NoExecute") || is_text(toleration, "effect", ""))
        });
        if !is_tolerated {
            add(spec, "tolerations", json!([]));
            let toleration = json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS});
            if let Some(all) = spec.get_mut("tolerations").and_then(Value::as_array_mut) {
                all.push(toleration);
            }
        }
    }
}

/// Returns the QoS class (`ComputePodQOS`): from the Pod-level resources if they are set, else from the containers.
/// Zero amounts and ephemeral containers do not count.
pub(crate) fn quality_of_service(spec: &mut Value) -> &'static str {
    if value_at(spec, ["resources"]).is_some_and(|whole| !whole.is_null()) {
        return quality_of_whole(spec);
    }
    let (mut is_best_effort, mut is_guaranteed) = (true, true);
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            for resource in ["cpu", "memory"] {
                let amount = |kind: &str| {
                    let amount = value_at(container, ["resources", kind, resource]);
                    amount.filter(|amount| **amount != "0" && **amount != 0)
                };
                let (request, limit) = (amount("requests"), amount("limits"));
                is_best_effort &= request.is_none() && limit.is_none();
                is_guaranteed &= limit.is_some() && request == limit;
            }
        }
    }
    match (is_best_effort, is_guaranteed) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

/// Returns the QoS class by Pod-level resources. The containers are ignored then.
fn quality_of_whole(spec: &Value) -> &'static str {
    let counted = |side: ResourceMap| {
        let mut amounts = side.amounts(spec);
        amounts.retain(|name, amount| ["cpu", "memory"].contains(&name.as_str()) && amount.signum() > 0);
        amounts
    };
    let (requests, limits) = (counted(ResourceMap::Requests), counted(ResourceMap::Limits));
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let is_same = |name: &&str| match (requests.get(*name), limits.get(*name)) {
        (Some(request), Some(limit)) => request == limit,
        _ => false,
    };
    if ["cpu", "memory"].iter().all(is_same) { "Guaranteed" } else { "Burstable" }
}
