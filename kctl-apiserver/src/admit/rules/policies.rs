//! Rules of admission policies and their bindings (`pkg/apis/admissionregistration/validation`).

use serde_json::Value;

use super::{
    Errors,
    admission::{compiles, expression_rule, match_conditions, rule_with_operations, selectors},
    entries, text,
};
use crate::admit::names::{NameRule, check_qualified_name};

/// What expressions of policies may name besides `params` and `variables`.
const VARIABLES: [&str; 5] = ["authorizer", "namespaceObject", "object", "oldObject", "request"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(super) fn validating_policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let variables = common(spec, errors);
    let is_empty = |field: &str| spec[field].as_array().is_none_or(Vec::is_empty);
    if is_empty("validations") && is_empty("auditAnnotations") {
        for field in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.required(&format!("spec.{field}"), detail);
        }
        return;
    }
    for (index, value) in entries(&spec["validations"]) {
        validation(value, &format!("spec.validations[{index}]"), &variables, errors);
    }
    audit_annotations(spec, text(&object["metadata"]["name"]), &variables, errors);
}

/// What both kinds of policies have; hands back what their expressions may name.
fn common(spec: &Value, errors: &mut Errors) -> Vec<&'static str> {
    let mut variables = VARIABLES.to_vec();
    errors.one_of("spec.failurePolicy", &spec["failurePolicy"], &["Fail", "Ignore"]);
    if !spec["paramKind"].is_null() {
        param_kind(&spec["paramKind"], errors);
        variables.push("params");
    }
    if spec["matchConstraints"].is_null() {
        errors.required("spec.matchConstraints", "");
    } else {
        constraints(&spec["matchConstraints"], "spec.matchConstraints", errors);
        if spec["matchConstraints"]["resourceRules"].as_array().is_none_or(Vec::is_empty) {
            errors.required("spec.matchConstraints.resourceRules", "");
        }
    }
    match_conditions(&spec["matchConditions"], "spec.matchConditions", &variables, errors);
    variables.push("variables");
    composed(spec, &variables, errors);
    variables
}

/// Variables, each of which may name those before it.
fn composed(spec: &Value, variables: &[&str], errors: &mut Errors) {
    let mut known: Vec<&str> = Vec::new();
    for (index, variable) in entries(&spec["variables"]) {
        let at = format!("spec.variables[{index}]");
        let (name, expression) = (text(&variable["name"]), text(&variable["expression"]));
        let is_identifier = !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if name.is_empty() {
            errors.required(&format!("{at}.name"), "name is not specified");
        } else if !is_identifier {
            errors.invalid(&format!("{at}.name"), &name.into(), "must be a valid CEL identifier");
        }
        if expression.trim().is_empty() {
            errors.required(&format!("{at}.expression"), "expression is not specified");
        } else if let Some(why) = undefined(expression, &known) {
            errors.invalid(&format!("{at}.expression"), &expression.into(), &why);
        } else {
            compiles(expression, &format!("{at}.expression"), variables, &[], errors);
        }
        known.push(name);
    }
}

/// A variable that is not there yet.
fn undefined(expression: &str, known: &[&str]) -> Option<String> {
    let at = expression.find("variables.")?;
    let rest = &expression[at + "variables.".len()..];
    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let (name, dot) = (&rest[..end], at + "variables".len());
    let text = format!(
        "compilation failed: ERROR: <input>:1:{}: undefined field '{name}'\n | {expression}\n | {}^",
        dot + 1,
        ".".repeat(dot)
    );
    (!known.contains(&name)).then_some(text)
}

fn param_kind(kind: &Value, errors: &mut Errors) {
    let version = text(&kind["apiVersion"]);
    if version.is_empty() {
        errors.required("spec.paramKind.apiVersion", "");
    } else if version.split('/').count() > 2 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.invalid("spec.paramKind.apiVersion", &version.into(), &detail);
    }
    if text(&kind["kind"]).is_empty() {
        errors.required("spec.paramKind.kind", "");
    }
}

/// What a policy or a binding is about.
fn constraints(constraints: &Value, at: &str, errors: &mut Errors) {
    errors.one_of(&format!("{at}.matchPolicy"), &constraints["matchPolicy"], &["Equivalent", "Exact"]);
    selectors(constraints, at, errors);
    for field in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in entries(&constraints[field]) {
            let at = format!("{at}.{field}[{index}]");
            let mut names = Vec::new();
            for (index, name) in entries(&rule["resourceNames"]) {
                if names.contains(&name) {
                    errors.duplicate(&format!("{at}.resourceNames[{index}]"), &name.to_string());
                }
                names.push(name);
            }
            rule_with_operations(rule, &at, errors);
        }
    }
}

fn validation(validation: &Value, at: &str, variables: &[&str], errors: &mut Errors) {
    let given = |field: &str| (text(&validation[field]), format!("{at}.{field}"));
    let (expression, expression_at) = given("expression");
    if expression.trim().is_empty() {
        errors.required(&expression_at, "expression is not specified");
    } else {
        compiles(expression, &expression_at, variables, &["bool"], errors);
    }
    let (computed, computed_at) = given("messageExpression");
    if !computed.trim().is_empty() {
        // Messages are not about what the user may do.
        let variables: Vec<&str> = variables.iter().copied().filter(|name| *name != "authorizer").collect();
        compiles(computed, &computed_at, &variables, &["string"], errors);
    } else if !computed.is_empty() {
        errors.invalid(&computed_at, &computed.into(), "must be non-empty if specified");
    }
    let (message, message_at) = given("message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.invalid(&message_at, &message.into(), "must be non-empty if specified");
    } else if message.trim().contains(['\n', '\r']) {
        errors.invalid(&message_at, &message.into(), "must not contain line breaks");
    } else if message.is_empty() && expression.trim().contains(['\n', '\r']) {
        errors.required(&message_at, "message must be specified if expression contains line breaks");
    }
    errors.one_of(&format!("{at}.reason"), &validation["reason"], &REASONS);
}

