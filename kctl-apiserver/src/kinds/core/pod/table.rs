//! The row of a Pod in a table.
//!
//! Its status is the most specific reason among the reasons of the Pod and its containers.
//!
//! Upstream: `printPod` of `pkg/printers/internalversion/printers.go`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::table::{
    age::{age, since, time_of},
    fields::{condition, first_text, flag, int, is_deleting, is_true, list, name, text, text_or, value_at},
    labels::NONE,
};

/// Sums over the statuses of the containers: the columns Status, Ready and Restarts.
#[derive(Default)]
struct Summary {
    /// The column Status, unless the Pod is being deleted.
    reason: String,
    /// Number of ready containers; started sidecars count.
    n_ready: usize,
    /// The column Restarts.
    restarts: Restarts,
}

/// Restarts of several containers.
#[derive(Default, Clone, Copy)]
struct Restarts {
    /// Sum of `restartCount`.
    count: i64,
    /// End of the most recent run that was followed by a restart.
    last: Option<Timestamp>,
}

impl Restarts {
    /// Adds the restarts of one container.
    fn add(&mut self, status: &Value) {
        self.count += int(status, "/restartCount");
        self.last = self.last.max(time_of(text(status, "/lastState/terminated/finishedAt")));
    }

    /// Returns the count, and the time since the last restart, as in `3 (5m ago)`.
    fn display(self, now: Timestamp) -> String {
        match self.last {
            Some(last) if self.count != 0 => format!("{} ({} ago)", self.count, since(last, now)),
            _ => self.count.to_string(),
        }
    }
}

/// Returns the cells of a Pod. In `Ready`, sidecars count, and other init containers do not.
pub(crate) fn pod(object: &Value, now: Timestamp) -> Vec<Value> {
    let sidecars = sidecars(object);
    let n_containers = list(object, "/spec/containers").len() + sidecars.len();
    let summary = summary(object, &sidecars);
    vec![
        json!(name(object)),
        json!(format!("{}/{n_containers}", summary.n_ready)),
        json!(reason_of_deletion(object).map_or(summary.reason, str::to_owned)),
        json!(summary.restarts.display(now)),
        json!(age(object, now)),
        json!(match first_text(object, &["/status/podIPs/0/ip", "/status/podIP"]) {
            "" => NONE,
            address => address,
        }),
        json!(text_or(object, "/spec/nodeName", NONE)),
        json!(text_or(object, "/status/nominatedNodeName", NONE)),
        json!(readiness_gates(object)),
    ]
}

