//! Compiles the CEL rules of a schema as API servers do: parsing, types, and the estimated cost.
//!
//! Rules are not evaluated here.
//!
//! | Step | Example of a problem |
//! |---|---|
//! | parse | `self >` is not an expression |
//! | types | `self.nam`: the type has no field `nam`; `self + 1` is not a bool |
//! | `oldSelf` | items of an atomic list have no old state |
//! | cost | a rule over a list without `max_items` may take too long |
//!
//! The cost is an estimate from the schema: the worst value that the schema allows, times the number of values at this
//! place. An API server rejects a rule above [`RULE_MAX`] and a CRD whose rules are above [`TOTAL_MAX`] together. The
//! remedy is always a bound on a list, map or string.

mod explain;

use kctl_cel::{Environment, OldSelf, RULE_MAX, SchemaOf, TOTAL_MAX, Type, estimate, max_in_request};
use kube_cel::cel::common::ast::IdedExpr;
use serde_json::Value;

use super::Problem;

/// The remedy for rules that cost too much.
const COST_REMEDY: &str = "say how many there can be: `max_items`, `max_properties` and `max_length` on the fields that it reads and on the lists above";

/// A problem of a rule, and the remedy.
type Finding = (String, String);

/// The context of a rule in the schema.
#[derive(Clone, Copy)]
struct RuleScope {
    /// `true` below a list whose items cannot be matched with their old state.
    forbids_old: bool,
    of: SchemaOf,
    /// Number of values that an object can have at this place; `None` if only the size of a request bounds it.
    cardinality: Option<u64>,
}

/// Checks the rules of a schema and of all below it.
///
/// The total cost is reported only if no rule has a problem by itself: the rule to change is known then.
pub(super) fn check(schema: &Value, problems: &mut Vec<Problem>) {
    let mut total = 0;
    let root = RuleScope { forbids_old: false, of: SchemaOf::Object, cardinality: Some(1) };
    check_node(schema, "", root, &mut total, problems);
    if total > TOTAL_MAX && problems.is_empty() {
        let what = format!("all rules together cost {:.1} times what they may", factor(total, TOTAL_MAX));
        problems.push(Problem::new("the object", what, COST_REMEDY));
    }
}

/// Checks one schema, and all below it. Adds the cost of its rules to `total`.
fn check_node(schema: &Value, path: &str, scope: RuleScope, total: &mut u64, problems: &mut Vec<Problem>) {
    let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !rules.is_empty() {
        for rule in rules {
            let (cost, found) = match Environment::for_rule(schema, scope.of, OldSelf::from_rule(rule)) {
                Some(environment) => check_rule(rule, &environment, schema, scope),
                None => (0, vec![("a rule about a value whose type is unknown".into(), "leave it out".into())]),
            };
            *total = total.saturating_add(cost);
            let display_path = if path.is_empty() { "the object" } else { path };
            let source = rule["rule"].as_str().unwrap_or_default();
            problems.extend(
                found
                    .into_iter()
                    .map(|(what, help)| Problem::new(display_path, format!("the rule `{source}`: {what}"), help)),
            );
        }
    }
    let within = |forbids: bool, times: Option<u64>| RuleScope {
        forbids_old: scope.forbids_old || forbids,
        of: SchemaOf::Value,
        cardinality: scope.cardinality.zip(times).map(|(above, times)| above.saturating_mul(times)),
    };
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        check_node(field, &below, within(false, Some(1)), total, problems);
    }
    if schema["items"].is_object() {
        let is_map = schema["x-kubernetes-list-type"] == "map";
        check_node(
            &schema["items"],
            &format!("{path}[]"),
            within(!is_map, schema["maxItems"].as_u64()),
            total,
            problems,
        );
    }
    if schema["additionalProperties"].is_object() {
        let times = schema["maxProperties"].as_u64();
        check_node(&schema["additionalProperties"], &format!("{path}{{}}"), within(false, times), total, problems);
    }
}

/// Checks one rule. Returns its cost, 0 if it can't be estimated, and what is wrong with the rule.
fn check_rule(rule: &Value, environment: &Environment, schema: &Value, scope: RuleScope) -> (u64, Vec<Finding>) {
    let source = rule["rule"].as_str().unwrap_or_default();
    let expression = match compile_expression(source, environment, &Type::Bool, "a rule") {
        Ok(expression) => expression,
        Err(found) => return (0, found),
    };
    let mut found: Vec<Finding> = Vec::new();
    let uses_old = kctl_cel::names(source, "oldSelf");
    if uses_old && scope.forbids_old {
        let what = "`oldSelf` is used where old and new items of a list cannot be distinguished";
        found.push((what.into(), "write `#[kctl(list = map(\"…\"))]` on the list, or the rule above the list".into()));
    }
    if !uses_old && !rule["optionalOldSelf"].is_null() {
        found.push(("`optional_old_self`, but `oldSelf` is not used".into(), "leave it out".into()));
    }
    let mut costs = vec![estimate(&expression, schema, scope.of)];
    if let Some(source) = rule["messageExpression"].as_str().filter(|text| !text.trim().is_empty()) {
        match compile_expression(source, environment, &Type::Text, "a message") {
            Ok(expression) => costs.push(estimate(&expression, schema, scope.of)),
            Err(wrong) => found.extend(
                wrong.into_iter().map(|(what, help)| (format!("its message expression `{source}`: {what}"), help)),
            ),
        }
    }
    if !found.is_empty() {
        return (0, found);
    }
    let cardinality = scope.cardinality.unwrap_or_else(|| max_in_request(schema));
    let mut total: u64 = 0;
    for (index, cost) in costs.into_iter().enumerate() {
        // A message expression is evaluated once, for the value that failed.
        let times = if index > 0 { 1 } else { cardinality };
        let all = cost.saturating_mul(times);
        if all > RULE_MAX {
            let what = format!("it costs {:.1} times what a rule may", factor(all, RULE_MAX));
            found.push((what, COST_REMEDY.into()));
        }
        total = total.saturating_add(all);
    }
    (total, found)
}

/// Returns how many times a cost exceeds its limit.
#[expect(clippy::cast_precision_loss, reason = "it is for people to read")]
fn factor(cost: u64, limit: u64) -> f64 {
    cost as f64 / limit as f64
}

fn parse(source: &str) -> Result<IdedExpr, Finding> {
    kctl_cel::read(source).map_err(|errors| {
        let text = errors.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("ERROR: <input>:").trim();
        (format!("it is not valid CEL: {first}"), "write for example `self.min <= self.max`".into())
    })
}

/// Compiles an expression that has to be of the type `expected`.
///
/// # Errors
/// All that is wrong with the expression, at least one finding.
fn compile_expression(
    source: &str,
    environment: &Environment,
    expected: &Type,
    what: &str,
) -> Result<IdedExpr, Vec<Finding>> {
    let expression = parse(source).map_err(|finding| vec![finding])?;
    match kctl_cel::type_of(source, environment) {
        Err(issues) => Err(issues.iter().map(|issue| explain::explain(&issue.kind, environment)).collect()),
        Ok(Some(other)) if other != *expected => {
            let help = match expected {
                Type::Text => "write a string: `string(…)` converts numbers",
                _ => "compare something",
            };
            let found = explain::name(&other);
            Err(vec![(format!("{what} is of type {expected}, and this is of type {found}"), help.into())])
        }
        Ok(_) => match kctl_cel::instantiate(source) {
            Ok(()) => Ok(expression),
            Err(why) => Err(vec![(why, "write a value that can be converted".into())]),
        },
    }
}
