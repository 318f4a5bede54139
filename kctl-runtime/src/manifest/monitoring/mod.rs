//! How a program is watched in a cluster: who scrapes its metrics, when somebody is called, and what they see then.

mod dashboard;
mod rules;

use serde_json::json;

use super::{ManagerOptions, Manifest, RbacOptions};

/// The `ServiceMonitor` and the `PrometheusRule` of the Prometheus Operator, and a dashboard in a `ConfigMap`, as Grafana's sidecar
/// takes it. They are about the metrics that the Service of `metrics_service` leads to.
///
/// # Errors
/// When an object cannot be written as YAML.
pub fn monitoring(
    options: &RbacOptions,
    manager: ManagerOptions,
) -> Result<Vec<Manifest>, serde_saphyr::SerializeError> {
    let RbacOptions { name, namespace, .. } = options;
    let labels = json!({ "app.kubernetes.io/name": name });
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "endpoints": [{
                "port": "https",
                "path": "/metrics",
                "scheme": "https",
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                // Each replica makes a certificate at its start; `run --metrics-cert-path` takes one that can be verified.
                "tlsConfig": { "insecureSkipVerify": true },
            }],
        },
    });
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": { "groups": [{ "name": name, "rules": rules::rules(&selector(options), manager) }] },
    });
    let dashboard = serde_json::to_string_pretty(&dashboard::dashboard(options, &selector(options), manager));
    let dashboards = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{name}-dashboard"),
            "namespace": namespace,
            "labels": { "app.kubernetes.io/name": name, "grafana_dashboard": "1" },
        },
        // JSON of texts and numbers is always written.
        "data": { format!("{name}.json"): dashboard.unwrap_or_default() },
    });
    Ok(vec![
        Manifest::new(format!("monitoring/servicemonitor-{name}.yaml"), monitor)?,
        Manifest::new(format!("monitoring/prometheusrule-{name}.yaml"), rule)?,
        Manifest::new(format!("monitoring/configmap-{name}-dashboard.yaml"), dashboards)?,
    ])
}

/// The labels that the operator gives to what it scrapes from the Service.
fn selector(options: &RbacOptions) -> String {
    format!(r#"namespace="{}",job="{}-metrics""#, options.namespace, options.name)
}
