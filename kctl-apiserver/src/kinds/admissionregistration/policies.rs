//! Rules of admission policies and their bindings (`pkg/apis/admissionregistration/validation/validation.go`).
//!
//! Expressions are compiled and type-checked on each write, so `kubectl apply` fails on a mistake
//! rather than the first request that the policy matches. The types of `object`, `oldObject` and
//! `params` are dynamic, because the kinds that a policy matches may not exist yet.
//!
//! Validating and mutating policies share `common`, `constraints` and `binding`. The rest of this
//! file is either for one of the two kinds or for the status.

use kctl_cel::{Environment, Type};
use serde_json::Value;

use crate::{
    cel::type_of,
    field_errors::{Errors, text},
    kinds::admissionregistration::webhooks::{
        compiles, expression_rule, match_conditions, of_request, rule_with_operations, selectors,
    },
    names::{NameRule, check_qualified_name},
    validation::{entries, selector},
};

/// The type of `variables`, whose fields are those of the policy.
const COMPOSED: &str = "kubernetes.variables";
/// Maximum depth of a variable's type; variables with deeper types are `dyn`. Each variable may nest the previous one,
/// and types are compared part by part.
const TYPE_DEPTH_MAX: usize = 64;
/// Longest `valueExpression` of an audit annotation, in bytes, without surrounding white space.
///
/// A longer one is reported as `FieldValueRequired`, as in kube-apiserver.
const VALUE_LEN_MAX: usize = 5_120;
/// Maximum number of `auditAnnotations` of a policy.
const ANNOTATIONS_LEN_MAX: usize = 20;
/// Reasons that a failed validation may give to the response. They decide its status code: 403, 422
/// or 413.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Validates a `ValidatingAdmissionPolicy` (`ValidateValidatingAdmissionPolicy`).
///
/// | field | rule |
/// |---|---|
/// | `spec.matchConstraints` | required, with at least one of `resourceRules` |
/// | `spec.validations`, `spec.auditAnnotations` | at least one item in one of the two lists |
/// | `spec.validations[].expression` | compiles to a `bool` |
/// | `spec.validations[].messageExpression` | compiles to a `string`, without the variable `authorizer` |
/// | `spec.auditAnnotations[].key` | unique; together with the policy's name a qualified name |
///
/// A policy without validations and audit annotations gets one error for each of the two lists, and
/// no further errors.
pub(crate) fn validating_policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let environment = common(spec, |_, _, _| {}, errors);
    let is_empty = |field: &str| spec[field].as_array().is_none_or(Vec::is_empty);
    if is_empty("validations") && is_empty("auditAnnotations") {
        for field in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.required(&format!("spec.{field}"), detail);
        }
        return;
    }
    for (index, value) in entries(&spec["validations"]) {
        validation(value, &format!("spec.validations[{index}]"), &environment, errors);
    }
    audit_annotations(spec, text(&object["metadata"]["name"]), &environment, errors);
}

/// Validates the fields that both kinds of policies have. Returns the declarations that their
/// expressions may use.
///
/// The order of the errors is that of kube-apiserver: `paramKind`, `matchConstraints`,
/// `matchConditions`, `variables`. `params` is declared only if the policy has a `paramKind`;
/// without one, an expression that names it does not compile. Match conditions may not use
/// `variables`: they are evaluated first.
///
/// `more` validates rules about `matchConstraints` that only one of the kinds has.
fn common(spec: &Value, more: fn(&Value, &str, &mut Errors), errors: &mut Errors) -> Environment {
    let mut environment = of_request();
    if !spec["paramKind"].is_null() {
        param_kind(&spec["paramKind"], errors);
        environment = environment.with("params", Type::Dyn);
    }
    if spec["matchConstraints"].is_null() {
        errors.required("spec.matchConstraints", "");
    } else {
        constraints(&spec["matchConstraints"], "spec.matchConstraints", errors);
        if spec["matchConstraints"]["resourceRules"].as_array().is_none_or(Vec::is_empty) {
            errors.required("spec.matchConstraints.resourceRules", "");
        }
        more(&spec["matchConstraints"], "spec.matchConstraints", errors);
    }
    match_conditions(&spec["matchConditions"], "spec.matchConditions", &environment, errors);
    composed(spec, environment.with_object("variables", COMPOSED), errors)
}

