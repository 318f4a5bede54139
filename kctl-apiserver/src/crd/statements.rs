//! What the CEL rules of a schema say besides what they compute: texts, reasons, paths, where an old state is known.
//! Reads the schema, hands on what the real server refuses.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver.

use kctl_cel::{Environment, Type};
use serde_json::{Value, json};

use super::{
    estimate::{Count, Expression, Total},
    plain,
};
use crate::cause::Cause;

const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

pub(super) fn check(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let mut total = Total::default();
    node(schema, path, Place { lost: None, is_whole: true, count: Count::of_root() }, &mut total, errors);
    errors.extend(total.causes(path));
}

/// Where rules stand.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The list whose items have no past of their own.
    lost: Option<&'a str>,
    /// It is a whole object.
    is_whole: bool,
    count: Count,
}

fn node(schema: &Value, path: &str, place: Place<'_>, total: &mut Total, errors: &mut Vec<Cause>) {
    let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = format!("{path}.x-kubernetes-validations");
    if !rules.is_empty() && Environment::of_rule(schema, place.is_whole, false).is_none() {
        let why = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                   convert structural schema to CEL declarations";
        errors.push(Cause::new("InternalError", &at, format!("Internal error: {why}")));
        return;
    }
    for (index, rule) in rules.iter().enumerate() {
        one(rule, schema, &format!("{at}[{index}]"), place, total, errors);
    }
    let below = |lost| Place { lost, is_whole: false, count: place.count.below(schema) };
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        node(field, &format!("{path}.properties[{name}]"), below(place.lost), total, errors);
    }
    if schema["items"].is_object() {
        let keeps = schema["x-kubernetes-list-type"] == "map";
        let lost = place.lost.or((!keeps).then_some(path));
        node(&schema["items"], &format!("{path}.items"), below(lost), total, errors);
    }
    if schema["additionalProperties"].is_object() {
        let at = format!("{path}.additionalProperties");
        node(&schema["additionalProperties"], &at, below(place.lost), total, errors);
    }
}

/// What the rules of a schema say besides what they compute.
pub(super) fn texts(schema: &Value, path: &str, errors: &mut Vec<Cause>) {
    let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        let at = format!("{path}.x-kubernetes-validations[{index}]");
        let text = |field: &str| rule[field].as_str().unwrap_or_default();
        if text("rule").trim().is_empty() {
            errors.push(Cause::required(&format!("{at}.rule"), "rule is not specified"));
        } else {
            message(rule, &at, errors);
        }
        if !text("messageExpression").is_empty() && text("messageExpression").trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(Cause::required(&format!("{at}.messageExpression"), detail));
        }
        if rule["reason"].is_string() && !REASONS.contains(&text("reason")) {
            let known = REASONS.map(str::to_owned);
            errors.push(Cause::not_supported(&format!("{at}.reason"), &rule["reason"], &known));
        }
        let (field, path) = (format!("{at}.fieldPath"), text("fieldPath"));
        if !path.is_empty() && path.trim().is_empty() {
            errors.push(Cause::invalid(&field, &path.into(), "must be non-empty if specified"));
        }
        if path.contains(['\n', '\r']) {
            errors.push(Cause::invalid(&field, &path.into(), "must not contain line breaks"));
        }
        if !path.is_empty() && !leads_to_field(schema, path) {
            errors.push(Cause::invalid(&field, &path.into(), "must be a valid path"));
        }
    }
}

fn one(rule: &Value, schema: &Value, at: &str, place: Place<'_>, total: &mut Total, errors: &mut Vec<Cause>) {
    let text = |field: &str| rule[field].as_str().unwrap_or_default();
    let expression = text("rule");
    let invalid = |field: &str, value: &Value, why: &str| Cause::invalid(&format!("{at}.{field}"), value, why);
    let compiles = [Expression::Rule, Expression::Message]
        .into_iter()
        // A message belongs to a rule.
        .take_while(|which| compiled(which, rule, schema, at, place, total, errors))
        .count();
    let uses_old = compiles > 0 && kctl_cel::names(expression, "oldSelf");
    if uses_old && let Some(lost) = place.lost {
        let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}");
        errors.push(invalid("rule", &rule["rule"], &why));
    }
    if rule["optionalOldSelf"].is_boolean() && !uses_old {
        let why = "may not be set if oldSelf is not used in rule";
        errors.push(invalid("optionalOldSelf", &rule["optionalOldSelf"], why));
    }
}

