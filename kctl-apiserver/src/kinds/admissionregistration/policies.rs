//! Rules of admission policies and their bindings (`pkg/apis/admissionregistration/validation/validation.go`).
//!
//! Expressions are compiled and type-checked on each write, so `kubectl apply` fails on a mistake rather than the first
//! request that the policy matches. The types of `object`, `oldObject` and `params` are dynamic, because the kinds that
//! a policy matches may not exist yet. Validating and mutating policies share `validate_common_fields`,
//! `validate_constraints` and `validate_binding`. The rest of this file is either for one of the two kinds or for the
//! status.

use kctl_cel::{Environment, Type};
use serde_json::Value;

use crate::{
    cel::type_of,
    field::Field,
    field_errors::{Errors, text},
    json_path::entries,
    kinds::admissionregistration::webhooks::{
        check_compiles, expression_rule, match_conditions, rule_with_operations, validate_selectors,
    },
    names::NameRule,
    validation::selector,
};

/// The type of `variables`, whose fields are the variables of the policy.
const COMPOSED: &str = "kubernetes.variables";
/// Maximum depth of a variable's type; variables with deeper types are `dyn`. Each variable may nest the previous one,
/// and types are compared part by part.
const TYPE_DEPTH_MAX: usize = 64;
/// Longest `valueExpression` of an audit annotation, in bytes, without surrounding white space.
const VALUE_LEN_MAX: usize = 5_120;
/// Maximum number of `auditAnnotations` of a policy.
const ANNOTATIONS_LEN_MAX: usize = 20;
/// Reasons that a failed validation may give to the response. They decide its status code: 403, 422 or 413.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Validates a `ValidatingAdmissionPolicy` (`ValidateValidatingAdmissionPolicy`). A policy without validations and
/// audit annotations gets one error for each of the two lists, and no further errors.
pub(crate) fn validating_policy(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let environment = validate_common_fields(&spec);
    let (validations, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must have at least one item";
        validations.required_with(detail);
        return annotations.required_with(detail);
    }
    validations.items().for_each(|value| validate_validation(&value, &environment));
    validate_audit_annotations(&annotations, text(&object["metadata"]["name"]), &environment);
}

/// Validates the fields that both kinds of policies have. Returns the declarations that their expressions may use.
/// `params` is declared only if the policy has a `paramKind`; without one, an expression that names it does not
/// compile. Match conditions may not use `variables`: they are evaluated first.
fn validate_common_fields(spec: &Field<'_>) -> Environment {
    let mut environment = Environment::for_request();
    let (kind, matched) = (spec.at("paramKind"), spec.at("matchConstraints"));
    if !kind.is_null() {
        validate_param_kind(&kind);
        environment = environment.with("params", Type::Dyn);
    }
    if matched.is_null() {
        matched.required();
    } else {
        validate_constraints(&matched);
        let rules = matched.at("resourceRules");
        rules.required_if(rules.is_empty());
    }
    match_conditions(&spec.at("matchConditions"), &environment);
    declare_variables(&spec.at("variables"), environment.with_object("variables", COMPOSED))
}

/// Validates `spec.variables`, where each variable may use the previous ones. Returns the environment with all of them.
/// A name is a CEL identifier, which is not a reserved word. A variable has the type of its expression. It is `dyn` if
/// the expression does not compile, so that one mistake is reported once, and beyond `TYPE_DEPTH_MAX`.
fn declare_variables(variables: &Field<'_>, mut environment: Environment) -> Environment {
    for variable in variables.items() {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        let is_identifier = !kctl_cel::is_reserved(name.text())
            && !name.text().starts_with(|first: char| first.is_ascii_digit())
            && name.text().chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if name.require_value() {
            name.invalid_if(!is_identifier, "must be a valid CEL identifier");
        }
        expression_rule(&expression, &environment, &[]);
        let is = type_of(expression.text(), &environment).ok().flatten();
        let is = is.filter(|is| is.depth() <= TYPE_DEPTH_MAX);
        environment.add_field(COMPOSED, name.text(), is.unwrap_or(Type::Dyn));
    }
    environment
}