/// Validates `spec.variables`, each of which may use those before it. Returns the environment with
/// all of them.
///
/// A name is a CEL identifier, which is not a reserved word. The type of a variable is that of its
/// expression. It is `dyn` if the expression does not compile, so that one mistake is reported
/// once, and beyond `TYPE_DEPTH_MAX`.
fn composed(spec: &Value, mut environment: Environment, errors: &mut Errors) -> Environment {
    for (index, variable) in entries(&spec["variables"]) {
        let path = format!("spec.variables[{index}]");
        let (name, expression) = (text(&variable["name"]), text(&variable["expression"]));
        let is_identifier = !kctl_cel::is_reserved(name)
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if name.is_empty() {
            errors.required(&format!("{path}.name"), "name is not specified");
        } else if !is_identifier {
            errors.invalid(&format!("{path}.name"), &name.into(), "must be a valid CEL identifier");
        }
        if expression.trim().is_empty() {
            errors.required(&format!("{path}.expression"), "expression is not specified");
        } else {
            compiles(expression, &format!("{path}.expression"), &environment, &[], errors);
        }
        let is = type_of(expression, &environment).ok().flatten();
        let is = is.filter(|is| is.depth() <= TYPE_DEPTH_MAX);
        environment.add_field(COMPOSED, name, is.unwrap_or(Type::Dyn));
    }
    environment
}

/// Validates `spec.paramKind`: an `apiVersion` of the form `version` or `group/version`, and a
/// kind.
///
/// The kind need not exist. It may have upper-case letters and is otherwise a DNS label that begins
/// with a letter.
fn param_kind(kind: &Value, errors: &mut Errors) {
    let version = text(&kind["apiVersion"]);
    let path = "spec.paramKind.apiVersion";
    if version.is_empty() {
        errors.required(path, "");
    } else if version.split('/').count() > 2 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.invalid(path, &version.into(), &detail);
    } else {
        let (group, number) = version.split_once('/').unwrap_or(("", version));
        let of_group = if group.is_empty() { None } else { NameRule::Subdomain.check(group) };
        for (value, messages) in [(group, of_group), (number, NameRule::Label1035.check(number))] {
            if let Some(message) = messages {
                errors.invalid(path, &value.into(), message);
            }
        }
    }
    let name = text(&kind["kind"]);
    if name.is_empty() {
        errors.required("spec.paramKind.kind", "");
        return;
    }
    if let Some(message) = NameRule::Label1035.check(&name.to_lowercase()) {
        let detail = format!("may have mixed case, but should otherwise match: {message}");
        errors.invalid("spec.paramKind.kind", &name.into(), &detail);
    }
}

/// Validates the resources that a policy or binding matches (`validateMatchResources`).
///
/// `path` is the field path of the `MatchResources`: `spec.matchConstraints` or `spec.matchResources`.
/// Names in `resourceNames` are unique within a rule (`FieldValueDuplicate`) and fit into a path.
/// `*` is not a wildcard there.
fn constraints(constraints: &Value, path: &str, errors: &mut Errors) {
    selectors(constraints, path, errors);
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in entries(&constraints[field]) {
            let path = format!("{path}.{field}[{index}]");
            let mut names = Vec::new();
            for (index, name) in entries(&rule["resourceNames"]) {
                if names.contains(&name) {
                    errors.duplicate(&format!("{path}.resourceNames[{index}]"));
                }
                names.push(name);
                if let Some(message) = NameRule::PathSegment.check(text(name)) {
                    errors.invalid(&format!("{path}.resourceNames[{index}]"), name, message);
                }
            }
            rule_with_operations(rule, &path, errors);
        }
    }
}

/// Validates one of `spec.validations`.
///
/// - `expression` is required and returns a `bool`.
/// - `messageExpression` may be absent, and returns a `string`. Blank strings are rejected.
/// - `message` has one line. It is the message of the response if there is no `messageExpression`,
///   or if that fails.
/// - `reason` is one of `REASONS`.
fn validation(validation: &Value, path: &str, environment: &Environment, errors: &mut Errors) {
    let given = |field: &str| (text(&validation[field]), format!("{path}.{field}"));
    let (expression, expression_path) = given("expression");
    if expression.trim().is_empty() {
        errors.required(&expression_path, "expression is not specified");
    } else {
        compiles(expression, &expression_path, environment, &["bool"], errors);
    }
    let (computed, computed_path) = given("messageExpression");
    if !computed.trim().is_empty() {
        // Message expressions cannot use the authorizer.
        let environment = environment.clone().without("authorizer").without("authorizer.requestResource");
        compiles(computed, &computed_path, &environment, &["string"], errors);
    } else if !computed.is_empty() {
        errors.invalid(&computed_path, &computed.into(), "must be non-empty if specified");
    }
    let (message, message_path) = given("message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&message_path, &message.into(), "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(&message_path, &message.into(), "must not contain line breaks");
    }
    errors.one_of(&format!("{path}.reason"), &validation["reason"], &REASONS);
}