/// Whether an expression can be read and has its type; adds what it costs, and what is wrong.
fn compiled(
    which: &Expression,
    rule: &Value,
    schema: &Value,
    at: &str,
    place: Place<'_>,
    total: &mut Total,
    errors: &mut Vec<Cause>,
) -> bool {
    let (field, wanted, is, other) = match which {
        Expression::Rule => ("rule", Type::Bool, ["", "program "], "cel expression must evaluate to a bool"),
        Expression::Message => {
            let is = ["messageExpression "; 2];
            ("messageExpression", Type::Text, is, "messageExpression must evaluate to a string")
        }
    };
    let expression = rule[field].as_str().unwrap_or_default();
    if expression.trim().is_empty() {
        return true;
    }
    let is_optional = rule["optionalOldSelf"] == true;
    let environment = Environment::of_rule(schema, place.is_whole, is_optional).unwrap_or_default();
    let at = format!("{at}.{field}");
    let why = match crate::admission::type_of(expression, &environment) {
        Err(why) => Err(format!("{}compilation failed: {why}", is[0])),
        Ok(Some(found)) if found != wanted => Err(other.to_owned()),
        Ok(_) => kctl_cel::instantiate(expression).map_err(|why| format!("{}instantiation failed: {why}", is[1])),
    };
    if let Err(why) = why {
        let message = format!("Invalid value: {}: {why}", shown(rule));
        errors.push(Cause::new("FieldValueInvalid", &at, message));
        return false;
    }
    let Ok(tree) = crate::admission::tree_with_optionals(expression) else { return true };
    let too_dear = total.add(which, &tree, (schema, place.is_whole, place.count), at.clone());
    let unknown = plain::rewritten(expression, schema, place.is_whole, is_optional).and_then(Result::err);
    if too_dear.is_none()
        && let Some(why) = unknown
    {
        let why = format!("this server evaluates everything but {why}: write it in another way");
        errors.push(Cause::invalid(&at, &rule[field], &why));
    }
    errors.extend(too_dear);
    true
}

fn message(rule: &Value, at: &str, errors: &mut Vec<Cause>) {
    let field = format!("{at}.message");
    let (text, expression) = (rule["message"].as_str().unwrap_or_default(), rule["rule"].as_str().unwrap_or_default());
    if !text.is_empty() && text.trim().is_empty() {
        errors.push(Cause::invalid(&field, &rule["message"], "must be non-empty if specified"));
    } else if text.trim().contains(['\n', '\r']) {
        errors.push(Cause::invalid(&field, &rule["message"], "must not contain line breaks"));
    } else if text.is_empty() && expression.trim().contains(['\n', '\r']) {
        errors.push(Cause::required(&field, "message must be specified if rule contains line breaks"));
    }
}

/// Whether a path, as `.a.b` or `['a']`, leads to a field of a schema.
fn leads_to_field(schema: &Value, path: &str) -> bool {
    let mut rest = path.trim();
    let mut schema = schema;
    while !rest.is_empty() {
        let step = if let Some(after) = rest.strip_prefix("['") {
            let Some((name, after)) = after.split_once("']") else { return false };
            rest = after;
            name
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, after) = after.split_at(end);
            rest = after;
            name
        } else {
            return false;
        };
        let below = schema["properties"].get(step).unwrap_or(&schema["additionalProperties"]);
        if !below.is_object() {
            return false;
        }
        schema = below;
    }
    true
}

/// A rule as upstream prints it: its internal type.
fn shown(rule: &Value) -> String {
    let text = |field: &str| json!(rule[field].as_str().unwrap_or_default()).to_string();
    let html = |text: String| text.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        html(text("rule")),
        html(text("message")),
        html(text("messageExpression")),
        rule["reason"],
        text("fieldPath"),
        rule["optionalOldSelf"]
    )
}