/// Returns the conditions of the row of a Pod that has terminated. `kubectl get` used them to hide terminated Pods;
/// clients may still do so.
pub(crate) fn row_conditions(object: &Value) -> Option<Value> {
    let message = match text(object, "/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let reason = text(object, "/status/phase");
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// Computes Status, ready containers and restarts of a Pod that is not being deleted. The Status is the last of these
/// that applies:
///
/// 1. the phase, or the reason of the status,
/// 2. `SchedulingGated`,
/// 3. the first init container that has not succeeded, as `Init:1/3` or `Init:Error`,
/// 4. the first container in the status that is waiting or terminated, as `CrashLoopBackOff`.
///
/// Containers are read only after all init containers have succeeded or, as sidecars, started, or once the Pod is
/// `Initialized`. The restarts of init containers count only until then; restarts of sidecars always count.
fn summary(object: &Value, sidecars: &[&str]) -> Summary {
    let mut summary = Summary {
        reason: text_or(object, "/status/reason", text(object, "/status/phase")).to_owned(),
        ..Summary::default()
    };
    if condition(object, "PodScheduled").is_some_and(|condition| text(condition, "/reason") == "SchedulingGated") {
        "SchedulingGated".clone_into(&mut summary.reason);
    }
    let mut sidecar_restarts = Restarts::default();
    let mut is_initializing = false;
    for (idx, status) in list(object, "/status/initContainerStatuses").iter().enumerate() {
        summary.restarts.add(status);
        let is_sidecar = sidecars.contains(&text(status, "/name"));
        if is_sidecar {
            sidecar_restarts.add(status);
        }
        let terminated = value_at(status, "/state/terminated");
        if terminated.is_object() && int(terminated, "/exitCode") == 0 {
            continue;
        }
        if is_sidecar && flag(status, "/started") {
            summary.n_ready += usize::from(flag(status, "/ready"));
            continue;
        }
        summary.reason = init_reason(object, idx, status);
        is_initializing = true;
        break;
    }
    if !is_initializing || is_true(object, "Initialized") {
        summary.restarts = sidecar_restarts;
        add_containers(object, &mut summary);
    }
    summary
}

/// Adds the containers to the summary. They are read backwards, so the first reason is kept. A Pod with a running
/// container is not `Completed`: it is `Running`, or `NotReady` without the condition `Ready`.
fn add_containers(object: &Value, summary: &mut Summary) {
    let mut is_running = false;
    for status in list(object, "/status/containerStatuses").iter().rev() {
        summary.restarts.add(status);
        let (waiting, terminated) = (value_at(status, "/state/waiting"), value_at(status, "/state/terminated"));
        if !text(waiting, "/reason").is_empty() {
            text(waiting, "/reason").clone_into(&mut summary.reason);
        } else if terminated.is_object() {
            summary.reason = end(terminated);
        } else if flag(status, "/ready") && value_at(status, "/state/running").is_object() {
            is_running = true;
            summary.n_ready += 1;
        }
    }
    if is_running && summary.reason == "Completed" {
        let reason = if is_true(object, "Ready") { "Running" } else { "NotReady" };
        reason.clone_into(&mut summary.reason);
    }
}

/// Returns the reason of a Pod whose init container `idx` is waiting, running or failed.
fn init_reason(object: &Value, idx: usize, status: &Value) -> String {
    let terminated = value_at(status, "/state/terminated");
    if terminated.is_object() {
        return format!("Init:{}", end(terminated));
    }
    match text(status, "/state/waiting/reason") {
        "" | "PodInitializing" => format!("Init:{idx}/{}", list(object, "/spec/initContainers").len()),
        reason => format!("Init:{reason}"),
    }
}

/// Returns why a container has terminated: its reason, or else signal or exit code, as in `ExitCode:1`.
fn end(terminated: &Value) -> String {
    match (text(terminated, "/reason"), int(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", int(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Returns the Status of a Pod that is being deleted: `Terminating`, or `Unknown` if its node is lost. A terminated Pod
/// keeps its reason: it only waits for the removal of finalizers.
fn reason_of_deletion(object: &Value) -> Option<&'static str> {
    if !is_deleting(object) {
        return None;
    }
    match (text(object, "/status/reason"), text(object, "/status/phase")) {
        ("NodeLost", _) => Some("Unknown"),
        (_, "Succeeded" | "Failed") => None,
        _ => Some("Terminating"),
    }
}

/// Returns the names of init containers that keep running with the containers (`restartPolicy: Always`).
fn sidecars(object: &Value) -> Vec<&str> {
    let restarted = |container: &&Value| text(container, "/restartPolicy") == "Always";
    list(object, "/spec/initContainers").iter().filter(restarted).map(|container| text(container, "/name")).collect()
}

/// Returns the readiness gates whose conditions are true, as `1/2`; `<none>` without gates.
fn readiness_gates(object: &Value) -> String {
    let gates = list(object, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    // Of several conditions of one type, the first counts.
    let mut is_met = BTreeMap::new();
    for condition in list(object, "/status/conditions") {
        is_met.entry(text(condition, "/type")).or_insert_with(|| text(condition, "/status") == "True");
    }
    let n_true = gates.iter().filter(|gate| is_met.get(text(gate, "/conditionType")) == Some(&true)).count();
    format!("{n_true}/{}", gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes minutes if each gate is searched in the list of conditions.
    #[test]
    fn readiness_gates_with_true_conditions_are_counted() {
        let gates: Value = (0..50_000).map(|n| json!({ "conditionType": format!("t{n}") })).collect();
        let condition =
            |n: usize| json!({ "type": format!("t{n}"), "status": if n < 20_000 { "True" } else { "False" } });
        // A later condition of a type does not count.
        let conditions: Value =
            (0..40_000).rev().map(condition).chain([json!({ "type": "t30000", "status": "True" })]).collect();
        let pod = json!({ "spec": { "readinessGates": gates }, "status": { "conditions": conditions } });
        assert_eq!(readiness_gates(&pod), "20000/50000");
        assert_eq!(readiness_gates(&json!({})), NONE);
    }
}