/// Validates `spec.auditAnnotations`, which add values to the audit log.
///
/// The key in the log is `<policy>/<key>`, so the two together must be a qualified name, and a
/// policy without a name cannot have annotations. `valueExpression` returns a string, or null to
/// leave the annotation out of one event.
fn audit_annotations(spec: &Value, policy: &str, environment: &Environment, errors: &mut Errors) {
    if entries(&spec["auditAnnotations"]).count() > ANNOTATIONS_LEN_MAX {
        let detail = format!("must have at most {ANNOTATIONS_LEN_MAX} items");
        errors.invalid_as_such("spec.auditAnnotations", &detail);
    }
    let mut keys = Vec::new();
    for (index, annotation) in entries(&spec["auditAnnotations"]) {
        let path = format!("spec.auditAnnotations[{index}]");
        let (key, value) = (text(&annotation["key"]), text(&annotation["valueExpression"]));
        let whole = format!("{policy}/{key}");
        if policy.is_empty() {
            errors.invalid(&format!("{path}.key"), &key.into(), "requires metadata.name be non-empty");
        } else if let Some(message) = check_qualified_name(&whole) {
            errors.invalid(&format!("{path}.key"), &whole.clone().into(), message);
        }
        if value.trim().is_empty() {
            errors.required(&format!("{path}.valueExpression"), "valueExpression is not specified");
        } else if value.trim().len() > VALUE_LEN_MAX {
            let detail = format!("must not exceed {VALUE_LEN_MAX} bytes in length");
            errors.required(&format!("{path}.valueExpression"), &detail);
        } else {
            let path = format!("{path}.valueExpression");
            compiles(value.trim(), &path, environment, &["string", "null"], errors);
        }
        if keys.contains(&key) {
            errors.duplicate(&format!("{path}.key"));
        }
        keys.push(key);
    }
}

/// Validates a `ValidatingAdmissionPolicyBinding`: the fields of every binding, and
/// `spec.validationActions`.
///
/// An action may be listed once (`FieldValueDuplicate`). Unknown actions and an empty list are
/// reported by the rules that the schema declares (`data/validation.json`).
pub(crate) fn validating_binding(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    binding(spec, errors);
    let (actions, path) = (&spec["validationActions"], "spec.validationActions");
    let all: Vec<&str> = entries(actions).map(|(_, action)| text(action)).collect();
    for (index, action) in all.iter().enumerate() {
        if all[..index].contains(action) {
            errors.duplicate(&format!("{path}[{index}]"));
        }
    }
    if all.contains(&"Deny") && all.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.invalid(path, actions, detail);
    }
}

/// Validates the fields that bindings of both kinds have: name of the policy, parameters and
/// matched resources.
///
/// An empty `policyName` is not reported here: each kind reports it in its own way.
fn binding(spec: &Value, errors: &mut Errors) {
    if !text(&spec["policyName"]).is_empty() {
        errors.name("spec.policyName", &spec["policyName"], NameRule::Subdomain);
    }
    let reference = &spec["paramRef"];
    if reference.is_object() {
        param_reference(reference, errors);
    }
    if spec["matchResources"].is_object() {
        constraints(&spec["matchResources"], "spec.matchResources", errors);
    }
}

