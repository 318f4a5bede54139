//! The objects that the loads write.
//!
//! They are as large as in real clusters: a `ConfigMap` of 1 KB, and a Pod with two containers, probes and volumes, to
//! which the server adds defaults and `managedFields`.

use serde_json::{Value, json};

/// Returns the name of object number `n`. All names have the same length, so that all objects have the same size.
pub(crate) fn name(prefix: &str, n: usize) -> String {
    format!("{prefix}-{n:06}")
}

/// Returns a `ConfigMap` of about 1 KB. `text` is the value that the loads change.
pub(crate) fn config_map(name: &str, text: &str) -> Value {
    json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": { "name": name, "labels": { "app": "bench", "tier": "one" } },
        "data": { "stamp": text, "text": "abcdefghijklmnopqrstuvwxyz012345".repeat(26) },
    })
}

/// Returns a Pod as a Deployment has it. With defaults, it takes about 3 KB in storage.
pub(crate) fn pod(name: &str) -> Value {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": "registry.example.com/team/application:1.2.3",
            "args": ["--listen=:8080", "--log-format=json", "--cluster-domain=cluster.local"],
            "ports": [{ "name": "http", "containerPort": 8080, "protocol": "TCP" }],
            "env": [
                { "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "REGION", "value": "somewhere-1" },
            ],
            "resources": { "limits": { "memory": "256Mi" }, "requests": { "cpu": "100m", "memory": "128Mi" } },
            "readinessProbe": { "httpGet": { "path": "/readyz", "port": 8080 }, "periodSeconds": 5 },
            "volumeMounts": [{ "name": "config", "mountPath": "/etc/application", "readOnly": true }],
        })
    };
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": { "name": name, "labels": { "app": "bench", "pod-template-hash": "5d4f8c7b9" } },
        "spec": {
            "containers": [container("application"), container("sidecar")],
            "volumes": [{ "name": "config", "configMap": { "name": "application" } }],
        },
    })
}
