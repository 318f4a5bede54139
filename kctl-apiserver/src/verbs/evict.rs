//! Evictions: deletes of pods that disruption budgets have a say in (`pkg/registry/core/pod/storage/eviction.go`).

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer,
    delete::{Grace, Propagation, remove_object},
    subresources::success,
    update,
};
use crate::{
    request::Call,
    selector::selects,
    status::{GroupResource, Refusal},
    store::{Key, State},
};

/// When a budget that is not up to date may be asked again.
const RETRY_AFTER_SECONDS: u64 = 10;

pub(super) fn evict(state: &mut State, call: &Call, pod: &Arc<Value>, eviction: &Value) -> Result<Answer, Refusal> {
    let options = &eviction["deleteOptions"];
    let dry = call.dry_run() || options["dryRun"].as_array().is_some_and(|all| !all.is_empty());
    let of = GroupResource::new("policy", "poddisruptionbudgets");
    if let Some(budget) = budget(state, &of, call, pod)? {
        allows(&budget, pod)?;
        if !dry && !may_go_anyway(&budget, pod) {
            let now = state.clock.seconds();
            let mut new = Value::clone(&budget);
            let left = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
            new["status"]["disruptionsAllowed"] = left.into();
            new["status"]["disruptedPods"][&call.name] = now.into();
            let name = budget["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            update::settle(state, &of, (call.namespace.clone(), name), &budget, new);
        }
    }
    if !dry {
        let given = options["gracePeriodSeconds"].as_i64();
        let grace = given.map_or(Grace::Default, |seconds| Grace::Seconds(seconds.max(0)));
        let key: Key = call.key();
        remove_object(state, &call.resource, &key, pod, Propagation::Background, grace);
    }
    Ok(success(StatusCode::CREATED))
}

/// The budget that guards a pod: nothing guards one that has not begun or has ended.
fn budget(state: &State, of: &GroupResource, call: &Call, pod: &Value) -> Result<Option<Arc<Value>>, Refusal> {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if ["Pending", "Succeeded", "Failed"].contains(&phase) || pod["metadata"]["deletionTimestamp"].is_string() {
        return Ok(None);
    }
    let labels = &pod["metadata"]["labels"];
    let all = state.objects(of, Some(&call.namespace));
    let mut guards = all.filter(|budget| {
        let selector = &budget["spec"]["selector"];
        !selector.is_null() && selects(selector, labels)
    });
    let first = guards.next().cloned();
    if guards.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", why));
    }
    Ok(first)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|condition| condition["type"] == "Ready").any(|condition| condition["status"] == "True")
}

/// Whether a budget lets a pod go that is not ready, without counting it.
fn may_go_anyway(budget: &Value, pod: &Value) -> bool {
    if is_ready(pod) {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let (healthy, wanted) = (number("currentHealthy"), number("desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || (healthy >= wanted && wanted > 0)
}

fn allows(budget: &Value, pod: &Value) -> Result<(), Refusal> {
    if may_go_anyway(budget, pod) {
        return Ok(());
    }
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let seen = number("observedGeneration") >= budget["metadata"]["generation"].as_i64().unwrap_or(0);
    let why = if !seen {
        format!("The disruption budget {name} is still being processed by the server.")
    } else if number("disruptionsAllowed") <= 0 {
        let (wanted, healthy) = (number("desiredHealthy"), number("currentHealthy"));
        format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently")
    } else {
        return Ok(());
    };
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
    refusal.details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": why }] });
    if !seen {
        refusal.details["retryAfterSeconds"] = RETRY_AFTER_SECONDS.into();
    }
    Err(refusal)
}
