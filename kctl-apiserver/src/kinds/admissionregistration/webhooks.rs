//! Rules of the configurations of admission webhooks (`pkg/apis/admissionregistration/validation/validation.go`).
//!
//! Admission policies share the rules about selectors, rules with operations, match conditions and
//! CEL expressions: their functions are visible in the crate.
//!
//! The paths of errors begin with `webhooks[i]`, because the fields of these kinds are at the top
//! level.

use kctl_cel::{Environment, Type};
use serde_json::Value;

use crate::{
    cel::{Problem, problem},
    field_errors::{Errors, text},
    names::{NameRule, check_qualified_name},
    validation::{entries, selector},
    webhook_client::client_config,
};

/// Versions of `AdmissionReview` that the server supports.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Longest `timeoutSeconds` of a webhook; the shortest is 1. The default is 10.
const TIMEOUT_SECONDS_MAX: i64 = 30;
/// Maximum number of match conditions of a webhook or a policy (`FieldValueTooMany`).
const CONDITIONS_LEN_MAX: usize = 64;

/// Validates a configuration of validating or mutating webhooks.
///
/// Names of webhooks are unique within the configuration (`FieldValueDuplicate`). Other configurations may have the
/// same names.
pub(crate) fn webhooks(object: &Value, errors: &mut Errors) {
    let mut names = Vec::new();
    for (index, value) in entries(&object["webhooks"]) {
        let path = format!("webhooks[{index}]");
        webhook(value, &path, errors);
        let versions = &value["admissionReviewVersions"];
        review_versions(versions, &format!("{path}.admissionReviewVersions"), errors);
        if names.contains(&text(&value["name"])) {
            errors.duplicate(&format!("{path}.name"));
        }
        names.push(text(&value["name"]));
    }
}

/// Validates `admissionReviewVersions`: at least one version, each once, and at least one that the server supports.
///
/// Unknown versions are valid beside a known one, so that a configuration works on older and newer
/// servers.
fn review_versions(versions: &Value, path: &str, errors: &mut Errors) {
    let all: Vec<&str> = entries(versions).map(|(_, version)| text(version)).collect();
    let supported = REVIEW_VERSIONS.join(", ");
    if all.is_empty() {
        errors.required(path, &format!("must specify one of {supported}"));
        return;
    }
    for (index, version) in all.iter().enumerate() {
        if all[..index].contains(version) {
            errors.invalid(&format!("{path}[{index}]"), &(*version).into(), "duplicate version");
        }
        if let Some(message) = NameRule::Label1035.check(version) {
            errors.invalid(&format!("{path}[{index}]"), &(*version).into(), message);
        }
    }
    if !all.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        errors.invalid(path, versions, &format!("must include at least one of {supported}"));
    }
}

/// Validates one webhook, apart from its review versions.
///
/// | field | rule |
/// |---|---|
/// | `name` | domain of at least three segments |
/// | `rules[]` | see `rule_with_operations` |
/// | `sideEffects` | required; `None` or `NoneOnDryRun`, so that a dry run is safe |
/// | `timeoutSeconds` | 1 to 30 |
/// | `namespaceSelector`, `objectSelector` | valid label selectors |
/// | `clientConfig` | either a URL or a Service |
/// | `matchConditions[]` | CEL expressions that return a `bool` |
fn webhook(webhook: &Value, path: &str, errors: &mut Errors) {
    segmented_name(webhook, path, errors);
    for (index, rule) in entries(&webhook["rules"]) {
        rule_with_operations(rule, &format!("{path}.rules[{index}]"), errors);
    }
    if webhook["sideEffects"].is_null() {
        errors.required(&format!("{path}.sideEffects"), "must specify one of None, NoneOnDryRun");
    }
    errors.one_of(&format!("{path}.sideEffects"), &webhook["sideEffects"], &["None", "NoneOnDryRun"]);
    if webhook["timeoutSeconds"].as_i64().is_some_and(|seconds| !(1..=TIMEOUT_SECONDS_MAX).contains(&seconds)) {
        let detail = format!("the timeout value must be between 1 and {TIMEOUT_SECONDS_MAX} seconds");
        errors.invalid(&format!("{path}.timeoutSeconds"), &webhook["timeoutSeconds"], &detail);
    }
    selectors(webhook, path, errors);
    client_config(&webhook["clientConfig"], &format!("{path}.clientConfig"), errors);
    match_conditions(&webhook["matchConditions"], &format!("{path}.matchConditions"), &of_request(), errors);
}

