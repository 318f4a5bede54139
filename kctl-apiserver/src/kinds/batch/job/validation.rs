//! Validation of Jobs, and of the Jobs in `CronJob`s (`pkg/apis/batch/validation/validation.go`).
//!
//! A new Job needs a template whose Pods terminate. Without `manualSelector` it has no selector: the server generates
//! it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::indexes::{RULE, interval, intervals};
use crate::{
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    names::NameRule,
    validation::{pod, selector},
};

/// Validates that the immutable fields are unchanged (`ValidateJobSpecUpdate`).
///
/// `parallelism`, `suspend`, `activeDeadlineSeconds`, `backoffLimit` and `ttlSecondsAfterFinished` may change.
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (spec, was) = (Field::new(&new["spec"], "spec", errors), &old["spec"]);
    let completions = spec.at("completions");
    let may_change =
        spec["completionMode"] == "Indexed" && (completions.is_null() || *completions == spec["parallelism"]);
    let is_wrong = *completions != was["completions"] && !may_change;
    completions.invalid_if(is_wrong, "is immutable, except that an Indexed Job may set it to `parallelism`");
    let has_not_started = was["suspend"] == true && old["status"]["startTime"].is_null();
    let change = if has_not_started { TemplateChange::Placement } else { TemplateChange::Forbidden };
    validate_unchanged_template(&spec.at("template"), &was["template"], change);
    for name in ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        spec.at(name).immutable(&was[name]);
    }
}

/// The changes that an update may make to the template of a Job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TemplateChange {
    /// Node selector, node affinity, tolerations, scheduling gates and container resources may change. This is so for a
    /// suspended Job that has not started, so that a queue can place it.
    Placement,
    /// No field may change.
    Forbidden,
}

/// Validates that the template is unchanged, apart from the allowed changes (`FieldValueInvalid`).
fn validate_unchanged_template(template: &Field<'_>, was: &Value, change: TemplateChange) {
    if change == TemplateChange::Forbidden {
        return template.immutable(was);
    }
    let fixed = |template: &Value| {
        let mut spec = template["spec"].clone();
        for name in ["nodeSelector", "tolerations", "schedulingGates"] {
            spec[name] = Value::Null;
        }
        spec["affinity"]["nodeAffinity"] = Value::Null;
        for list in ["containers", "initContainers"] {
            spec[list].as_array_mut().into_iter().flatten().for_each(|container| container["resources"] = Value::Null);
        }
        spec
    };
    template.at("spec").invalid_if(fixed(was) != fixed(template), "field is immutable");
}

/// Maximum of `parallelism` and `maxFailedIndexes` of an indexed Job.
const INDEXES_MAX: i64 = 100_000;
/// Completions above which a Job with `backoffLimitPerIndex` has the lower maximum `PARALLELISM_SOFT_MAX`.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
/// Maximum of `parallelism` and `maxFailedIndexes` above `COMPLETIONS_SOFT_MAX` completions.
const PARALLELISM_SOFT_MAX: i64 = 10_000;
/// Maximum number of rules of a `podFailurePolicy` (`FieldValueTooMany`).
const FAILURE_RULES_MAX: usize = 20;
/// Maximum number of rules of a `successPolicy` (`FieldValueTooMany`).
const SUCCESS_RULES_MAX: usize = 20;
/// Maximum number of exit codes of a rule: all codes but 0.
const CODES_MAX: usize = 255;
/// Maximum number of Pod conditions of a rule.
const CONDITIONS_MAX: usize = 20;
/// Maximum length of `managedBy`, in bytes.
const MANAGER_LEN_MAX: usize = 63;

/// Validates a Job: the spec with its selector, and the host names of an indexed Job's Pods.
pub(crate) fn validate(object: &Value, errors: &mut Errors) {
    let job = Field::new(object, "", errors);
    validate_whole_spec(&job.at("spec"));
    validate_host_names(&job);
}

/// Validates the generated selector of a new Job and its labels (`ValidateJobCreate`): the UID of the Job and nothing
/// else, unless `manualSelector` is set.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let (spec, meta) = (Field::new(&object["spec"], "spec", errors), &object["metadata"]);
    let selector = spec.at("selector");
    // A Job without a selector gets the error about the missing selector only.
    if spec["manualSelector"] != true && !selector.is_null() {
        validate_own_labels(meta, &spec.at("template").at("metadata").at("labels"));
        let labels = &selector["matchLabels"];
        let is_own = labels["batch.kubernetes.io/controller-uid"] == meta["uid"]
            && labels.as_object().is_some_and(|labels| labels.len() == 1);
        // `validate` reports an invalid selector, for itself.
        let mistakes =
            Errors::collect(|errors| selector::validate_selector(&Field::new(&selector, "spec.selector", errors)));
        selector.invalid_if(!is_own && mistakes.is_empty(), "must be the one that the server generates");
    }
}