/// Validates `spec.paramRef`, which chooses the parameters by name or by label selector, not by
/// both.
///
/// With both, each of the two fields gets a `FieldValueForbidden`. `parameterNotFoundAction` is
/// required, because neither default would be safe: `Allow` skips the policy without parameters,
/// `Deny` rejects the request.
fn param_reference(reference: &Value, errors: &mut Errors) {
    let path = "spec.paramRef";
    let (name, name_path, selector_path) =
        (text(&reference["name"]), format!("{path}.name"), format!("{path}.selector"));
    let selects = reference["selector"].is_object();
    if !name.is_empty() {
        if let Some(message) = NameRule::PathSegment.check(name) {
            errors.invalid(&name_path, &name.into(), message);
        }
        if selects {
            errors.forbidden(&name_path, "name and selector are mutually exclusive");
        }
    }
    if selects {
        selector::selector(&reference["selector"], &selector_path, errors);
        if !name.is_empty() {
            errors.forbidden(&selector_path, "name and selector are mutually exclusive");
        }
    } else if name.is_empty() {
        errors.required(path, "one of name or selector must be specified");
    }
    match text(&reference["parameterNotFoundAction"]) {
        "" => errors.required(&format!("{path}.parameterNotFoundAction"), ""),
        "Allow" | "Deny" => {}
        other => errors.unsupported(&format!("{path}.parameterNotFoundAction"), &other.into(), &["Deny", "Allow"]),
    }
}

/// Validates a `MutatingAdmissionPolicy`.
///
/// | `patchType` | field with the expression | result of the expression |
/// |---|---|---|
/// | `ApplyConfiguration` | `applyConfiguration` | `Object` |
/// | `JSONPatch` | `jsonPatch` | `list(JSONPatch)` |
///
/// The field of the other patch type must be absent. A mutation with an unknown `patchType` is
/// skipped: the schema's own rules report it. `reinvocationPolicy` is required and has no default.
pub(crate) fn mutating_policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let environment = common(spec, without_deletes, errors).making_objects();
    if spec["mutations"].as_array().is_none_or(Vec::is_empty) {
        errors.required("spec.mutations", "mutations must contain at least one item");
    }
    for (index, mutation) in entries(&spec["mutations"]) {
        let path = format!("spec.mutations[{index}]");
        let kind = text(&mutation["patchType"]);
        let (field, other, wanted) = match kind {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", "Object"),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", "list(JSONPatch)"),
            _ => continue,
        };
        if mutation[field].is_object() {
            let expression = text(&mutation[field]["expression"]).trim();
            expression_rule(expression, &format!("{path}.{field}.expression"), &environment, &[wanted], errors);
        } else {
            errors.required(&format!("{path}.{field}"), &format!("must be specified when patchType is {kind}"));
        }
        if mutation[other].is_object() {
            let detail = format!("must not be specified when patchType is {kind}");
            errors.invalid_as_such(&format!("{path}.{other}"), &detail);
        }
    }
    if text(&spec["reinvocationPolicy"]).is_empty() {
        errors.required("spec.reinvocationPolicy", "");
    }
}

/// Validates the status of a `ValidatingAdmissionPolicy`: the results of type checking and the
/// conditions.
///
/// Each of `typeChecking.expressionWarnings` needs a warning and the path of the expression that it
/// is about.
pub(crate) fn status(object: &Value, errors: &mut Errors) {
    let status = &object["status"];
    for (index, warning) in entries(&status["typeChecking"]["expressionWarnings"]) {
        let path = format!("status.typeChecking.expressionWarnings[{index}]");
        if text(&warning["warning"]).is_empty() {
            errors.required(&format!("{path}.warning"), "");
        }
        if text(&warning["fieldRef"]).is_empty() {
            errors.required(&format!("{path}.fieldRef"), "");
        }
    }
    crate::validation::status::conditions(&status["conditions"], "status.conditions", errors);
}

/// Validates a `MutatingAdmissionPolicyBinding`, whose `policyName` is required
/// (`FieldValueRequired`).
pub(crate) fn mutating_binding(object: &Value, errors: &mut Errors) {
    if text(&object["spec"]["policyName"]).is_empty() {
        errors.required("spec.policyName", "");
    }
    binding(&object["spec"], errors);
    without_deletes(&object["spec"]["matchResources"], "spec.matchResources", errors);
}

/// Reports rules for `DELETE` as `FieldValueNotSupported`: mutating policies do not run for
/// deletions.
///
/// The path has no index of the rule, as in kube-apiserver. `excludeResourceRules` may name
/// `DELETE`.
fn without_deletes(constraints: &Value, path: &str, errors: &mut Errors) {
    for (_, rule) in entries(&constraints["resourceRules"]) {
        for (_, operation) in entries(&rule["operations"]) {
            errors.one_of(
                &format!("{path}.resourceRules.operations"),
                operation,
                &["*", "CONNECT", "CREATE", "UPDATE"],
            );
        }
    }
}
