//! Evictions: deletes of Pods that a `PodDisruptionBudget` may reject (`pkg/registry/core/pod/storage/eviction.go`).
//!
//! Unlike a delete, an eviction respects disruption budgets: `kubectl drain` uses it. The request is a `POST` of an
//! `Eviction` to the Pod; admission has seen it before this code runs.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    VerbResponse,
    delete::{Options, check_preconditions},
};
use crate::{
    conditions::{is_true, set_condition},
    deletion::is_being_deleted,
    lifecycle,
    request::RequestInfo,
    selector::selects,
    status::{FieldError, GroupResource, StatusError},
    store::Store,
};

/// The `Retry-After` of a response if the status of the budget is outdated. It is not set if the status is current,
/// because then only a change of Pods helps.
const RETRY_AFTER_SECONDS: u64 = 10;
/// Maximum number of `status.disruptedPods` that the disruption controller has not processed. At the bound, evictions
/// are rejected (`MaxDisruptedPodSize`).
const DISRUPTED_LEN_MAX: usize = 2_000;
/// The condition of a budget that reports whether a disruption is allowed. The disruption controller sets it. An
/// eviction sets it when it uses up the last disruption.
const ALLOWED: &str = "DisruptionAllowed";

/// Evicts a Pod, if its budget allows that.
///
/// The budget is charged before the Pod is deleted: `disruptionsAllowed` is decremented and the Pod is added to
/// `disruptedPods`, until the disruption controller has seen the deletion. The Pod gets the condition
/// `DisruptionTarget` first, so that its Job can distinguish an eviction from a failure.
///
/// A dry run checks the budget and the preconditions, and changes nothing. 201 is the response of an eviction that was
/// accepted, even if the Pod still has to end gracefully.
///
/// # Errors
/// `TooManyRequests` if the budget allows no disruption now, and 500 if several budgets select the Pod.
pub(super) fn evict(
    store: &mut Store,
    info: &RequestInfo,
    pod: &Arc<Value>,
    eviction: &Value,
) -> Result<VerbResponse, StatusError> {
    let options = &eviction["deleteOptions"];
    let dry = info.dry_run() || options["dryRun"].as_array().is_some_and(|all| !all.is_empty());
    let resource = crate::kinds::policy::pod_disruption_budget::KIND.group_resource();
    if let Some(budget) = find_budget(store, &resource, info, pod)?.filter(|budget| !needs_no_budget(budget, pod)) {
        check_budget(&budget)?;
        if !dry {
            let new = charge_budget(&budget, &info.name, &store.clock.seconds());
            let name = budget["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            lifecycle::update(store, &resource, &(info.namespace.clone(), name), &budget, new);
        }
    }
    let mut pod = pod.clone();
    if !dry {
        check_preconditions(&info.resource, &pod, options)?;
        let marked = mark_disrupted(&pod, &store.clock.seconds());
        pod = lifecycle::update(store, &info.resource.id, &info.key(), &pod, marked);
    }
    // Upstream validates the options only here: an eviction with invalid delete options has marked the Pod already.
    let options = Options::read(options.clone())?;
    if dry {
        check_preconditions(&info.resource, &pod, &options.value)?;
    } else {
        lifecycle::delete(store, &info.resource, &info.key(), &pod, options.propagation, options.grace);
    }
    Ok(VerbResponse::success(StatusCode::CREATED))
}

/// Checks the options before the budget is charged.
///
/// # Errors
/// `Invalid` for an option that evictions do not support, and 500 if the two places for `dryRun` disagree.
pub(super) fn check_options(info: &RequestInfo, options: &Value) -> Result<(), StatusError> {
    /// An option that evictions do not support.
    const BREAKING: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if options[BREAKING] == true {
        let field_error =
            FieldError::invalid(&format!("deleteOptions.{BREAKING}"), &true.into(), "must not be set for an eviction");
        return Err(StatusError::invalid("policy", "Eviction", &info.name, &[field_error]));
    }
    // An eviction has two `dryRun` fields.
    let inside: Vec<&str> = options["dryRun"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let outside = info.params.text("dryRun");
    if inside.is_empty() || outside.is_empty() || inside == [outside] {
        return Ok(());
    }
    let why = format!("dryRun of the request is {outside:?}, but deleteOptions.dryRun is {inside:?}");
    Err(StatusError::server_error(why))
}

/// Returns the budget of a Pod. A Pod that is pending, has ended or is being deleted needs none. Budgets without a
/// selector select nothing; an empty selector selects all Pods of the namespace. Fails if several budgets select the
/// Pod.
fn find_budget(
    store: &Store,
    resource: &GroupResource,
    info: &RequestInfo,
    pod: &Value,
) -> Result<Option<Arc<Value>>, StatusError> {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if ["Pending", "Succeeded", "Failed"].contains(&phase) || is_being_deleted(pod) {
        return Ok(None);
    }
    let labels = &pod["metadata"]["labels"];
    let all = store.objects(resource, Some(&info.namespace));
    let mut guards = all.filter(|budget| {
        let selector = &budget["spec"]["selector"];
        !selector.is_null() && selects(selector, labels)
    });
    let first = guards.next();
    if guards.next().is_some() {
        let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(StatusError::server_error(why));
    }
    Ok(first)
}

/// Returns `true` if the budget allows the eviction of a Pod that is not ready without charging it
/// (`unhealthyPodEvictionPolicy`). `AlwaysAllow` always allows it; the default `IfHealthyBudget` allows it if enough
/// other Pods are healthy.
fn needs_no_budget(budget: &Value, pod: &Value) -> bool {
    if is_true(pod, "Ready") {
        return false;
    }
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || (healthy >= desired && desired > 0)
}

/// Fails if the budget allows no further disruption. An outdated status (`observedGeneration` below `generation`)
/// allows nothing, and the error tells the client to retry after 10 seconds.
fn check_budget(budget: &Value) -> Result<(), StatusError> {
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let is_current = number("observedGeneration") >= budget["metadata"]["generation"].as_i64().unwrap_or(0);
    let n_disrupted = budget["status"]["disruptedPods"].as_object().map_or(0, serde_json::Map::len);
    let (n_allowed, healthy, desired) =
        (number("disruptionsAllowed"), number("currentHealthy"), number("desiredHealthy"));
    if is_current && (n_allowed < 0 || n_disrupted > DISRUPTED_LEN_MAX) {
        let why = format!("{n_allowed} disruptions are allowed, and {n_disrupted} evictions are not confirmed");
        return Err(StatusError::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), name, &why));
    }
    if is_current && n_allowed > 0 {
        return Ok(());
    }
    let message =
        format!("PodDisruptionBudget {name} does not allow an eviction: {healthy} of {desired} pods are healthy");
    let mut error = StatusError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message.as_str());
    error.details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": message }] });
    if !is_current {
        error.details["retryAfterSeconds"] = RETRY_AFTER_SECONDS.into();
    }
    Err(error)
}

/// Returns the budget with one disruption less and the Pod in `disruptedPods`. The condition changes when no disruption
/// is left.
fn charge_budget(budget: &Value, pod: &str, now: &str) -> Value {
    let mut new = budget.clone();
    let n_allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
    new["status"]["disruptionsAllowed"] = n_allowed.into();
    new["status"]["disruptedPods"][pod] = now.into();
    if n_allowed == 0 {
        let closed = json!({
            "type": ALLOWED, "status": "False", "reason": "InsufficientPods", "message": "",
            "observedGeneration": budget["status"]["observedGeneration"], "lastTransitionTime": now,
        });
        set_condition(&mut new, closed);
    }
    new
}

/// Returns the Pod with the condition `DisruptionTarget`.
fn mark_disrupted(pod: &Value, now: &str) -> Value {
    let mut new = pod.clone();
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    set_condition(&mut new, target);
    new
}