/// Validates the four labels that identify the Pods of a Job (`validateGeneratedSelector`). A wrong value is reported
/// at the whole map.
fn validate_own_labels(meta: &Value, labels: &Field<'_>) {
    let reserved = [
        ("controller-uid", "uid"),
        ("job-name", "name"),
        ("batch.kubernetes.io/controller-uid", "uid"),
        ("batch.kubernetes.io/job-name", "name"),
    ];
    for (key, field) in reserved {
        let (label, wanted) = (labels.at_key(key), text(&meta[field]));
        let is_absent = labels.get(key).is_none();
        label.required_with_if(is_absent, format_args!("must be '{wanted}'"));
        let detail = format_args!("the label {key} must be '{wanted}'");
        labels.invalid_if(!is_absent && label.text() != wanted, detail);
    }
}

/// Validates the spec with its selector, which is required and must match the template.
fn validate_whole_spec(spec: &Field<'_>) {
    job_spec(spec);
    let selector = spec.at("selector");
    selector.required_if(selector.is_null());
    if selector.passes(selector::validate_selector) {
        selector::validate_matches_template(&selector, &spec.at("template"));
    }
}

/// Validates that the Pods of an indexed Job can have host names (`validateNameAllowsCompletions`).
///
/// A Pod of an indexed Job has the host name `<job>-<index>`, a DNS label of at most 63 bytes. The
/// name with the highest index is validated.
fn validate_host_names(job: &Field<'_>) {
    let (spec, name) = (&job["spec"], job.at("metadata").at("name"));
    let completions = spec["completions"].as_i64().unwrap_or(0);
    if spec["completionMode"] == "Indexed" && completions > 0 {
        let host = format!("{}-{}", name.text(), completions - 1);
        let is_valid = NameRule::Label.check(&host).is_none();
        let detail = format_args!("a Pod would have the host name {host}, which is not a valid DNS label");
        name.invalid_if(!is_valid, detail);
    }
}

/// Validates a Job spec without its selector, also for a `CronJob`. Pods of a Job must terminate, so their restart
/// policy may not be `Always`.
pub(crate) fn job_spec(spec: &Field<'_>) {
    const NUMBERS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    spec.check_children(&NUMBERS, Field::not_negative);
    let (per_index, manager) = (spec.at("backoffLimitPerIndex"), spec.at("managedBy"));
    let is_missing = per_index.is_null() && !spec["maxFailedIndexes"].is_null();
    per_index.required_with_if(is_missing, "must be set when `maxFailedIndexes` is set");
    if !manager.is_null() {
        manager.domain_prefixed();
        manager.max_bytes(MANAGER_LEN_MAX);
    }
    validate_completion(spec);
    validate_failure_policy(spec);
    validate_success_policy(spec);
    let (has_policy, replacement) = (!spec["podFailurePolicy"].is_null(), spec.at("podReplacementPolicy"));
    replacement.unsupported_if(has_policy && *replacement == "TerminatingOrFailed", &["Failed"]);
    let template = spec.at("template");
    template.check(pod::validate_template);
    let restart = template.at("spec").at("restartPolicy");
    match restart.text() {
        "" | "Always" => restart.required_with("must be OnFailure or Never"),
        "OnFailure" => restart.invalid_if(has_policy, "must be Never with a `podFailurePolicy`"),
        _ => {}
    }
}

/// Validates the limits of the completion mode.
///
/// Beyond 100,000 completions with `backoffLimitPerIndex`, the maxima of `parallelism` and `maxFailedIndexes` are
/// lower. This bounds the size of the status, which lists the failed indexes.
fn validate_completion(spec: &Field<'_>) {
    let [completions, parallelism, per_index, failed] =
        ["completions", "parallelism", "backoffLimitPerIndex", "maxFailedIndexes"].map(|name| spec.at(name));
    if spec["completionMode"] != "Indexed" {
        let is_plain = spec["completionMode"].is_null() || spec["completionMode"] == "NonIndexed";
        for field in [per_index, failed] {
            field.invalid_if(is_plain && !field.is_null(), "may only be set when `completionMode` is Indexed");
        }
        return;
    }
    completions.required_with_if(completions.is_null(), "must be set when `completionMode` is Indexed");
    let is_large = completions.as_i64() > Some(COMPLETIONS_SOFT_MAX) && !per_index.is_null();
    let most = if is_large { PARALLELISM_SOFT_MAX } else { INDEXES_MAX };
    let why = if is_large { " for more than 100000 completions with `backoffLimitPerIndex`" } else { "" };
    let detail = format_args!("must be less than or equal to {most}{why}");
    parallelism.invalid_if(parallelism.as_i64() > Some(most), detail);
    failed.required_with_if(is_large && failed.is_null(), format_args!("must be set{why}"));
    let least = most.min(completions.as_i64().unwrap_or(most));
    let detail = format_args!("must be less than or equal to `completions`, and to {most}{why}");
    failed.invalid_if(failed.as_i64() > Some(least), detail);
}

