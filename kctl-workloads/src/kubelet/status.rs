//! The statuses of simulated Pods, as a kubelet would report them after an event.
//!
//! The phase follows from the event, and the conditions from phase and readiness:
//!
//! | event | phase | containers |
//! |---|---|---|
//! | `Waits` | `Pending` | waiting, with the reason |
//! | `Runs` | `Running` | running |
//! | `Crashed` | `Running` | waiting, `CrashLoopBackOff`; the end is in `lastState` |
//! | `Ended` | `Succeeded` or `Failed` | terminated |
//!
//! A status is sent as a merge patch: lists of containers and conditions are replaced as a whole.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Value, json};

use super::stage::StageRequest;

/// An event of the containers of a Pod.
///
/// Each is the result of one step of the kubelet's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// They cannot run yet, for this reason.
    Waits(&'static str),
    /// They run, and are ready or not.
    Runs { ready: bool },
    /// They ended, and are restarted after a pause.
    Crashed,
    /// They ended for good.
    Ended,
}

/// Returns the status of a Pod after an event.
///
/// `request` contains the exit code, reason and message of containers that end, and may name a single container. Init
/// containers have no status: they are not simulated.
pub(super) fn status(pod: &Pod, request: &StageRequest, event: Event, now: &str) -> Value {
    let known = |name: &str| {
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        statuses.into_iter().flatten().find(|status| status.name == name)
    };
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<Value> = containers
        .map(|container| {
            let image = container.image.clone().unwrap_or_default();
            let about = request.is_about(&container.name);
            container_status(&container.name, &image, known(&container.name), about.then_some(request), event, now)
        })
        .collect();
    let phase = match event {
        Event::Waits(_) => "Pending",
        Event::Runs { .. } | Event::Crashed => "Running",
        Event::Ended if request.exit_code == 0 => "Succeeded",
        Event::Ended => "Failed",
    };
    json!({
        "phase": phase,
        "conditions": conditions(pod, phase, event, now),
        "containerStatuses": statuses,
    })
}

/// Returns the status of one container.
///
/// `known` is the stored status, from which restarts, last state and the start time of a running container are kept.
/// `request` is `None` for a container that the event does not affect.
fn container_status(
    name: &str,
    image: &str,
    known: Option<&ContainerStatus>,
    request: Option<&StageRequest>,
    event: Event,
    now: &str,
) -> Value {
    let n_restarts = known.map_or(0, |known| known.restart_count);
    let started = known.and_then(|known| known.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    let started = started.map_or_else(|| now.to_owned(), |time| time.0.to_string());
    let running = json!({ "running": { "startedAt": started } });
    let last = known.and_then(|known| serde_json::to_value(&known.last_state).ok()).unwrap_or_default();
    let ended = |request: &StageRequest| {
        let mut ended = json!({
            "exitCode": request.exit_code, "reason": request.reason, "startedAt": started, "finishedAt": now,
        });
        if !request.message.is_empty() {
            ended["message"] = request.message.clone().into();
        }
        json!({ "terminated": ended })
    };
    let (state, last, n_restarts, ready) = match (event, request) {
        (Event::Waits(reason), _) => (json!({ "waiting": { "reason": reason } }), Value::Null, 0, false),
        (Event::Runs { ready }, _) => (running, last, n_restarts, ready),
        (Event::Crashed, Some(request)) => {
            let message = format!("back-off restarting failed container {name}");
            let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": message } });
            (waiting, ended(request), n_restarts.saturating_add(1), false)
        }
        (Event::Ended, Some(request)) => (ended(request), last, n_restarts, false),
        // Other containers keep running, and end with the Pod.
        (Event::Crashed, None) => (running, last, n_restarts, true),
        (Event::Ended, None) => {
            let ended = json!({ "exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": now });
            (json!({ "terminated": ended }), last, n_restarts, false)
        }
    };
    let started = state.get("running").is_some();
    let mut status = json!({
        "name": name, "image": image, "imageID": "", "ready": ready, "started": started,
        "restartCount": n_restarts, "state": state,
    });
    if !last.is_null() {
        status["lastState"] = last;
    }
    status
}

/// Returns the conditions of a Pod.
///
/// A condition whose status is unchanged keeps its `lastTransitionTime`. Only conditions about containers have a
/// reason.
fn conditions(pod: &Pod, phase: &str, event: Event, now: &str) -> Vec<Value> {
    /// Conditions that depend on the containers.
    const CONTAINER_CONDITIONS: &[&str] = &["Ready", "ContainersReady"];
    let begun = !matches!(event, Event::Waits(_));
    let reason = match phase {
        "Succeeded" => Some("PodCompleted"),
        "Failed" => Some("PodFailed"),
        _ => Some("ContainersNotReady"),
    };
    let of = |kind: &str| {
        let holds = match kind {
            "PodScheduled" | "Initialized" => true,
            "PodReadyToStartContainers" => begun && phase == "Running",
            _ => event == Event::Runs { ready: true },
        };
        let value = if holds { "True" } else { "False" };
        let known = pod.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
        let since = known
            .filter(|known| known.type_ == kind && known.status == value)
            .find_map(|known| known.last_transition_time.as_ref().map(|time| time.0.to_string()));
        let mut condition =
            json!({ "type": kind, "status": value, "lastTransitionTime": since.unwrap_or_else(|| now.to_owned()) });
        if !holds && CONTAINER_CONDITIONS.contains(&kind) {
            condition["reason"] = reason.into();
        }
        condition
    };
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(of).to_vec()
}