/// Validates `namespaceSelector` and `objectSelector` of a webhook or of a policy's
/// `MatchResources`.
///
/// An invalid label is reported at the whole map `matchLabels`, not at its key, as in
/// kube-apiserver.
pub(crate) fn selectors(value: &Value, path: &str, errors: &mut Errors) {
    for field in ["namespaceSelector", "objectSelector"] {
        selector::selector(&value[field], &format!("{path}.{field}"), errors);
    }
}

/// Validates the name of a webhook: a subdomain with at least three segments, such as
/// `pods.policy.example.com`.
///
/// The name identifies the webhook in errors and metrics; the domain keeps names of different
/// vendors apart.
fn segmented_name(webhook: &Value, path: &str, errors: &mut Errors) {
    let (name, path) = (text(&webhook["name"]), format!("{path}.name"));
    if name.is_empty() {
        errors.required(&path, "");
        return;
    }
    let messages = NameRule::Subdomain.check(name);
    if let Some(message) = messages {
        errors.invalid(&path, &webhook["name"], message);
    }
    if messages.is_none() && name.split('.').count() < 3 {
        errors.invalid(&path, &webhook["name"], "should be a domain with at least three segments separated by dots");
    }
}

/// Validates a rule of a webhook or a policy (`validateRuleWithOperations`).
///
/// `operations`, `apiGroups`, `apiVersions` and `resources` need at least one item each. In the
/// first three, `*` must be alone. An empty string in `apiGroups` is the core group; in
/// `apiVersions` it is `FieldValueRequired`.
pub(crate) fn rule_with_operations(rule: &Value, path: &str, errors: &mut Errors) {
    let operations = format!("{path}.operations");
    let all: Vec<&str> = entries(&rule["operations"]).map(|(_, operation)| text(operation)).collect();
    if all.is_empty() {
        errors.required(&operations, "");
    }
    if all.len() > 1 && all.contains(&"*") {
        errors.invalid(&operations, &rule["operations"], "if '*' is present, must not specify other operations");
    }
    for (field, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let all: Vec<&str> = entries(&rule[field]).map(|(_, value)| text(value)).collect();
        if all.is_empty() {
            errors.required(&format!("{path}.{field}"), "");
        }
        if all.len() > 1 && all.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {what}");
            errors.invalid(&format!("{path}.{field}"), &rule[field], &detail);
        }
        let nameless = |(_, value): &(usize, &&str)| value.is_empty() && field == "apiVersions";
        for (index, _) in all.iter().enumerate().filter(nameless) {
            errors.required(&format!("{path}.{field}[{index}]"), "");
        }
    }
    resources(&rule["resources"], &format!("{path}.resources"), errors);
}