/// Validates `podFailurePolicy` (`validatePodFailurePolicy`): at most 20 rules (`FieldValueTooMany`), and each of them.
fn validate_failure_policy(spec: &Field<'_>) {
    let (rules, pod) = (spec.at("podFailurePolicy").at("rules"), &spec["template"]["spec"]);
    let containers = ["containers", "initContainers"].into_iter().flat_map(move |list| entries(&pod[list]));
    let names: BTreeSet<&str> = containers.map(|(_, container)| text(&container["name"])).collect();
    rules.items().for_each(|rule| validate_failure_rule(spec, &names, &rule));
    rules.max_items(FAILURE_RULES_MAX);
}

/// Validates a rule about exit codes of containers or conditions of the Pod. An enum of the API lists
/// the actions. `containers` are the names of the template's containers.
fn validate_failure_rule(spec: &Value, containers: &BTreeSet<&str>, rule: &Field<'_>) {
    let (action, codes, conditions) = (rule.at("action"), rule.at("onExitCodes"), rule.at("onPodConditions"));
    let is_unlimited = spec["backoffLimitPerIndex"].is_null();
    action.invalid_if(*action == "FailIndex" && is_unlimited, "FailIndex needs `backoffLimitPerIndex`");
    if codes.is_object() {
        validate_exit_codes(containers, &codes);
    }
    for condition in conditions.items() {
        condition.at("type").qualified_name();
        condition.at("status").one_of(&["False", "True", "Unknown"]);
    }
    conditions.max_items(CONDITIONS_MAX);
    let is_wrong = codes.is_object() != conditions.is_empty();
    rule.invalid_if(is_wrong, "must have exactly one of `onExitCodes` and `onPodConditions`");
}

/// Validates exit codes. Zero is success, which `In` may not select.
fn validate_exit_codes(containers: &BTreeSet<&str>, codes: &Field<'_>) {
    let (name, values) = (codes.at("containerName"), codes.at("values"));
    name.invalid_if(
        !name.is_null() && !containers.contains(name.text()),
        "must be the name of a container in the template",
    );
    for code in values.items() {
        code.invalid_if(*code == 0 && codes["operator"] == "In", "must not be 0 for the operator In");
    }
    values.unique_by(Value::as_i64);
    let is_sorted = entries(&values).map(|(_, code)| code.as_i64()).is_sorted();
    values.invalid_if(values.is_empty() || !is_sorted, "must be one or more exit codes in ascending order");
    values.max_items(CODES_MAX);
}

/// Validates `successPolicy` (`validateSuccessPolicy`): mode `Indexed`, and 1 to 20 rules.
fn validate_success_policy(spec: &Field<'_>) {
    let policy = spec.at("successPolicy");
    if policy.is_null() {
        return;
    }
    if spec["completionMode"] != "Indexed" {
        return policy.invalid("may only be set when `completionMode` is Indexed");
    }
    let rules = policy.at("rules");
    rules.required_if(rules.is_empty());
    for rule in rules.items() {
        validate_success_rule(&rule, spec["completions"].as_i64().unwrap_or(0));
    }
    rules.max_items(SUCCESS_RULES_MAX);
}

/// Validates a rule: an index list, a count or both. The count exceeds neither the completions nor the listed indexes.
fn validate_success_rule(rule: &Field<'_>, completions: i64) {
    let (count, indexes) = (rule.at("succeededCount"), rule.at("succeededIndexes"));
    let detail = "must have at least one of succeededCount and succeededIndexes";
    rule.required_with_if(count.is_null() && indexes.is_null(), detail);
    count.not_negative();
    let mut most = completions;
    if !indexes.is_null() {
        let intervals = intervals(indexes.text(), |part| interval(part, completions));
        indexes.invalid_if(intervals.is_none(), RULE);
        let n_listed = intervals.unwrap_or_default().iter().map(|(first, last)| last - first + 1).sum();
        most = completions.min(n_listed);
    }
    let detail = format_args!(
        "must be at most {most}: it may exceed neither `completions` nor the number of `succeededIndexes`"
    );
    count.invalid_if(count.as_i64() > Some(most), detail);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Takes minutes if the name in each rule is searched in the list of containers.
    #[test]
    fn failure_rules_name_containers_of_the_template() {
        let containers: Value = (0..50_000).map(|n| json!({ "name": format!("c{n}") })).collect();
        let rule = |name: String| json!({ "onExitCodes": { "containerName": name, "operator": "In", "values": [1] } });
        let rules = (0..50_000).map(|n| rule(format!("c{n}"))).chain(["i".to_owned(), "x".to_owned()].map(rule));
        let pod = json!({ "containers": containers, "initContainers": [{ "name": "i" }] });
        let spec = json!({ "template": { "spec": pod }, "podFailurePolicy": { "rules": rules.collect::<Value>() } });
        let errors = Errors::collect(|errors| validate_failure_policy(&Field::new(&spec, "spec", errors)));
        let fields: Vec<String> = errors.into_iter().map(|error| error.field).collect();
        let rules = "spec.podFailurePolicy.rules";
        assert_eq!(fields, [format!("{rules}[50001].onExitCodes.containerName"), rules.to_owned()]);
    }
}
