//! Rules of the configurations of admission webhooks (`pkg/apis/admissionregistration/validation/validation.go`).
//!
//! Admission policies share the rules about selectors, rules with operations, match conditions and CEL expressions:
//! their functions are visible in the crate. The paths of errors begin with `webhooks[i]`, because the fields of these
//! kinds are at the top level.

use std::collections::BTreeSet;

use kctl_cel::Environment;
use serde_json::Value;

use crate::{
    cel::{Problem, problem},
    field::Field,
    field_errors::Errors,
    json_path::entries,
    names::NameRule,
    registry::kind::Validation,
    validation::selector,
    webhook_client::{client_config, review_versions},
};

/// Longest `timeoutSeconds` of a webhook; the shortest is 1. The default is 10.
const TIMEOUT_SECONDS_MAX: i64 = 30;
/// Maximum number of match conditions of a webhook or a policy (`FieldValueTooMany`).
const CONDITIONS_LEN_MAX: usize = 64;

/// The validation of configurations of both kinds.
pub(super) const VALIDATION: Validation =
    Validation { validate: validate_webhooks, warn: super::reserved::warn_of_webhooks, ..super::VALIDATION };

/// Validates a configuration of validating or mutating webhooks. Names of webhooks are unique within the configuration
/// (`FieldValueDuplicate`).
fn validate_webhooks(object: &Value, errors: &mut Errors) {
    let webhooks = Field::new(&object["webhooks"], "webhooks", errors);
    for value in webhooks.items() {
        validate_webhook(&value);
        review_versions(&value.at("admissionReviewVersions"));
    }
    webhooks.unique_at("name");
}

/// Validates one webhook, apart from its review versions.
fn validate_webhook(webhook: &Field<'_>) {
    validate_segmented_name(&webhook.at("name"));
    webhook.at("rules").items().for_each(|rule| rule_with_operations(&rule));
    let effects = webhook.at("sideEffects");
    effects.required_if(effects.is_null());
    effects.one_of(&["None", "NoneOnDryRun"]);
    webhook.at("timeoutSeconds").in_range(1, TIMEOUT_SECONDS_MAX);
    validate_selectors(webhook);
    client_config(&webhook.at("clientConfig"));
    match_conditions(&webhook.at("matchConditions"), &Environment::for_request());
}

/// Validates `namespaceSelector` and `objectSelector` of a webhook or of a policy's `MatchResources`. An invalid label
/// is reported at the whole map `matchLabels`, not at its key, as in kube-apiserver.
pub(crate) fn validate_selectors(value: &Field<'_>) {
    value.check_children(&["namespaceSelector", "objectSelector"], selector::validate_selector);
}

/// Validates the name of a webhook: a subdomain with at least three segments, such as `pods.policy.example.com`. The
/// name identifies the webhook in errors and metrics; the domain keeps names of different vendors apart.
fn validate_segmented_name(name: &Field<'_>) {
    name.required_name(NameRule::Subdomain);
    let has_few = !name.is_empty() && name.text().split('.').count() < 3;
    name.invalid_if(has_few, "must be a domain with at least three segments separated by dots");
}

/// Validates a rule of a webhook or a policy (`validateRuleWithOperations`). `operations`, `apiGroups`, `apiVersions`
/// and `resources` need at least one item each. In the first three, `*` must be alone. An empty string in `apiGroups`
/// is the core group; in `apiVersions` it is `FieldValueRequired`.
pub(crate) fn rule_with_operations(rule: &Field<'_>) {
    for list in ["operations", "apiGroups", "apiVersions"].map(|name| rule.at(name)) {
        let has_all = entries(&list).any(|(_, item)| item == "*");
        list.required_if(list.is_empty());
        list.invalid_if(has_all && list.items().count() > 1, "'*' must be the only item");
    }
    rule.at("apiVersions").items().for_each(|version| version.required_if(version.is_empty()));
    validate_resources(&rule.at("resources"));
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
/// An item that includes others is only compared with the items after it, as in the one pass of `validateResources`
/// (`pkg/apis/admissionregistration/validation/validation.go`).
fn validate_resources(resources: &Field<'_>) {
    resources.required_if(resources.is_empty());
    let (mut with_all, mut covered_by_all) = (BTreeSet::new(), BTreeSet::new());
    let mut has_whole = false;
    for resource in resources.items() {
        resource.required_if(resource.is_empty());
        match resource.text().split_once('/') {
            _ if resource.is_empty() => {}
            // Only the last one without a subresource counts: upstream assigns `hasResourceWithoutSubresource` each
            // time.
            None => has_whole = *resource != "*",
            Some((name, sub)) => {
                let is_included = with_all.contains(name) || covered_by_all.contains(sub);
                resource.invalid_if(is_included, "is already covered by an earlier resource with '*'");
                with_all.extend((sub == "*").then_some(name));
                covered_by_all.extend((name == "*").then_some(sub));
            }
        }
    }
    let has = |wanted: &str| entries(resources).any(|(_, resource)| resource == wanted);
    let is_repeated = (has("*/*") && resources.items().count() > 1) || (has_whole && has("*"));
    let detail = "'*/*' must be the only item, and '*' the only one without subresources";
    resources.invalid_if(is_repeated, detail);
}

/// Validates match conditions: CEL expressions with unique names, at most `CONDITIONS_LEN_MAX`. A name is a qualified
/// name, so that conditions of different owners in one list do not collide.
pub(crate) fn match_conditions(conditions: &Field<'_>, environment: &Environment) {
    let mut names = BTreeSet::new();
    for condition in conditions.items() {
        let (name, expression) = (condition.at("name"), condition.at("expression"));
        expression_rule(&expression, environment, &["bool"]);
        if name.require_value() {
            name.qualified_name();
            name.duplicate_if(!names.insert(name.text()));
        }
    }
    conditions.max_items(CONDITIONS_LEN_MAX);
}

/// Validates an expression that is required (`FieldValueRequired`) and must compile. `wanted` lists the types that the
/// expression may return.
pub(crate) fn expression_rule(field: &Field<'_>, environment: &Environment, wanted: &[&str]) {
    let expression = field.text().trim();
    field.required_if(expression.is_empty());
    if !expression.is_empty() {
        check_compiles(field, expression, environment, wanted);
    }
}

/// Reports an expression that does not compile or does not return one of the `wanted` types. An expression that
/// compiles, but can't be turned into a program, such as `int('a') == 1`, is an `InternalError` as in kube-apiserver.
pub(crate) fn check_compiles(field: &Field<'_>, expression: &str, environment: &Environment, wanted: &[&str]) {
    match problem(expression, environment, wanted) {
        Some(Problem::Invalid(why)) => field.invalid(why),
        Some(Problem::Internal(why)) => field.with_errors(|errors, path| errors.internal(path, &why)),
        None => {}
    }
}