/// Reports resources that another item of the list already includes (`validateResources`).
///
/// | item | includes |
/// |---|---|
/// | `pods` | Pods without subresources |
/// | `pods/*` | all subresources of Pods |
/// | `*/scale` | the subresource `scale` of all resources |
/// | `*` | all resources without subresources |
/// | `*/*` | everything |
///
/// An item that includes others is only compared with the items after it, as upstream does in one pass.
fn resources(resources: &Value, path: &str, errors: &mut Errors) {
    let all: Vec<&str> = entries(resources).map(|(_, resource)| text(resource)).collect();
    if all.is_empty() {
        errors.required(path, "");
        return;
    }
    let (mut with_all, mut of_all) = (Vec::new(), Vec::new());
    let mut has_whole = false;
    for (index, resource) in all.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if resource.is_empty() {
            errors.required(&path, "");
            continue;
        }
        let Some((name, sub)) = resource.split_once('/') else {
            // As in upstream, only the last resource without a subresource counts.
            has_whole = *resource != "*";
            continue;
        };
        let mut told = |pattern: String| {
            let detail = format!("if '{pattern}' is present, must not specify {resource}");
            errors.invalid(&path, &(*resource).into(), &detail);
        };
        if with_all.contains(&name) {
            told(format!("{name}/*"));
        }
        if of_all.contains(&sub) {
            told(format!("*/{sub}"));
        }
        with_all.extend((sub == "*").then_some(name));
        of_all.extend((name == "*").then_some(sub));
    }
    if all.len() > 1 && all.contains(&"*/*") {
        errors.invalid(path, resources, "if '*/*' is present, must not specify other resources");
    }
    if has_whole && all.contains(&"*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(path, resources, detail);
    }
}

/// Validates match conditions: CEL expressions with unique names, at most `CONDITIONS_LEN_MAX`.
///
/// A condition without an expression is still checked for its name. A name is a qualified name, so
/// that conditions of different owners in one list do not collide.
pub(crate) fn match_conditions(conditions: &Value, path: &str, environment: &Environment, errors: &mut Errors) {
    let all = conditions.as_array().map_or(&[][..], Vec::as_slice);
    if all.len() > CONDITIONS_LEN_MAX {
        errors.too_many(path, all.len(), CONDITIONS_LEN_MAX);
    }
    let mut names = Vec::new();
    for (index, condition) in all.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let (name, expression) = (text(&condition["name"]), text(&condition["expression"]).trim());
        expression_rule(expression, &format!("{path}.expression"), environment, &["bool"], errors);
        if name.is_empty() {
            errors.required(&format!("{path}.name"), "");
            continue;
        }
        if let Some(message) = check_qualified_name(name) {
            errors.invalid(&format!("{path}.name"), &name.into(), message);
        }
        if names.contains(&name) {
            errors.duplicate(&format!("{path}.name"));
        }
        names.push(name);
    }
}

/// Returns the declarations that expressions about a request may use.
///
/// `object` and `oldObject` are dynamic: their types depend on the request. The other variables
/// have known types, so a misspelt field of `request` or `namespaceObject` is an error when the
/// object is written.
pub(crate) fn of_request() -> Environment {
    let object = |name: &str| Type::Object(name.into());
    Environment::default()
        .with("object", Type::Dyn)
        .with("oldObject", Type::Dyn)
        .with("request", object("kubernetes.AdmissionRequest"))
        .with("namespaceObject", object("kubernetes.Namespace"))
        .with("authorizer", object("kubernetes.authorization.Authorizer"))
        .with("authorizer.requestResource", object("kubernetes.authorization.ResourceCheck"))
}

/// Validates an expression that is required (`FieldValueRequired`) and must compile.
///
/// `path` is its field path. `wanted` lists the types that the expression may return.
pub(crate) fn expression_rule(
    expression: &str,
    path: &str,
    environment: &Environment,
    wanted: &[&str],
    errors: &mut Errors,
) {
    if expression.trim().is_empty() {
        errors.required(path, "");
        return;
    }
    compiles(expression, path, environment, wanted, errors);
}

/// Reports an expression that does not compile or does not return one of the `wanted` types.
///
/// Such an expression is `FieldValueInvalid`, with the expression as value. An expression that compiles but of which no
/// program can be made, such as `int('a') == 1`, is an `InternalError` as in kube-apiserver.
pub(crate) fn compiles(expression: &str, path: &str, environment: &Environment, wanted: &[&str], errors: &mut Errors) {
    match problem(expression, environment, wanted) {
        Some(Problem::Invalid(why)) => errors.invalid(path, &expression.into(), &why),
        Some(Problem::Internal(why)) => errors.internal(path, &why),
        None => {}
    }
}
