//! `podFailurePolicy`, `podReplacementPolicy` and `successPolicy` of a Job.
//!
//! Rules are checked in their order, and the first that matches decides. Upstream:
//! `pkg/controller/job`.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern},
    core::v1::Pod,
};
use kube::ResourceExt;

use super::{super::optional::string, indexes};

/// The consequence of a failed Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodFailure {
    /// The failure counts towards `backoffLimit`.
    Counts,
    /// The Pod is replaced, and the failure is not counted.
    Ignored,
    /// The index of the Pod has failed.
    OfIndex,
    /// The Job has failed, for this reason.
    OfJob(String),
}

/// Returns `true` if a deleted Pod counts, and is replaced, only after it has ended (`onlyReplaceFailedPods`).
pub(super) fn replaces_only_ended_pods(job: &Job) -> bool {
    let waits = |spec: &JobSpec| spec.pod_replacement_policy.as_deref() == Some("Failed");
    job.spec.as_ref().is_some_and(|spec| waits(spec) || spec.pod_failure_policy.is_some())
}

/// Returns the consequence of a failed Pod: the action of the first matching rule (`matchPodFailurePolicy` of
/// `pkg/controller/job/pod_failure_policy.go`).
///
/// A rule matches by exit codes or by conditions of the Pod. The failure counts as usual if the rule's action is
/// `Count` or no rule matches.
pub(super) fn failure(job: &Job, pod: &Pod) -> PodFailure {
    let policy = job.spec.as_ref().and_then(|spec| spec.pod_failure_policy.as_ref());
    for (index, rule) in policy.iter().flat_map(|policy| &policy.rules).enumerate() {
        let by_code = rule.on_exit_codes.as_ref().and_then(|codes| fits_codes(codes, pod));
        let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
        let Some(why) = by_code.or_else(|| fits_conditions(conditions, pod)) else { continue };
        return match rule.action.as_str() {
            "Ignore" => PodFailure::Ignored,
            "FailIndex" => PodFailure::OfIndex,
            "FailJob" => PodFailure::OfJob(format!("{why} matching FailJob rule at index {index}")),
            _ => PodFailure::Counts,
        };
    }
    PodFailure::Counts
}

fn pod_path(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

/// Returns the message of a matching rule on exit codes.
///
/// The message names the first matching container. Exit code 0 never matches, not even with `NotIn`. Init containers
/// are checked after the others.
fn fits_codes(codes: &PodFailurePolicyOnExitCodesRequirement, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
    let mut ended = all.filter_map(|one| Some((&one.name, one.state.as_ref()?.terminated.as_ref()?.exit_code)));
    let fits = |code: i32| match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    };
    let (name, code) = ended.find(|(name, code)| {
        let is_meant = codes.container_name.as_ref().is_none_or(|wanted| wanted == *name);
        is_meant && *code != 0 && fits(*code)
    })?;
    Some(format!("Container {name} for pod {} failed with exit code {code}", pod_path(pod)))
}

/// Returns the message of a matching rule on conditions.
///
/// The status of a pattern is `True` by default.
fn fits_conditions(patterns: &[PodFailurePolicyOnPodConditionsPattern], pod: &Pod) -> Option<String> {
    let known: Vec<_> = pod.status.iter().flat_map(|status| status.conditions.iter().flatten()).collect();
    let fitting = patterns.iter().find(|pattern| {
        let status = string(&pattern.status).unwrap_or("True");
        known.iter().any(|condition| condition.type_ == pattern.type_ && condition.status == status)
    })?;
    Some(format!("Pod {} has condition {}", pod_path(pod), fitting.type_))
}

/// Returns the message of a success policy that is met (`matchSuccessPolicy` of
/// `pkg/controller/job/success_policy.go`).
///
/// `done` are the indexes that have succeeded. A rule with indexes and a count requires that many of these indexes; a
/// rule with only indexes requires all of them.
pub(super) fn success(job: &Job, done: &BTreeSet<i32>) -> Option<String> {
    let policy = job.spec.as_ref()?.success_policy.as_ref()?;
    let fits = policy.rules.iter().position(|rule| {
        let wanted = rule.succeeded_indexes.as_deref().map(|text| indexes::read(Some(text)));
        let n_done = wanted.as_ref().map_or(done.len(), |wanted| wanted.intersection(done).count());
        match (rule.succeeded_count, wanted) {
            (Some(count), _) => usize::try_from(count).is_ok_and(|count| n_done >= count),
            (None, Some(wanted)) => n_done == wanted.len(),
            (None, None) => false,
        }
    })?;
    Some(format!("Matched rules at index {fits}"))
}