/// Validates `spec.paramKind`: an `apiVersion` of the form `version` or `group/version`, and a kind. The kind need not
/// exist. It may have upper-case letters and is otherwise a DNS label that begins with a letter.
fn validate_param_kind(kind: &Field<'_>) {
    let (version, name) = (kind.at("apiVersion"), kind.at("kind"));
    if version.require_value() {
        let (group, number) = version.text().split_once('/').unwrap_or(("", version.text()));
        let is_group = group.is_empty() || NameRule::Subdomain.check(group).is_none();
        let is_version = is_group && NameRule::Label1035.check(number).is_none();
        version.invalid_if(!is_version, "must be a version such as v1, or a group and a version such as apps/v1");
    }
    if name.require_value() {
        name.kind_name();
    }
}

/// Validates the resources that a policy or binding matches (`validateMatchResources`). Names in `resourceNames` are
/// unique within a rule (`FieldValueDuplicate`) and fit into a path. `*` is not a wildcard there.
fn validate_constraints(constraints: &Field<'_>) {
    validate_selectors(constraints);
    let rules = ["resourceRules", "excludeResourceRules"].map(|field| constraints.at(field));
    for rule in rules.iter().flat_map(Field::items) {
        let names = rule.at("resourceNames");
        names.items().for_each(|name| name.name(NameRule::PathSegment));
        names.unique(|name| name);
        rule_with_operations(&rule);
    }
}

/// Validates one of `spec.validations`. `message` is the message of the response if there is no `messageExpression`, or
/// if that fails.
fn validate_validation(validation: &Field<'_>, environment: &Environment) {
    expression_rule(&validation.at("expression"), environment, &["bool"]);
    let [computed, message] = ["messageExpression", "message"].map(|name| validation.at(name));
    let is_blank = |field: &Field<'_>| !field.is_empty() && field.text().trim().is_empty();
    computed.invalid_if(is_blank(&computed), "must be non-empty if specified");
    if !computed.text().trim().is_empty() {
        // Message expressions cannot use the authorizer.
        let environment = environment.clone().without("authorizer").without("authorizer.requestResource");
        check_compiles(&computed, computed.text(), &environment, &["string"]);
    }
    let is_wrong = is_blank(&message) || message.text().trim().contains(['\n', '\r']);
    message.invalid_if(is_wrong, "must be non-empty if specified, and must not contain line breaks");
    validation.at("reason").one_of(&REASONS);
}

/// Validates `spec.auditAnnotations`, which add values to the audit log. The key in the log is `<policy>/<key>`, so the
/// two together must be a qualified name, and a policy without a name cannot have annotations. `valueExpression`
/// returns a string, or null to leave the annotation out of one event.
fn validate_audit_annotations(annotations: &Field<'_>, policy: &str, environment: &Environment) {
    let has_many = annotations.items().count() > ANNOTATIONS_LEN_MAX;
    annotations.invalid_without_value_if(has_many, format_args!("must have at most {ANNOTATIONS_LEN_MAX} items"));
    for annotation in annotations.items() {
        let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
        let whole = Value::from(format!("{policy}/{}", key.text()));
        if policy.is_empty() {
            key.invalid("requires metadata.name be non-empty");
        } else {
            key.with(&whole).qualified_name();
        }
        if value.text().trim().len() > VALUE_LEN_MAX {
            value.required_with(format_args!("must have at most {VALUE_LEN_MAX} bytes"));
        } else {
            expression_rule(&value, environment, &["string", "null"]);
        }
    }
    annotations.unique_at("key");
}

/// Validates a `ValidatingAdmissionPolicyBinding`: the fields of every binding, and `spec.validationActions`. An action
/// may be listed once (`FieldValueDuplicate`). Enums and tags of the API report unknown actions and an empty
/// list (`validation/declared.rs`).
pub(crate) fn validating_binding(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    validate_binding(&spec);
    let actions = spec.at("validationActions");
    actions.unique(|action| action);
    let has = |wanted: &str| entries(&actions).any(|(_, action)| action == wanted);
    // Both would report the same message in one response.
    actions.invalid_if(has("Deny") && has("Warn"), "must not contain both Deny and Warn");
}

