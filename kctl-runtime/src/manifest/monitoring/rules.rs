//! Alerting rules. Each is about something that a person can fix, and its description says how.
//!
//! | Severity | Meaning | Examples |
//! |---|---|---|
//! | `critical` | the program does not work, or works with an old state | no replica, no leader, a cache that is behind |
//! | `warning` | it works, but objects fail or wait | failing keys, panics, a hanging reconcile, requests that fail |
//!
//! Most alerts fire only after their condition has held for a time, because single failures are normal: conflicts, a
//! restart of the API server, a rollout. Conditions use metrics of controller-runtime and client-go where these exist, so
//! most of them work for other controllers too. `$` becomes the labels that select the Pods of this program.

use serde_json::{Value, json};

use crate::manifest::ManagerOptions;

/// An alert.
struct Rule {
    /// The name, which is unique in the group.
    alert: &'static str,
    /// `PromQL`; `$` is replaced by the labels of the program.
    when: &'static str,
    /// Time for which the condition has to hold.
    lasts: &'static str,
    /// `critical` or `warning`, for the routing of Alertmanager.
    severity: &'static str,
    /// The problem in one line. It may contain labels and the value.
    summary: &'static str,
    /// The place to look at, and the remedy.
    description: &'static str,
}

/// Alerts of every program.
const ALWAYS: &[Rule] = &[
    Rule {
        alert: "ControllerDown",
        when: "absent(up{$} == 1)",
        lasts: "5m",
        severity: "critical",
        summary: "no replica can be scraped",
        description: "Look at the Deployment and its Pods. If they are ready, check whether Prometheus may get /metrics \
                      (the role of metrics readers).",
    },
    Rule {
        alert: "ControllerKeysFail",
        when: "max by (controller) (kctl_failing_keys{$}) > 0",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $value }} objects of {{ $labels.controller }} have failed for 15 minutes",
        description: "The event ReconcileFailed of each object says why, and so does the page /debug/.",
    },
    Rule {
        alert: "ControllerErrors",
        when: "sum by (controller) (rate(controller_runtime_reconcile_errors_total{$}[5m])) / \
               sum by (controller) (rate(controller_runtime_reconcile_total{$}[5m])) > 0.5",
        lasts: "15m",
        severity: "warning",
        summary: "more than half of the reconciles of {{ $labels.controller }} fail",
        description: "The log names the cause, usually one for all: something that every reconcile needs is unavailable.",
    },
    Rule {
        alert: "ControllerPanics",
        when: "sum by (controller) (increase(controller_runtime_reconcile_panics_total{$}[10m])) > 0",
        lasts: "0m",
        severity: "warning",
        summary: "{{ $labels.controller }} panics",
        description: "The log has the object and the message.",
    },
    Rule {
        alert: "ControllerKeysWait",
        when: "max by (controller) (kctl_workqueue_oldest_waiting_seconds{$}) > 300",
        lasts: "5m",
        severity: "warning",
        summary: "keys of {{ $labels.controller }} wait for more than 5 minutes",
        description: "It has too few workers for the rate of changes (concurrency = n), or each reconcile takes too long.",
    },
    Rule {
        alert: "ControllerReconcileHangs",
        when: "max by (controller) (workqueue_longest_running_processor_seconds{$}) > 600",
        lasts: "1m",
        severity: "warning",
        summary: "a reconcile of {{ $labels.controller }} has been running for more than 10 minutes",
        description: "The page /debug/ names its key; timeout = \"…\" in the declaration cuts such a reconcile.",
    },
    Rule {
        alert: "ControllerCacheBehind",
        when: "max by (group, resource) (kctl_source_failing{$}) > 0 or min by (group, resource) (kctl_cache_synced{$}) < 1",
        lasts: "10m",
        severity: "critical",
        summary: "the cache of {{ $labels.resource }} is not kept up to date",
        description: "The log and /readyz?verbose name the cause: a permission, a missing CRD, or the API server.",
    },
    Rule {
        alert: "ControllerObjectsUnreadable",
        when: "max by (group, resource) (kctl_source_unreadable_objects{$}) > 0",
        lasts: "0m",
        severity: "warning",
        summary: "objects of {{ $labels.resource }} do not fit the type that reads them",
        description: "They are not reconciled, or reconciled with their last readable state. A Warning Event on each names the field.",
    },
    Rule {
        alert: "ControllerBoundNear",
        when: "max by (bound) (kctl_bound_used{$} / kctl_bound_limit{$}) > 0.8",
        lasts: "10m",
        severity: "warning",
        summary: "{{ $labels.bound }} is at {{ $value | humanizePercentage }} of its limit",
        description: "At the limit, Events are dropped or changes of the API server wait. See what the program is busy with.",
    },
    Rule {
        alert: "ControllerApiErrors",
        when: r#"sum(rate(rest_client_requests_total{$,code=~"5..|<error>"}[5m])) / sum(rate(rest_client_requests_total{$}[5m])) > 0.1"#,
        lasts: "15m",
        severity: "warning",
        summary: "more than 10 % of the requests to the API server fail",
        description: "The API server or the connection to it fails. No change is lost, but changes are reconciled late.",
    },
];

