//! How the program runs in a cluster: a namespace-scoped Deployment of one replica.

use serde_json::json;

use super::{Manifest, RbacOptions};

/// A Deployment that runs the program as its service account, without any right on its node.
///
/// # Errors
/// When it cannot be written as YAML.
pub fn deployment(options: &RbacOptions, image: &str) -> Result<Manifest, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let labels = json!({ "app.kubernetes.io/name": name });
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            // Two at once would work against each other.
            "strategy": { "type": "Recreate" },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": 40,
                    "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
                    "containers": [{
                        "name": "manager",
                        "image": image,
                        "args": ["run"],
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": { "drop": ["ALL"] },
                            "readOnlyRootFilesystem": true,
                        },
                        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "256Mi" } },
                    }],
                },
            },
        },
    });
    Manifest::new(format!("manager/deployment-{name}.yaml"), object)
}