/// Validates the fields that bindings of both kinds have: name of the policy, parameters and matched resources. An
/// empty `policyName` is not reported here: each kind reports it in its own way.
fn validate_binding(spec: &Field<'_>) {
    spec.at("policyName").name_if_set(NameRule::Subdomain);
    spec.at("paramRef").when_present(validate_param_reference);
    spec.at("matchResources").when_present(validate_constraints);
}

/// Validates `spec.paramRef`, which chooses the parameters by name or by label selector, not by both. With both, each
/// of the two fields gets a `FieldValueForbidden`. `parameterNotFoundAction` is required, because neither default would
/// be safe: `Allow` skips the policy without parameters, `Deny` rejects the request.
fn validate_param_reference(reference: &Field<'_>) {
    let (name, selector) = (reference.at("name"), reference.at("selector"));
    let (has_name, selects) = (!name.is_empty(), selector.is_object());
    name.name_if_set(NameRule::PathSegment);
    selector.when_present(selector::validate_selector);
    for field in [name, selector] {
        field.forbidden_if(has_name && selects, "name and selector are mutually exclusive");
    }
    reference.required_with_if(!has_name && !selects, "exactly one of name and selector must be set");
    reference.at("parameterNotFoundAction").required_one_of(&["Deny", "Allow"]);
}

/// Validates a `MutatingAdmissionPolicy`. The field of the other patch type must be absent. A mutation with an unknown
/// `patchType` is skipped: an enum of the API reports it. `reinvocationPolicy` is required and has no default.
pub(crate) fn mutating_policy(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    let environment = validate_common_fields(&spec).with_object_construction();
    forbid_deletes(&spec.at("matchConstraints"));
    let (mutations, policy) = (spec.at("mutations"), spec.at("reinvocationPolicy"));
    mutations.required_if(mutations.is_empty());
    for mutation in mutations.items() {
        let (field, other, wanted) = match text(&mutation["patchType"]) {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", "Object"),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", "list(JSONPatch)"),
            _ => continue,
        };
        let (field, other) = (mutation.at(field), mutation.at(other));
        if field.is_object() {
            expression_rule(&field.at("expression"), &environment, &[wanted]);
        } else {
            field.required_with(format_args!("must be set for the patchType {}", text(&mutation["patchType"])));
        }
        other.invalid_if(other.is_object(), "must not be specified for this `patchType`");
    }
    policy.required_if(policy.is_empty());
}

/// Validates the status of a `ValidatingAdmissionPolicy`: the results of type checking and the conditions. Each of
/// `typeChecking.expressionWarnings` needs a warning and the path of the expression that it is about.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    let status = Field::new(&object["status"], "status", errors);
    for warning in status.at("typeChecking").at("expressionWarnings").items() {
        warning.require_children(&["warning", "fieldRef"]);
    }
    status.at("conditions").check(crate::validation::status::validate_condition_list);
}

/// Validates a `MutatingAdmissionPolicyBinding`, whose `policyName` is required (`FieldValueRequired`).
pub(crate) fn mutating_binding(object: &Value, errors: &mut Errors) {
    let spec = Field::new(&object["spec"], "spec", errors);
    spec.at("policyName").required_if(text(&spec["policyName"]).is_empty());
    validate_binding(&spec);
    forbid_deletes(&spec.at("matchResources"));
}

/// Reports rules for `DELETE` as `FieldValueNotSupported`: mutating policies do not run for deletions. The path has no
/// index of the rule, as in kube-apiserver. `excludeResourceRules` may name `DELETE`.
fn forbid_deletes(constraints: &Field<'_>) {
    let rules = constraints.at("resourceRules");
    let operations = rules.at("operations");
    for operation in rules.items().flat_map(|rule| rule.at("operations").items()) {
        operations.with(&operation).one_of(&["*", "CONNECT", "CREATE", "UPDATE"]);
    }
}