/// Alerts of programs with leader election.
const ELECTION_RULES: &[Rule] = &[
    Rule {
        alert: "ControllerWithoutLeader",
        when: "sum(leader_election_master_status{$}) < 1",
        lasts: "5m",
        severity: "critical",
        summary: "no replica is the leader",
        description: "/readyz?verbose of each replica has the reason, usually a missing permission for its Lease.",
    },
    Rule {
        alert: "ControllerWithTwoLeaders",
        when: "sum(leader_election_master_status{$}) > 1",
        lasts: "2m",
        severity: "critical",
        summary: "{{ $value }} replicas consider themselves the leader",
        description: "Writes stop before a Lease expires, so this does no harm yet. See whether a clock or a process is paused.",
    },
];

/// Alerts of programs whose replicas share the keys by slots. A rejected replica may have another number of slots than
/// the replicas that work, so it does not count.
const SHARD_RULES: &[Rule] = &[
    Rule {
        alert: "ControllerSlotsWithoutOwner",
        when: "max(kctl_slots{$} unless kctl_slots_rejected{$} == 1) - sum(kctl_slots_owned{$}) > 0",
        lasts: "2m",
        severity: "critical",
        summary: "{{ $value }} slots have no owner",
        description: "Objects of these slots are not reconciled. `shards` of the program names them, and /readyz?verbose of each \
                      replica has the reason, usually a missing permission for a Lease.",
    },
    Rule {
        alert: "ControllerSlotsWithTwoOwners",
        when: "sum(kctl_slots_owned{$}) - max(kctl_slots{$} unless kctl_slots_rejected{$} == 1) > 0",
        lasts: "2m",
        severity: "critical",
        summary: "{{ $value }} slots have two replicas that consider themselves the owner",
        description: "Writes stop before a Lease expires, so this does no harm yet. See whether a clock or a process is paused.",
    },
    Rule {
        alert: "ControllerSlotsMove",
        when: "sum(rate(kctl_slots_gained_total{$}[10m])) * 60 > max(kctl_slots{$})",
        lasts: "15m",
        severity: "warning",
        summary: "{{ $value | humanize }} slots a minute change their owner",
        description: "Replicas come and go, or cannot renew their Leases: look for restarts, for throttled CPU, and for requests \
                      about Leases that fail. Each move costs a list of every kind.",
    },
    Rule {
        alert: "ControllerSettingsRejected",
        when: "max by (pod) (kctl_slots_rejected{$}) > 0",
        lasts: "5m",
        severity: "critical",
        summary: "{{ $labels.pod }} has other settings than the replicas that work",
        description: "/readyz?verbose names the option that differs: use the same in all replicas. To change it, stop all \
                      of them first.",
    },
];

/// Returns the rules of the `PrometheusRule`, with the labels of the program filled in.
pub(super) fn rules(selector: &str, manager: ManagerOptions) -> Vec<Value> {
    let election = if manager.leader_elect { ELECTION_RULES } else { &[] };
    let shards = if manager.slots().is_some() { SHARD_RULES } else { &[] };
    let rule = |rule: &Rule| {
        json!({
            "alert": rule.alert,
            "expr": rule.when.replace('$', selector),
            "for": rule.lasts,
            "labels": { "severity": rule.severity },
            "annotations": { "summary": rule.summary, "description": rule.description },
        })
    };
    ALWAYS.iter().chain(election).chain(shards).map(rule).collect()
}
