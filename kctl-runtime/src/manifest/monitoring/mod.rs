//! Monitoring of a program in a cluster: scraping, alerts and a dashboard.

mod dashboard;
mod rules;

use serde_json::json;

use super::{ManagerOptions, Manifest, RbacOptions};

/// Returns a `ServiceMonitor` and a `PrometheusRule` for the Prometheus Operator, and a `ConfigMap` with a
/// dashboard for Grafana's sidecar.
///
/// They refer to the Service of [`metrics_service`](super::metrics_service). The `ServiceMonitor` skips
/// verification, because each replica creates its own certificate; `run --metrics-cert-path` takes one that
/// can be verified.
///
/// ```
/// use kctl_runtime::manifest::{ManagerOptions, RbacOptions, monitoring};
///
/// let options = RbacOptions::new("settings", "shop");
/// let manifests = monitoring(&options, ManagerOptions::default())?;
/// let kinds: Vec<_> = manifests.iter().map(|manifest| manifest.object["kind"].as_str().unwrap_or_default()).collect();
/// assert_eq!(kinds, ["ServiceMonitor", "PrometheusRule", "ConfigMap"]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An object cannot be written as YAML.
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
                // Each replica generates a self-signed certificate at its start. `run --metrics-cert-path` uses one that can be
                // verified.
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
        // Serializing strings and numbers does not fail.
        "data": { format!("{name}.json"): dashboard.unwrap_or_default() },
    });
    Ok(vec![
        Manifest::new(format!("monitoring/servicemonitor-{name}.yaml"), monitor)?,
        Manifest::new(format!("monitoring/prometheusrule-{name}.yaml"), rule)?,
        Manifest::new(format!("monitoring/configmap-{name}-dashboard.yaml"), dashboards)?,
    ])
}

/// Returns the labels that the operator adds to the series of this program.
fn selector(options: &RbacOptions) -> String {
    format!(r#"namespace="{}",job="{}-metrics""#, options.namespace, options.name)
}
