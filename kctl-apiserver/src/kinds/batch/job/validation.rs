//! Validation of Jobs, and of the Jobs in `CronJob`s (`pkg/apis/batch/validation/validation.go`).
//!
//! A new Job needs a template whose Pods terminate. Without `manualSelector` it has no selector: the
//! server generates it. The message for a template that always restarts is, for example:
//!
//! ```text
//! The Job "a" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
//! ```

use serde_json::Value;

use super::indexes::{RULE, interval, intervals};
use crate::{
    field_errors::{Errors, text},
    names::NameRule,
    validation::{entries, immutable::immutable_field, pod, selector},
};

/// Validates that the immutable fields are unchanged (`FieldValueInvalid`; `ValidateJobSpecUpdate`).
///
/// `completions` of an indexed Job may change together with `parallelism`. The template of a suspended Job may change in
/// part, see below.
///
/// | field | may it change? |
/// |---|---|
/// | `completions` | indexed Jobs only, to the value of `parallelism` |
/// | `selector`, `completionMode` | no |
/// | `podFailurePolicy`, `backoffLimitPerIndex`, `managedBy`, `successPolicy` | no |
/// | `template` | in part, while the Job is suspended and has not started |
/// | `parallelism`, `suspend`, `activeDeadlineSeconds`, `backoffLimit`, `ttlSecondsAfterFinished` | yes |
pub(crate) fn validate_update(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"], &new["spec"]);
    let path = "spec.completions";
    if is["completionMode"] != "Indexed" {
        immutable_field(path, &was["completions"], &is["completions"], errors);
    } else if was["completions"] != is["completions"]
        && !is["completions"].is_null()
        && is["completions"] != is["parallelism"]
    {
        errors.invalid(path, &is["completions"], "can only be modified in tandem with spec.parallelism");
    }
    if was["selector"] != is["selector"] {
        errors.invalid("spec.selector", &is["selector"], "field is immutable");
    }
    normalized_template(old, new, errors);
    immutable_field("spec.completionMode", &was["completionMode"], &is["completionMode"], errors);
    for name in ["podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        immutable_field(&format!("spec.{name}"), &was[name], &is[name], errors);
    }
}

/// Validates that the template is unchanged (`FieldValueInvalid`).
///
/// A suspended Job that has not started may change node selector, node affinity, tolerations, scheduling gates and
/// container resources, so that a queue can place it.
fn normalized_template(old: &Value, new: &Value, errors: &mut Errors) {
    let (was, is) = (&old["spec"]["template"], &new["spec"]["template"]);
    let is_suspended = old["spec"]["suspend"] == true;
    if !is_suspended || !old["status"]["startTime"].is_null() {
        return immutable_field("spec.template", was, is, errors);
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
    if fixed(was) != fixed(is) {
        errors.invalid("spec.template.spec", &is["spec"], "field is immutable");
    }
}

/// Maximum parallelism of an indexed Job.
const PARALLELISM_MAX: i64 = 100_000;
/// Maximum of `maxFailedIndexes`.
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Completions above which a Job with `backoffLimitPerIndex` has the lower limit `FEW_MAX`.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
/// Maximum of `parallelism` and `maxFailedIndexes` above `COMPLETIONS_SOFT_MAX` completions.
const FEW_MAX: i64 = 10_000;
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
    whole_spec(&object["spec"], errors);
    host_names(object, errors);
}

/// Validates the generated selector of a new Job and its labels (`ValidateJobCreate`).
///
/// Without `manualSelector`, the selector must be the one that the server generates: the UID of the
/// Job, and nothing else.
pub(crate) fn validate_create(object: &Value, errors: &mut Errors) {
    let (spec, uid) = (&object["spec"], text(&object["metadata"]["uid"]));
    // A Job without a selector gets the error about the missing selector only.
    if spec["manualSelector"] != true && !spec["selector"].is_null() {
        own_labels(&object["metadata"], spec, errors);
        let labels = &spec["selector"]["matchLabels"];
        let is_own = labels["batch.kubernetes.io/controller-uid"] == uid
            && labels.as_object().is_some_and(|labels| labels.len() == 1);
        // `validate` reports an invalid selector.
        let (mut mistakes, given) = (Errors::default(), &spec["selector"]);
        selector::selector(given, "spec.selector", &mut mistakes);
        if !is_own && !given.is_null() && mistakes.is_empty() {
            errors.invalid("spec.selector", given, "`selector` not auto-generated");
        }
    }
}

