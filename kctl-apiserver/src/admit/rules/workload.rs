//! Rules of the kinds that make pods.

use serde_json::Value;

use super::{Errors, pod, selector, text};

pub(super) fn deployment(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    errors.not_negative("spec.replicas", &spec["replicas"]);
    selector::of_workload(spec, "deployment", true, errors);
    template(spec, errors);
    strategy(&spec["strategy"], errors);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    errors.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
    let (deadline, ready) = (&spec["progressDeadlineSeconds"], spec["minReadySeconds"].as_i64().unwrap_or(0));
    errors.not_negative("spec.progressDeadlineSeconds", deadline);
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready && ready >= 0) {
        errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
    }
}

fn strategy(strategy: &Value, errors: &mut Errors) {
    let (at, rolling) = ("spec.strategy.rollingUpdate", &strategy["rollingUpdate"]);
    match text(&strategy["type"]) {
        "Recreate" if rolling.is_object() => {
            errors.forbidden(at, "may not be specified when strategy `type` is 'Recreate'");
        }
        "Recreate" => {}
        "RollingUpdate" if rolling.is_null() => {
            errors.required(at, "this should be defaulted and never be nil");
        }
        "RollingUpdate" => {
            let (surge_at, unavailable_at) = (format!("{at}.maxSurge"), format!("{at}.maxUnavailable"));
            let (surge, unavailable) = (&rolling["maxSurge"], &rolling["maxUnavailable"]);
            errors.count_or_percent(&unavailable_at, unavailable);
            errors.count_or_percent(&surge_at, surge);
            if is_none(surge) && is_none(unavailable) {
                errors.invalid(&unavailable_at, unavailable, "may not be 0 when `maxSurge` is 0");
            }
            errors.at_most_all(&unavailable_at, unavailable);
        }
        _ => {
            let shown = format!("{{\"Type\":{},\"RollingUpdate\":null}}", strategy["type"]);
            errors.unsupported("spec.strategy", &shown, &["Recreate", "RollingUpdate"]);
        }
    }
}

fn is_none(amount: &Value) -> bool {
    amount == 0 || amount == "0%"
}

/// A template whose pods run for ever.
fn template(spec: &Value, errors: &mut Errors) {
    let at = "spec.template";
    pod::template(&spec["template"], at, errors);
    restarts_always(&spec["template"], at, errors);
    if spec["template"]["spec"]["activeDeadlineSeconds"].is_number() {
        let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
        errors.forbidden(&format!("{at}.spec.activeDeadlineSeconds"), detail);
    }
}

fn restarts_always(template: &Value, at: &str, errors: &mut Errors) {
    let policy = &template["spec"]["restartPolicy"];
    // A wrong policy has its own cause.
    if ["OnFailure", "Never"].contains(&text(policy)) {
        errors.unsupported(&format!("{at}.spec.restartPolicy"), &policy.to_string(), &["Always"]);
    }
}

pub(super) fn replica_set(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    selector::of_workload(spec, "replicaset", true, errors);
    template(spec, errors);
}

pub(super) fn replication_controller(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    if spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        errors.required("spec.selector", "");
    }
    errors.not_negative("spec.replicas", &spec["replicas"]);
    if spec["template"].is_null() {
        errors.required("spec.template", "");
    } else {
        template(spec, errors);
    }
}

pub(super) fn revision(object: &Value, errors: &mut Errors) {
    errors.not_negative("revision", &object["revision"]);
    if object["data"].is_null() {
        errors.required("data", "data is mandatory");
    }
}

pub(super) fn stateful_set(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if !["OrderedReady", "Parallel"].contains(&text(&spec["podManagementPolicy"])) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail);
    }
    let kind = &spec["updateStrategy"]["type"];
    if !["RollingUpdate", "OnDelete"].contains(&text(kind)) {
        let shown = format!("{{\"Type\":{kind},\"RollingUpdate\":null}}");
        errors.shown("spec.updateStrategy", &shown, "must be 'RollingUpdate' or 'OnDelete'");
    }
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    selector::of_workload(spec, "statefulset", true, errors);
    pod::template(&spec["template"], "spec.template", errors);
    restarts_always(&spec["template"], "spec.template", errors);
}

pub(super) fn daemon_set(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    selector::of_workload(spec, "daemonset", false, errors);
    pod::template(&spec["template"], "spec.template", errors);
    restarts_always(&spec["template"], "spec.template", errors);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    let kind = &spec["updateStrategy"]["type"];
    if !["RollingUpdate", "OnDelete"].contains(&text(kind)) {
        let shown = format!("{{\"Type\":{kind},\"RollingUpdate\":null}}");
        errors.unsupported("spec.updateStrategy", &shown, &["RollingUpdate", "OnDelete"]);
    }
    errors.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
}

pub(super) fn job(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let uid = text(&object["metadata"]["uid"]);
    if spec["manualSelector"] != true {
        let labels = &spec["selector"]["matchLabels"];
        let is_own = labels["batch.kubernetes.io/controller-uid"] == uid
            && labels.as_object().is_some_and(|labels| labels.len() == 1);
        if !is_own {
            errors.shown("spec.selector", &selector::shown(&spec["selector"]), "`selector` not auto-generated");
        }
    }
    job_spec(spec, "spec", errors);
}

fn job_spec(spec: &Value, at: &str, errors: &mut Errors) {
    let numbers = ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    for name in numbers {
        errors.not_negative(&format!("{at}.{name}"), &spec[name]);
    }
    pod::template(&spec["template"], &format!("{at}.template"), errors);
    let policy = text(&spec["template"]["spec"]["restartPolicy"]);
    if policy.is_empty() || policy == "Always" {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        errors.required(&format!("{at}.template.spec.restartPolicy"), detail);
    }
}

pub(super) fn cron_job(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let schedule = text(&spec["schedule"]);
    if schedule.is_empty() {
        errors.required("spec.schedule", "");
    } else {
        let n_fields = schedule.split_whitespace().count();
        if !schedule.starts_with('@') && n_fields != 5 {
            let fields: Vec<&str> = schedule.split_whitespace().collect();
            let detail = format!("expected exactly 5 fields, found {n_fields}: [{}]", fields.join(" "));
            errors.invalid("spec.schedule", &spec["schedule"], &detail);
        }
    }
    errors.not_negative("spec.startingDeadlineSeconds", &spec["startingDeadlineSeconds"]);
    let zone = text(&spec["timeZone"]);
    if !zone.is_empty() && jiff::tz::TimeZone::get(zone).is_err() {
        errors.invalid("spec.timeZone", &spec["timeZone"], &format!("unknown time zone {zone}"));
    }
    errors.one_of("spec.concurrencyPolicy", &spec["concurrencyPolicy"], &["Allow", "Forbid", "Replace"]);
    job_spec(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec", errors);
    errors.not_negative("spec.successfulJobsHistoryLimit", &spec["successfulJobsHistoryLimit"]);
    errors.not_negative("spec.failedJobsHistoryLimit", &spec["failedJobsHistoryLimit"]);
}
