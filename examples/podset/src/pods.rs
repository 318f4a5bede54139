//! Pod states: active and ready pods, and the order in which surplus pods are deleted.

use std::cmp::Reverse;

use kctl::prelude::*;

/// Returns `true` if a pod has not ended and is not being deleted (`IsPodActive`).
pub(crate) fn is_active(pod: &Pod) -> bool {
    let ended = ["Succeeded", "Failed"].contains(&phase(pod));
    pod.metadata.deletion_timestamp.is_none() && !ended
}

/// Returns `true` if the condition `Ready` of a pod is true.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the phase of a pod, or an empty string if it has none yet.
fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Sorts pods so that the least useful ones come first: pods without a node, pending pods, pods that are not ready, and
/// then the youngest (`pkg/controller/controller_utils.go`, `ActivePods`).
pub(crate) fn least_useful_first(pods: &mut [Arc<Pod>]) {
    pods.sort_by_key(|pod| {
        let scheduled = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let rank = match phase(pod) {
            "Running" => 2,
            "Pending" | "" => 0,
            _ => 1,
        };
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (scheduled, rank, is_ready(pod), Reverse(created), pod.name_any())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a pod. `ready` is the status of its condition `Ready`.
    fn pod(name: &str, node: Option<&str>, phase: &str, ready: &str) -> Arc<Pod> {
        let pod = kctl::json!({
            "metadata": { "name": name },
            "spec": { "containers": [], "nodeName": node },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] },
        });
        Arc::new(kctl::from_json(pod).unwrap())
    }

    #[test]
    fn unready_pods_go_before_ready_ones() {
        let mut pods = [
            pod("ready", Some("n"), "Running", "True"),
            pod("running", Some("n"), "Running", "False"),
            pod("pending", Some("n"), "Pending", "False"),
            pod("unscheduled", None, "Pending", "False"),
        ];
        least_useful_first(&mut pods);
        let names: Vec<_> = pods.iter().map(|pod| pod.name_any()).collect();
        assert_eq!(names, ["unscheduled", "pending", "running", "ready"]);
    }

    #[test]
    fn ended_pods_are_not_active() {
        assert!(is_active(&pod("a", Some("n"), "Running", "True")));
        assert!(!is_active(&pod("a", Some("n"), "Failed", "False")));
    }
}
