//! Validates the CEL rules of a schema: messages, reasons, field paths, types, cost, and where `oldSelf` may be used.
//!
//! Upstream: `ValidateCustomResourceDefinitionOpenAPISchema` of apiextensions-apiserver.
//!
//! Two passes. `keywords` validates the fields that are not expressions, for every schema; `check`
//! compiles expressions, if the schema is structural and has no errors of its keywords. `rules`
//! evaluates the same expressions later.

use std::{collections::BTreeSet, sync::LazyLock};

use kctl_cel::{Environment, OldSelf, SchemaOf, Type};
use serde_json::Value;

use super::{
    estimate::{Count, Expression, Total, Values},
    field_path,
};
use crate::{
    field::Field,
    field_errors::{Errors, FieldError},
    schema::Schema,
};

/// The type of rules in the `OpenAPI` document.
const RULE_TYPE: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule";

/// The reasons that a rule may name: the enum of the `OpenAPI` document (`data/types.json`).
pub(super) static REASONS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let reason = Schema::for_type(RULE_TYPE).and_then(|rule| rule.property("reason"));
    let reasons = reason.expect("the file is generated and has the type").enum_values();
    assert!(!reasons.is_empty(), "without the enum in the file, every reason would be rejected");
    reasons
});

/// Returns the errors of the CEL expressions in a schema. Expressions below a schema that has errors itself (`wrong`)
/// are not compiled.
///
/// `path` is the path of the schema. Costs are summed over the whole schema, so the last errors are about the total.
pub(super) fn check(schema: &Value, path: &str, wrong: &[FieldError]) -> Errors {
    let wrong = wrong.iter().map(|error| error.field.as_str()).collect();
    let mut statements = StatementCheck { wrong, total: Total::default(), errors: Errors::default() };
    let (schema_of, count) = (SchemaOf::Object, Count::of_root());
    let position = RulePosition { lost: None, schema_of, is_below_rules: false, is_in_unknown: false, count };
    statements.node(schema, path, position);
    let StatementCheck { total, mut errors, .. } = statements;
    errors.extend(total.into_errors(path));
    errors
}

/// The position of a rule in the schema.
#[derive(Clone, Copy)]
struct RulePosition<'a> {
    /// The topmost list above whose items cannot be correlated with old items: transition rules are forbidden below it.
    lost: Option<&'a str>,
    /// The values of the schema.
    schema_of: SchemaOf,
    /// A schema above has rules.
    is_below_rules: bool,
    /// A schema at this position or above it, at or below rules, has no CEL type: expressions cannot be checked.
    is_in_unknown: bool,
    /// Maximum number of values at this position, for the cost estimate.
    count: Count,
}

/// A rule and its place.
#[derive(Clone, Copy)]
struct RuleSite<'a> {
    rule: &'a Value,
    /// The schema that has the rule.
    schema: &'a Value,
    /// The path of the rule.
    path: &'a str,
    position: RulePosition<'a>,
}

/// The state of the traversal of a schema.
struct StatementCheck<'a> {
    /// The paths of the errors of the schema so far. Rules at or above one of them are skipped.
    wrong: BTreeSet<&'a str>,
    /// The summed cost estimate.
    total: Total,
    /// Errors of rules found so far.
    errors: Errors,
}

impl StatementCheck<'_> {
    /// Checks the rules of a schema. One without a CEL type (an unknown type, or preserved unknown fields without one)
    /// cannot have rules: one `InternalError` at the list.
    fn node(&mut self, schema: &Value, path: &str, position: RulePosition<'_>) {
        let rules = schema["x-kubernetes-validations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_below_rules = position.is_below_rules || !rules.is_empty();
        let is_in_unknown = position.is_in_unknown || (is_below_rules && !Environment::has_type(schema));
        let inner = RulePosition { is_below_rules, is_in_unknown, schema_of: SchemaOf::Value, ..position };
        self.visit_children(schema, path, inner);
        if rules.is_empty() || self.is_wrong(path) {
            return;
        }
        let field_path = format!("{path}.x-kubernetes-validations");
        if is_in_unknown {
            let why = "Internal error: the schema has no CEL type";
            self.errors.push(FieldError::new("InternalError", &field_path, why.to_owned()));
            return;
        }
        for (index, rule) in rules.iter().enumerate() {
            let path = format!("{field_path}[{index}]");
            self.check_rule(RuleSite { rule, schema, path: &path, position });
        }
    }

    /// Visits nested schemas. `allOf`, `anyOf`, `oneOf` and `not` have no rules: `structural` forbids them there.
    fn visit_children(&mut self, schema: &Value, path: &str, position: RulePosition<'_>) {
        let position = RulePosition { count: position.count.below(schema), ..position };
        if schema["additionalProperties"].is_object() {
            self.node(&schema["additionalProperties"], &format!("{path}.additionalProperties"), position);
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            self.node(field, &format!("{path}.properties[{name}]"), position);
        }
        if schema["items"].is_object() {
            let keeps = schema["x-kubernetes-list-type"] == "map";
            let lost = position.lost.or((!keeps).then_some(path));
            self.node(&schema["items"], &format!("{path}.items"), RulePosition { lost, ..position });
        }
    }

    /// Checks the expressions of a rule, and that `oldSelf` is used only where old values can be correlated.
    /// `optionalOldSelf` without `oldSelf` is an error, `false` included.
    fn check_rule(&mut self, site: RuleSite<'_>) {
        let RuleSite { rule, path, position, .. } = site;
        let invalid = |field: &str, why: &str| FieldError::invalid(&format!("{path}.{field}"), &rule[field], why);
        // The `messageExpression` is compiled only if the rule compiles.
        let is_typed = match self.compile(Expression::Rule, site) {
            CompileStage::Whole => {
                self.compile(Expression::Message, site);
                true
            }
            CompileStage::Typed => true,
            CompileStage::Not => false,
        };
        let uses_old = is_typed && kctl_cel::names(rule["rule"].as_str().unwrap_or_default(), "oldSelf");
        if uses_old && let Some(lost) = position.lost {
            let why = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}");
            self.errors.push(invalid("rule", &why));
        }
        if rule["optionalOldSelf"].is_boolean() && !uses_old {
            self.errors.push(invalid("optionalOldSelf", "may not be set if oldSelf is not used in rule"));
        }
    }

    /// Compiles an expression, adds its cost to the total, and reports its errors. An expression above the cost limit
    /// counts as compiled.
    fn compile(&mut self, which: Expression, site: RuleSite<'_>) -> CompileStage {
        let RuleSite { rule, schema, path, position: RulePosition { schema_of, count, .. } } = site;
        let path = format!("{path}.{}", which.field());
        if let Some((compiled, why)) = find_compile_error(which, rule, schema, schema_of) {
            self.errors.push(FieldError::invalid(&path, &rule[which.field()], &why));
            return compiled;
        }
        let expression = rule[which.field()].as_str().unwrap_or_default();
        let Ok(tree) = crate::cel::tree(expression) else { return CompileStage::Whole };
        self.errors.extend(self.total.add(which, &tree, Values { schema, schema_of, count }, path));
        CompileStage::Whole
    }

    /// Returns `true` if the schema at `path` or one below it already has an error, which compiling would only repeat.
    fn is_wrong(&self, path: &str) -> bool {
        ['.', '['].iter().any(|next| {
            let below = format!("{path}{next}");
            self.wrong.range(below.as_str()..).next().is_some_and(|field| field.starts_with(&below))
        })
    }
}