/// Validates the four labels by which a Job finds its Pods (`validateGeneratedSelector`).
///
/// A missing label is `FieldValueRequired` at its key. Another value is `FieldValueInvalid` at the
/// whole map.
fn own_labels(meta: &Value, spec: &Value, errors: &mut Errors) {
    let labels = &spec["template"]["metadata"]["labels"];
    let given = |name: &str| labels.get(name).map(text);
    let reserved = [
        ("controller-uid", "uid"),
        ("job-name", "name"),
        ("batch.kubernetes.io/controller-uid", "uid"),
        ("batch.kubernetes.io/job-name", "name"),
    ];
    for (label, field) in reserved {
        let (path, wanted) = (format!("spec.template.metadata.labels[{label}]"), text(&meta[field]));
        match given(label) {
            None => errors.required(&path, &format!("must be '{wanted}'")),
            Some(value) if value != wanted => {
                errors.invalid("spec.template.metadata.labels", labels, &format!("must be '{wanted}'"));
            }
            Some(_) => {}
        }
    }
}

/// Validates the spec with its selector, which is required and must match the template.
fn whole_spec(spec: &Value, errors: &mut Errors) {
    job_spec(spec, "spec", errors);
    if spec["selector"].is_null() {
        errors.required("spec.selector", "");
    }
    let before = errors.len();
    selector::selector(&spec["selector"], "spec.selector", errors);
    if errors.len() == before {
        selector::fits_template(&spec["selector"], &spec["template"], "spec.template", errors);
    }
}

/// Validates that the Pods of an indexed Job can have host names (`validateNameAllowsCompletions`).
///
/// A Pod of an indexed Job has the host name `<job>-<index>`, a DNS label of at most 63 bytes. The
/// name with the highest index is validated.
fn host_names(object: &Value, errors: &mut Errors) {
    let (spec, name) = (&object["spec"], &object["metadata"]["name"]);
    let Some(last) = spec["completions"].as_i64().filter(|number| spec["completionMode"] == "Indexed" && *number > 0)
    else {
        return;
    };
    let host = format!("{}-{}", text(name), last - 1);
    if NameRule::Label.check(&host).is_some() {
        let detail = format!("will not able to create pod with invalid DNS label: {host}");
        errors.invalid("metadata.name", name, &detail);
    }
}

