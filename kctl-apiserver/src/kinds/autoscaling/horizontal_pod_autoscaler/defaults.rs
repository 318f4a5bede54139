//! Defaults of both versions of autoscalers (`pkg/apis/autoscaling/v2/defaults.go`).

use serde_json::{Value, json};

use crate::defaulting::{add, part};

/// Fills in the defaults of version 1. `targetCPUUtilizationPercentage` has none there.
pub(crate) fn v1(object: &mut Value) {
    add(part(object, "spec"), "minReplicas", 1);
}

/// Fills in the defaults of version 2 (`SetDefaults_HorizontalPodAutoscaler`).
///
/// A missing `behavior` is not created. The window of downward scaling is not set: the controller's setting applies.
pub(crate) fn v2(object: &mut Value) {
    let spec = part(object, "spec");
    add(spec, "minReplicas", 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    add(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    if let Some(behavior) = spec.get_mut("behavior") {
        let policy = |kind: &str, value: u32| json!({"type": kind, "value": value, "periodSeconds": 15});
        let up = part(behavior, "scaleUp");
        add(up, "stabilizationWindowSeconds", 0);
        add(up, "selectPolicy", "Max");
        add(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
        let down = part(behavior, "scaleDown");
        add(down, "selectPolicy", "Max");
        add(down, "policies", json!([policy("Percent", 100)]));
    }
}
