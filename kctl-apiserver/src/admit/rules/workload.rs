//! Rules of the kinds that keep pods running.

use serde_json::{Value, json};

use super::{Errors, entries, pod, selector, storage, text};
use crate::names::NameRule;

pub(crate) fn deployment(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    errors.not_negative("spec.replicas", &spec["replicas"]);
    template_of_set(spec, errors);
    strategy(&spec["strategy"], errors);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    errors.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
    let (deadline, ready) = (&spec["progressDeadlineSeconds"], spec["minReadySeconds"].as_i64().unwrap_or(0));
    errors.not_negative("spec.progressDeadlineSeconds", deadline);
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
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
        _ => unknown_strategy("spec.strategy", strategy, &["Recreate", "RollingUpdate"], errors),
    }
}

fn unknown_strategy(at: &str, strategy: &Value, known: &[&str], errors: &mut Errors) {
    let shown = format!("{{\"Type\":{},\"RollingUpdate\":{}}}", strategy["type"], rolling(&strategy["rollingUpdate"]));
    errors.unsupported(at, &shown, known);
}

/// How Go writes the numbers of a rolling update.
fn rolling(rolling: &Value) -> String {
    if rolling.is_null() {
        return "null".into();
    }
    let number = |name: &str| if rolling[name].is_null() { json!(0) } else { rolling[name].clone() };
    format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", number("maxUnavailable"), number("maxSurge"))
}

fn is_none(amount: &Value) -> bool {
    let digits = |text: &str| text.strip_suffix('%').unwrap_or_default().parse::<i64>().unwrap_or(0);
    amount.is_null() || amount == 0 || amount.as_str().is_some_and(|text| digits(text) == 0)
}

/// Selector and template of a set whose pods run for ever. The template is judged when it is known what selects it.
fn template_of_set(spec: &Value, errors: &mut Errors) {
    let (given, at) = (&spec["selector"], "spec.template");
    if !selector::of_workload(given, "deployment", errors) {
        errors.leave_out("spec.template.spec.");
        return errors.invalid("spec.selector", given, "invalid label selector");
    }
    selector::fits_template(given, &spec["template"], at, errors);
    pod::template(&spec["template"], at, errors);
    runs_for_ever(&spec["template"], at, "ReplicaSet", errors);
}

fn runs_for_ever(template: &Value, at: &str, kind: &str, errors: &mut Errors) {
    let policy = &template["spec"]["restartPolicy"];
    if !text(policy).is_empty() && policy != "Always" {
        errors.unsupported(&format!("{at}.spec.restartPolicy"), &policy.to_string(), &["Always"]);
    }
    if template["spec"]["activeDeadlineSeconds"].is_number() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.forbidden(&format!("{at}.spec.activeDeadlineSeconds"), &detail);
    }
}

pub(crate) fn replica_set(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    template_of_set(spec, errors);
}

pub(crate) fn replication_controller(object: &Value, errors: &mut Errors) {
    let (spec, at) = (&object["spec"], "spec.template");
    if spec["selector"].as_object().is_none_or(serde_json::Map::is_empty) {
        errors.required("spec.selector", "");
    }
    if spec["template"].is_null() {
        return errors.required(at, "");
    }
    if spec["selector"].is_object() {
        selector::fits_template(&json!({ "matchLabels": spec["selector"] }), &spec["template"], at, errors);
    }
    pod::template(&spec["template"], at, errors);
    runs_for_ever(&spec["template"], at, "ReplicationController", errors);
}

/// A revision; what it holds stays, so of a new one alone it is asked whether there is any.
pub(crate) fn revision(object: &Value, is_new: bool, errors: &mut Errors) {
    errors.not_negative("revision", &object["revision"]);
    if !is_new {
        return;
    }
    if object["data"].is_null() {
        errors.required("data", "data is mandatory");
    } else if !object["data"].is_object() {
        errors.required("data", "data must be a valid JSON object");
    }
}