/// Validates a Job spec without its selector, also that of a `CronJob`.
///
/// Checks numbers, `managedBy`, completion mode, policies and the Pod template. The template's `restartPolicy` is
/// `FieldValueRequired` if it is `Always`, because Pods of a Job must terminate.
///
/// | field | rule |
/// |---|---|
/// | numbers in `NUMBERS` | not negative |
/// | `maxFailedIndexes` | requires `backoffLimitPerIndex` |
/// | `managedBy` | a domain and a name, at most 63 bytes |
/// | `podReplacementPolicy` | `Failed` with a `podFailurePolicy` |
/// | `template.spec.restartPolicy` | `OnFailure` or `Never`; only `Never` with a `podFailurePolicy` |
///
/// `path` is the field path of the spec: `spec`, or `spec.jobTemplate.spec` of a `CronJob`.
pub(crate) fn job_spec(spec: &Value, path: &str, errors: &mut Errors) {
    /// Fields that may not be negative.
    const NUMBERS: &[&str] = &[
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    let field = |name: &str| format!("{path}.{name}");
    for name in NUMBERS {
        errors.not_negative(&field(name), &spec[*name]);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        errors.required(&field("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if !spec["managedBy"].is_null() {
        errors.domain_prefixed(&field("managedBy"), &spec["managedBy"]);
        if text(&spec["managedBy"]).len() > MANAGER_LEN_MAX {
            errors.too_long(&field("managedBy"), MANAGER_LEN_MAX);
        }
    }
    completion(spec, path, errors);
    failure_policy(spec, &field("podFailurePolicy"), errors);
    success_policy(spec, &field("successPolicy"), errors);
    let (replacement, replacement_path) = (&spec["podReplacementPolicy"], field("podReplacementPolicy"));
    if !spec["podFailurePolicy"].is_null() && replacement == "TerminatingOrFailed" {
        errors.one_of(&replacement_path, replacement, &["Failed"]);
    }
    pod::template(&spec["template"], &field("template"), errors);
    let (policy, policy_path) = (&spec["template"]["spec"]["restartPolicy"], field("template.spec.restartPolicy"));
    match text(policy) {
        "" | "Always" => errors.required(&policy_path, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            errors.invalid(&policy_path, policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        _ => errors.one_of(&policy_path, policy, &["OnFailure", "Never"]),
    }
}

/// Validates the limits of the completion mode.
///
/// `backoffLimitPerIndex` and `maxFailedIndexes` need mode `Indexed`, which needs `completions` and bounds the numbers.
///
/// Beyond 100,000 completions with `backoffLimitPerIndex`, `maxFailedIndexes` is required and both
/// it and `parallelism` are at most 10,000. This bounds the size of the status, which lists the
/// failed indexes.
fn completion(spec: &Value, path: &str, errors: &mut Errors) {
    let field = |name: &str| format!("{path}.{name}");
    let number = |name: &str| spec[name].as_i64();
    let (per_index, failed) = (&spec["backoffLimitPerIndex"], &spec["maxFailedIndexes"]);
    if spec["completionMode"] != "Indexed" {
        let is_plain = spec["completionMode"].is_null() || spec["completionMode"] == "NonIndexed";
        for (name, value) in [("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)] {
            if is_plain && !value.is_null() {
                errors.invalid(&field(name), value, "requires indexed completion mode");
            }
        }
        return;
    }
    if spec["completions"].is_null() {
        errors.required(&field("completions"), "when completion mode is Indexed");
    }
    let at_most = |name: &str, most: i64, detail: &str, errors: &mut Errors| {
        if number(name).is_some_and(|number| number > most) {
            errors.invalid(&field(name), &spec[name], &format!("must be less than or equal to {detail}"));
        }
    };
    let detail = format!("{PARALLELISM_MAX} when completion mode is Indexed");
    at_most("parallelism", PARALLELISM_MAX, &detail, errors);
    if let Some(completions) = number("completions") {
        at_most("maxFailedIndexes", completions, "completions", errors);
    }
    at_most("maxFailedIndexes", FAILED_INDEXES_MAX, &FAILED_INDEXES_MAX.to_string(), errors);
    if number("completions").is_some_and(|number| number > COMPLETIONS_SOFT_MAX) && !per_index.is_null() {
        if failed.is_null() {
            let detail = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
            errors.required(&field("maxFailedIndexes"), &detail);
        }
        let when = format!("when completions are above {COMPLETIONS_SOFT_MAX} and used with backoff limit per index");
        at_most("parallelism", FEW_MAX, &format!("{FEW_MAX} {when}"), errors);
        at_most("maxFailedIndexes", FEW_MAX, &format!("{FEW_MAX} {when}"), errors);
    }
}

/// Validates `podFailurePolicy` (`validatePodFailurePolicy`): at most 20 rules (`FieldValueTooMany`), and each of them.
fn failure_policy(spec: &Value, path: &str, errors: &mut Errors) {
    let (policy, path) = (&spec["podFailurePolicy"], format!("{path}.rules"));
    let n_rules = entries(&policy["rules"]).count();
    if n_rules > FAILURE_RULES_MAX {
        errors.too_many(&path, n_rules, FAILURE_RULES_MAX);
    }
    for (index, rule) in entries(&policy["rules"]) {
        failure_rule(spec, rule, &format!("{path}[{index}]"), errors);
    }
}

/// Validates a rule, which has exactly one of `onExitCodes` and `onPodConditions` (`FieldValueInvalid`). `FailIndex`
/// needs `backoffLimitPerIndex`.
///
/// A rule is about exit codes of containers or conditions of the Pod. Its action is checked by the
/// schema's own rules.
fn failure_rule(spec: &Value, rule: &Value, path: &str, errors: &mut Errors) {
    let (action, action_path) = (&rule["action"], format!("{path}.action"));
    let (codes, conditions) = (&rule["onExitCodes"], entries(&rule["onPodConditions"]).count());
    if action == "FailIndex" && spec["backoffLimitPerIndex"].is_null() {
        errors.invalid(&action_path, action, "requires the backoffLimitPerIndex to be set");
    }
    if codes.is_object() {
        exit_codes(spec, codes, &format!("{path}.onExitCodes"), errors);
    }
    let at_conditions = format!("{path}.onPodConditions");
    if conditions > CONDITIONS_MAX {
        errors.too_many(&at_conditions, conditions, CONDITIONS_MAX);
    }
    for (index, condition) in entries(&rule["onPodConditions"]) {
        let path = format!("{at_conditions}[{index}]");
        errors.qualified_name(&format!("{path}.type"), text(&condition["type"]));
        errors.one_of(&format!("{path}.status"), &condition["status"], &["False", "True", "Unknown"]);
    }
    match (codes.is_object(), conditions > 0) {
        (true, true) => {
            errors.invalid_as_such(path, "specifying both OnExitCodes and OnPodConditions is not supported");
        }
        (false, false) => errors.invalid_as_such(path, "specifying one of OnExitCodes and OnPodConditions is required"),
        _ => {}
    }
}

/// Validates exit codes: 1 to 255 of them, sorted and unique, without 0 for `In`. The container must be in the
/// template.
///
/// A code that is listed twice is `FieldValueDuplicate`. The order is checked for the whole list,
/// at `values`.
fn exit_codes(spec: &Value, codes: &Value, path: &str, errors: &mut Errors) {
    let name = &codes["containerName"];
    let is_known = ["containers", "initContainers"]
        .iter()
        .any(|list| entries(&spec["template"]["spec"][*list]).any(|(_, container)| container["name"] == *name));
    if !name.is_null() && !is_known {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&format!("{path}.containerName"), name, detail);
    }
    let path = format!("{path}.values");
    let values: Vec<i64> = entries(&codes["values"]).filter_map(|(_, code)| code.as_i64()).collect();
    if values.is_empty() {
        errors.invalid(&path, &codes["values"], "at least one value is required");
    } else if values.len() > CODES_MAX {
        errors.too_many(&path, values.len(), CODES_MAX);
    }
    for (index, code) in values.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if *code == 0 && codes["operator"] == "In" {
            errors.invalid(&path, &0.into(), "must not be 0 for the In operator");
        }
        if values[..index].contains(code) {
            errors.duplicate(&path);
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, &codes["values"], "must be ordered");
    }
}

/// Validates `successPolicy` (`validateSuccessPolicy`): mode `Indexed`, and 1 to 20 rules.
fn success_policy(spec: &Value, path: &str, errors: &mut Errors) {
    let policy = &spec["successPolicy"];
    if policy.is_null() {
        return;
    }
    if spec["completionMode"] != "Indexed" {
        return errors.invalid(path, policy, "requires indexed completion mode");
    }
    let (n_rules, path) = (entries(&policy["rules"]).count(), format!("{path}.rules"));
    if n_rules == 0 {
        errors.required(&path, "at least one rules must be specified when the successPolicy is specified");
    }
    if n_rules > SUCCESS_RULES_MAX {
        errors.too_many(&path, n_rules, SUCCESS_RULES_MAX);
    }
    for (index, rule) in entries(&policy["rules"]) {
        success_rule(spec, rule, &format!("{path}[{index}]"), errors);
    }
}

/// Validates a rule: an index list, a count or both. The count exceeds neither the completions nor the listed indexes.
///
/// Indexes are validated like those of the status: increasing, and below `completions`.
fn success_rule(spec: &Value, rule: &Value, path: &str, errors: &mut Errors) {
    let (count, indexes) = (&rule["succeededCount"], &rule["succeededIndexes"]);
    let (count_path, completions) = (format!("{path}.succeededCount"), spec["completions"].as_i64().unwrap_or(0));
    if count.is_null() && indexes.is_null() {
        errors.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut n_indexes = 0;
    if !indexes.is_null() {
        match intervals(text(indexes), |part| interval(part, completions)) {
            Some(intervals) => n_indexes = intervals.iter().map(|(first, last)| last - first + 1).sum(),
            None => errors.invalid(&format!("{path}.succeededIndexes"), indexes, RULE),
        }
    }
    let Some(number) = count.as_i64() else { return };
    errors.not_negative(&count_path, count);
    if number > completions {
        let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.invalid(&count_path, count, &detail);
    }
    if !indexes.is_null() && number > n_indexes {
        let detail = format!(
            "must be less than or equal to {n_indexes} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.invalid(&count_path, count, &detail);
    }
}