/// Validates the fields of rules that are not expressions.
///
/// `messageExpression` may be empty, but not blank. `fieldPath` is one line and must resolve in the
/// schema. Reasons are listed in `REASONS`.
pub(super) fn validate_rule_fields(schema: &Field<'_>) {
    for rule in schema.at("x-kubernetes-validations").items() {
        if rule.at("rule").text().trim().is_empty() {
            rule.at("rule").required_with("rule is not specified");
        } else {
            message(&rule);
        }
        let expression = rule.at("messageExpression");
        let is_blank = !expression.is_empty() && expression.text().trim().is_empty();
        expression.required_with_if(is_blank, "messageExpression must be non-empty if specified");
        rule.at("reason").one_of(&REASONS);
        let path = rule.at("fieldPath");
        let has_lines = path.text().contains(['\n', '\r']);
        let is_wrong = !path.is_empty() && (has_lines || field_path::resolve(path.text(), schema).is_none());
        path.invalid_if(is_wrong, "must be the path of a field, in one line");
    }
}

/// The furthest stage that an expression reaches upstream.
enum CompileStage {
    /// It does not parse or type-check.
    Not,
    /// It type-checks, but no program can be made of it.
    Typed,
    /// It compiles to a program.
    Whole,
}

/// Returns why a rule does not compile for the values of a schema; `None` if it does.
///
/// The message is without path and value. An empty rule counts as compiled, and is reported as missing elsewhere.
pub(super) fn rule_compile_error(rule: &Value, schema: &Value, schema_of: SchemaOf) -> Option<String> {
    find_compile_error(Expression::Rule, rule, schema, schema_of).map(|(_, why)| why)
}

/// Returns why an expression does not compile and the stage that it reaches upstream; `None` if it compiles. A rule
/// must be a boolean, a message a string, or of an unknown type (`dyn`).
fn find_compile_error(
    which: Expression,
    rule: &Value,
    schema: &Value,
    schema_of: SchemaOf,
) -> Option<(CompileStage, String)> {
    let expected = match which {
        Expression::Rule => Type::Bool,
        Expression::Message => Type::Text,
    };
    let expression = rule[which.field()].as_str().unwrap_or_default();
    if expression.trim().is_empty() {
        return None;
    }
    let environment = Environment::for_rule(schema, schema_of, OldSelf::from_rule(rule)).unwrap_or_default();
    match crate::cel::type_of(expression, &environment) {
        Err(why) => Some((CompileStage::Not, format!("compilation failed: {why}"))),
        Ok(Some(found)) if found != expected => {
            Some((CompileStage::Not, format!("must evaluate to {expected}, found {found}")))
        }
        Ok(_) => Some((CompileStage::Typed, kctl_cel::instantiate(expression).err()?)),
    }
}

/// Validates the static message, which a rule of several lines must have.
fn message(rule: &Field<'_>) {
    let message = rule.at("message");
    let (has_lines, text) = (|text: &str| text.trim().contains(['\n', '\r']), message.text());
    let is_invalid = !text.is_empty() && (text.trim().is_empty() || has_lines(text));
    message.invalid_if(is_invalid, "must be one line, and not blank");
    let is_missing = text.is_empty() && has_lines(rule.at("rule").text());
    message.required_with_if(is_missing, "message must be specified if rule contains line breaks");
}