fn audit_annotations(spec: &Value, policy: &str, variables: &[&str], errors: &mut Errors) {
    let mut keys = Vec::new();
    for (index, annotation) in entries(&spec["auditAnnotations"]) {
        let at = format!("spec.auditAnnotations[{index}]");
        let (key, value) = (text(&annotation["key"]), text(&annotation["valueExpression"]));
        let whole = format!("{policy}/{key}");
        for message in check_qualified_name(&whole) {
            errors.invalid(&format!("{at}.key"), &whole.clone().into(), &message);
        }
        if value.trim().is_empty() {
            errors.required(&format!("{at}.valueExpression"), "valueExpression is not specified");
        } else if let Some(why) = crate::admission::problem(value, variables, &["string", "null_type"]) {
            let why = why.replace("string or null_type", "one of [string null_type]");
            errors.invalid(&format!("{at}.valueExpression"), &value.into(), &why);
        }
        if keys.contains(&key) {
            errors.duplicate(&format!("{at}.key"), &Value::from(key).to_string());
        }
        keys.push(key);
    }
}

pub(super) fn validating_binding(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    binding(spec, errors);
    let (actions, at) = (&spec["validationActions"], "spec.validationActions");
    let all: Vec<&str> = entries(actions).map(|(_, action)| text(action)).collect();
    if all.is_empty() {
        errors.required(at, "at least one validation action is required");
    }
    for (index, action) in all.iter().enumerate() {
        let shown = Value::from(*action);
        errors.one_of(&format!("{at}[{index}]"), &shown, &["Audit", "Deny", "Warn"]);
        if all[..index].contains(action) {
            errors.duplicate(&format!("{at}[{index}]"), &shown.to_string());
        }
    }
    if all.contains(&"Deny") && all.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.invalid(at, actions, detail);
    }
}

fn binding(spec: &Value, errors: &mut Errors) {
    errors.required_name("spec.policyName", &spec["policyName"], NameRule::Subdomain);
    let reference = &spec["paramRef"];
    if reference.is_object() {
        param_reference(reference, errors);
    }
    if spec["matchResources"].is_object() {
        constraints(&spec["matchResources"], "spec.matchResources", errors);
    }
}

fn param_reference(reference: &Value, errors: &mut Errors) {
    let at = "spec.paramRef";
    let (named, selects) = (!text(&reference["name"]).is_empty(), reference["selector"].is_object());
    match (named, selects) {
        (true, true) => {
            errors.forbidden(&format!("{at}.name"), "name and selector are mutually exclusive");
            errors.forbidden(&format!("{at}.selector"), "name and selector are mutually exclusive");
        }
        (false, false) => errors.required(at, "one of name or selector must be specified"),
        _ => {}
    }
    match text(&reference["parameterNotFoundAction"]) {
        "" => errors.required(&format!("{at}.parameterNotFoundAction"), ""),
        "Allow" | "Deny" => {}
        other => errors.unsupported(
            &format!("{at}.parameterNotFoundAction"),
            &Value::from(other).to_string(),
            &["Deny", "Allow"],
        ),
    }
}

pub(super) fn mutating_policy(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let mut variables = common(spec, errors);
    variables.extend(["JSONPatch", "Object", "jsonpatch"]);
    for (_, rule) in entries(&spec["matchConstraints"]["resourceRules"]) {
        for (_, operation) in entries(&rule["operations"]) {
            let at = "spec.matchConstraints.resourceRules.operations";
            errors.one_of(at, operation, &["*", "CONNECT", "CREATE", "UPDATE"]);
        }
    }
    if spec["mutations"].as_array().is_none_or(Vec::is_empty) {
        errors.required("spec.mutations", "mutations must contain at least one item");
    }
    for (index, mutation) in entries(&spec["mutations"]) {
        let at = format!("spec.mutations[{index}]");
        let kind = text(&mutation["patchType"]);
        let (field, other, wanted) = match kind {
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", "Object"),
            "JSONPatch" => ("jsonPatch", "applyConfiguration", "list(JSONPatch)"),
            other => {
                let supported = ["ApplyConfiguration", "JSONPatch"];
                errors.unsupported(&format!("{at}.patchType"), &Value::from(other).to_string(), &supported);
                continue;
            }
        };
        if mutation[field].is_object() {
            let expression = text(&mutation[field]["expression"]);
            expression_rule(expression, &format!("{at}.{field}.expression"), &variables, &[wanted], errors);
        } else {
            errors.required(&format!("{at}.{field}"), &format!("must be specified when patchType is {kind}"));
        }
        if mutation[other].is_object() {
            let detail = format!("must not be specified when patchType is {kind}");
            errors.invalid(&format!("{at}.{other}"), &format!("{{{other}}}").into(), &detail);
        }
    }
    errors.one_of("spec.reinvocationPolicy", &spec["reinvocationPolicy"], &["IfNeeded", "Never"]);
}

pub(super) fn mutating_binding(object: &Value, errors: &mut Errors) {
    binding(&object["spec"], errors);
}