/// A stateful set; of a new one also what never changes.
pub(crate) fn stateful_set(object: &Value, is_new: bool, errors: &mut Errors) {
    let spec = &object["spec"];
    if !["OrderedReady", "Parallel"].contains(&text(&spec["podManagementPolicy"])) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], detail);
    }
    update_of_stateful_set(&spec["updateStrategy"], errors);
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    for name in ["whenDeleted", "whenScaled"] {
        let at = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        errors.one_of(&at, &retention[name], &["Retain", "Delete"]);
    }
    for (index, claim) in entries(&spec["volumeClaimTemplates"]).filter(|_| is_new) {
        storage::claim_spec(&claim["spec"], &format!("spec.volumeClaimTemplates[{index}].spec"), errors);
    }
    errors.not_negative("spec.replicas", &spec["replicas"]);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    errors.not_negative("spec.ordinals.start", &spec["ordinals"]["start"]);
    if is_new && !text(&spec["serviceName"]).is_empty() {
        errors.name("spec.serviceName", &spec["serviceName"], NameRule::Label);
    }
    let given = &spec["selector"];
    if selector::of_workload(given, "statefulset", errors) {
        selector::fits_template(given, &spec["template"], "spec.template", errors);
        pod::template(&with_claims(spec), "spec.template", errors);
    } else {
        errors.leave_out("spec.template.spec.");
        errors.invalid("spec.selector", given, "invalid label selector");
    }
    runs_for_ever(&spec["template"], "spec.template", "StatefulSet", errors);
}

/// The template as it is judged: with the volumes that the claims of the set become, and without the names that the set gives
/// its pods.
fn with_claims(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    for name in ["hostname", "subdomain"] {
        template["spec"].as_object_mut().map(|spec| spec.remove(name));
    }
    let mut names: Vec<&Value> = Vec::new();
    for (_, claim) in entries(&spec["volumeClaimTemplates"]) {
        let name = &claim["metadata"]["name"];
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return template;
    }
    let own = entries(&spec["template"]["spec"]["volumes"]).filter(|(_, volume)| !names.contains(&&volume["name"]));
    let claims = names.iter().map(|name| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } }));
    let volumes: Vec<Value> = claims.chain(own.map(|(_, volume)| volume.clone())).collect();
    template["spec"]["volumes"] = volumes.into();
    template
}

fn update_of_stateful_set(strategy: &Value, errors: &mut Errors) {
    let (at, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    match text(&strategy["type"]) {
        "OnDelete" if !rolling.is_null() => {
            errors.invalid(at, rolling, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => errors.not_negative(&format!("{at}.partition"), &rolling["partition"]),
        _ => {
            errors.invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

pub(crate) fn daemon_set(object: &Value, errors: &mut Errors) {
    let (spec, at) = (&object["spec"], "spec.template");
    let (given, before) = (&spec["selector"], errors.len());
    selector::selector(given, "spec.selector", errors);
    if errors.len() == before {
        selector::fits_template(given, &spec["template"], at, errors);
    }
    if !given.is_null() && selector::is_empty(given) {
        errors.invalid("spec.selector", given, "empty selector is invalid for daemonset");
    }
    pod::template(&spec["template"], at, errors);
    runs_for_ever(&spec["template"], at, "DaemonSet", errors);
    errors.not_negative("spec.minReadySeconds", &spec["minReadySeconds"]);
    update_of_daemon_set(&spec["updateStrategy"], errors);
    errors.not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"]);
}

fn update_of_daemon_set(strategy: &Value, errors: &mut Errors) {
    let (at, rolling) = ("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"]);
    match text(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_null() => errors.required(at, ""),
        "RollingUpdate" => {
            let (surge, unavailable) = (&rolling["maxSurge"], &rolling["maxUnavailable"]);
            let (surge_at, unavailable_at) = (format!("{at}.maxSurge"), format!("{at}.maxUnavailable"));
            errors.count_or_percent(&unavailable_at, unavailable);
            errors.count_or_percent(&surge_at, surge);
            errors.at_most_all(&unavailable_at, unavailable);
            errors.at_most_all(&surge_at, surge);
            match (is_none(surge), is_none(unavailable)) {
                (false, false) => {
                    errors.invalid(&surge_at, surge, "may not be set when maxUnavailable is non-zero");
                }
                (true, true) => errors.required(&unavailable_at, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => unknown_strategy("spec.updateStrategy", strategy, &["RollingUpdate", "OnDelete"], errors),
    }
}
