//! CEL validation rules of a schema (`x-kubernetes-validations`). Compiles them once and evaluates them on objects.
//!
//! `kube-cel` evaluates the expressions; this module decides what a rule sees and how its errors are reported.
//!
//! Upstream: `pkg/apiserver/schema/cel/validation.go` of apiextensions-apiserver.
//!
//! Evaluation walks object and rules together. `self` is the value at the schema that has the rule, `oldSelf` the
//! correlated old value. The order is own rules first, then fields by name, or items.
//!
//! Costs: each expression is charged to one budget per object before it runs, by the estimate for the actual sizes. An
//! exhausted budget ends the evaluation with an error, since skipped rules must not pass silently.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap},
};

use kctl_cel::SchemaOf;
use serde_json::Value;

use super::{
    correlation::{CorrelatedValue, Lineage},
    error_limit::is_limit_reached,
    field_path, rule_validation,
    typed::Typed,
};
use crate::schema::{ListType, Schema};
use crate::{
    cel::{
        Cel, Code, Scope, compile,
        cost::{Budget, CostExceeded},
    },
    evaluate::{EvaluationError, optional},
    field_errors::{Errors, FieldError},
};

/// Reasons of schema errors that block the evaluation of rules: a rule could fail on a value that the schema already
/// rejects. Rules can work with values that have other errors, such as a violated pattern.
const BLOCKING: [&str; 5] =
    ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"];

/// Maximum bytes of the result of a `messageExpression` (`MaxEvaluatedMessageExpressionSizeBytes`). For a longer one
/// the static message is used.
const MESSAGE_LEN_MAX: usize = 5 * 1024;

/// The compiled CEL rules of a schema and of all schemas nested in it.
///
/// Each evaluation has a cost budget, in addition to the estimate that is checked when the CRD is created.
///
/// The tree has the shape of the schema, without branches that have no rules. Compiled at the first
/// use of a version (`registry`), then shared by all requests.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Rules of the schema itself, in the order of the list in the schema.
    own: Vec<Rule>,
    /// Converts values to what the own rules see; `None` if the schema has no own rules.
    typed: Option<Typed>,
    /// Rules below `properties`, for fields with rules in them.
    fields: BTreeMap<String, Rules>,
    /// Rules below `additionalProperties`.
    values: Option<Box<Rules>>,
    /// Rules below `items`.
    items: Option<Box<Rules>>,
    /// Keys of a map list, which correlate items with the old list; empty for other lists.
    keys: Vec<String>,
}

/// Collects the results of an evaluation.
struct RuleResults<'a> {
    /// All errors of the object, including errors of the schema.
    errors: &'a mut Errors,
    /// Errors of unchanged values, which become warnings.
    forgiven: &'a mut Errors,
    /// Remaining cost budget; `None` once it is spent, and then no further rule is evaluated.
    budget: Option<Budget>,
    /// Variables of the expressions; reused, since creating it costs more than a rule.
    scope: Scope,
}

/// One entry of `x-kubernetes-validations`, compiled.
#[derive(Debug)]
struct Rule {
    /// The compiled rule, or its compile error: a stored CRD can have a rule that no longer compiles. It then fails for
    /// each object, like upstream.
    code: Result<Code, String>,
    /// `None` if absent or if it does not compile; then `message` is used.
    message_expression: Option<Code>,
    /// The rule uses `oldSelf` (found in the syntax tree): it is a transition rule.
    names_old: bool,
    /// `optionalOldSelf`: `oldSelf` is an optional value, and the rule also runs on creation.
    is_old_optional: bool,
    /// The reason of the field error; `FieldValueInvalid` by default.
    reason: &'static str,
    /// The `fieldPath` in its reported form, appended to the path of the value.
    field_path: String,
    /// Names the rule if it cannot be evaluated: its message or its expression.
    name: String,
    /// The static message of a failure.
    message: String,
}

impl Rules {
    /// Compiles the rules of a structural schema.
    ///
    /// Never fails: errors are kept in the rules. Costs grow with the schema, so compile once per version.
    pub(crate) fn compile(schema: Schema) -> Self {
        Self::compile_at(schema, SchemaOf::Object, |schema, rule, _| Rule::compile(schema, rule))
    }

    /// Compiles the rules of a schema that is not validated yet. Rules that do not compile become errors on evaluation.
    ///
    /// For defaults, which are validated together with the rules themselves.
    pub(super) fn compile_unjudged(schema: Schema) -> Self {
        Self::compile_at(schema, SchemaOf::Object, Rule::compile_unjudged)
    }

    /// Compiles the rules of a nested schema, each by `compile`.
    fn compile_at(schema: Schema, schema_of: SchemaOf, compile: fn(Schema, &Value, SchemaOf) -> Rule) -> Self {
        let part = |schema: Schema| Self::compile_at(schema, SchemaOf::Value, compile);
        let below = |schema: Schema| Some(Box::new(part(schema))).filter(|rules| !rules.is_empty());
        let all = schema.json()["x-kubernetes-validations"].as_array();
        let fields = schema.properties().map(|(name, field)| (name.to_owned(), part(field)));
        let keys = if let ListType::Map(keys) = schema.list_type() { keys } else { &[] };
        let own: Vec<Rule> = all.into_iter().flatten().map(|rule| compile(schema, rule, schema_of)).collect();
        Self {
            typed: (!own.is_empty()).then(|| Typed::from_schema(schema.json())),
            own,
            fields: fields.filter(|(_, rules)| !rules.is_empty()).collect(),
            values: schema.additional_properties().and_then(below),
            items: schema.items().and_then(below),
            keys: keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Returns `true` if the schema has no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.fields.is_empty() && self.values.is_none() && self.items.is_none()
    }

    /// Evaluates the rules and adds to the errors of [`super::validate`]. Rules that use `oldSelf` are evaluated only
    /// if there is an old value. If an earlier error makes the rules meaningless, none is evaluated, and an error
    /// reports that.
    ///
    /// Rules without `oldSelf` are ratcheted: if the value is unchanged, a failure is returned as a warning.
    ///
    /// `object` and `old` are in the version of `schema`. The returned errors were dropped by
    /// ratcheting; the caller sends them as warnings. All other errors are appended to `errors`.
    pub(crate) fn validate(&self, schema: Schema, object: &Value, old: Option<&Value>, errors: &mut Errors) -> Errors {
        let mut forgiven = Errors::default();
        if self.is_empty() {
            return forgiven;
        }
        if errors.iter().any(|error| BLOCKING.contains(&error.reason)) {
            errors.push(FieldError::without_field(
                "the validation rules are not evaluated until the other errors are fixed",
            ));
            return forgiven;
        }
        let lineage = Lineage::root(old.map(|old| CorrelatedValue::new(schema, object, old)));
        let (budget, scope) = (Some(Budget::OF_OBJECT), Scope::with_functions());
        let mut found = RuleResults { errors, forgiven: &mut forgiven, budget, scope };
        self.check(object, OldValue { old, lineage }, "", &mut found);
        forgiven
    }

    /// Evaluates the rules on a default value, without ratcheting.
    ///
    /// `old` is the default itself for the check of an update, and `None` for creation.
    pub(super) fn validate_default(&self, value: &Value, old: Option<&Value>, errors: &mut Errors) {
        let (budget, scope) = (Some(Budget::OF_OBJECT), Scope::with_functions());
        let mut found = RuleResults { errors, forgiven: &mut Errors::default(), budget, scope };
        self.check(value, OldValue { old, lineage: Lineage::root(None) }, "", &mut found);
    }

    /// Evaluates the rules of this schema and of those below it. Null values have no rules. Old values follow by field
    /// name, and by keys in map lists; elsewhere transition rules are skipped.
    fn check(&self, value: &Value, before: OldValue, path: &str, found: &mut RuleResults) {
        if value.is_null() {
            return;
        }
        let before = OldValue { old: before.old.filter(|old| !old.is_null()), ..before };
        self.check_own(value, before, path, found);
        if found.budget.is_none() {
            return;
        }
        let OldValue { old, lineage } = before;
        let compared = OnceCell::new();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if is_limit_reached(found.errors, path) {
                        return;
                    }
                    let lineage = lineage.field(name, &compared);
                    let before = OldValue { old: old.and_then(|old| old.get(name)), lineage };
                    if let Some(rules) = self.fields.get(name) {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        rules.check(value, before, &path, found);
                    } else if let Some(rules) = &self.values {
                        rules.check(value, before, &format!("{path}[{name}]"), found);
                    }
                }
            }
            Value::Array(items) => {
                let Some(rules) = &self.items else { return };
                let old_items = self.items_by_keys(old);
                for (i, (item, lineage)) in items.iter().zip(lineage.items(items.len(), &compared)).enumerate() {
                    if is_limit_reached(found.errors, path) {
                        return;
                    }
                    let before = OldValue { old: old_items.get(&self.keys_of(item)).copied(), lineage };
                    rules.check(item, before, &format!("{path}[{i}]"), found);
                }
            }
            _ => {}
        }
    }

    /// Evaluates the rules of this schema until the budget is spent. A failure of a rule without `oldSelf` becomes a
    /// warning if the value is unchanged.
    fn check_own(&self, value: &Value, before: OldValue, path: &str, found: &mut RuleResults) {
        let Some(typed) = &self.typed else { return };
        let kinds = found.scope.kinds();
        kinds.clear();
        let own = typed.value(value, kinds);
        let old = before.old.map(|old| typed.value(old, kinds));
        found.scope.set("self", own);
        for rule in &self.own {
            if rule.names_old && old.is_none() && !rule.is_old_optional {
                continue;
            }
            found.scope.set("oldSelf", rule.old(old.clone()));
            let Some(budget) = &mut found.budget else { return };
            if let Err(excess) = rule.charge_cost(&found.scope, budget) {
                found.errors.push(rule.too_expensive(excess, path));
                found.budget = None;
                return;
            }
            let Some(Failure { error, kind }) = rule.check(&mut found.scope, value, old.clone(), path) else {
                continue;
            };
            match kind {
                RuleFailure::Fails if !rule.names_old && before.lineage.is_unchanged() => {
                    // Further rules are evaluated even so: one of them may fail for a changed value.
                    if !is_limit_reached(found.forgiven, path) {
                        found.forgiven.push(error);
                    }
                }
                RuleFailure::Fails | RuleFailure::NotEvaluated => found.errors.push(error),
                RuleFailure::CostExceeded => {
                    found.errors.push(error);
                    found.budget = None;
                    return;
                }
            }
        }
    }

    /// Indexes the items of an old list by their keys; empty if the list has no keys. If several items have the same
    /// keys, the first one counts. A search per item would take quadratic time: a list needs no `maxItems` if its rules
    /// are cheap.
    fn items_by_keys<'a>(&self, old: Option<&'a Value>) -> HashMap<Vec<Option<&'a Value>>, &'a Value> {
        let mut by_keys = HashMap::new();
        if !self.keys.is_empty() {
            for item in old.and_then(Value::as_array).into_iter().flatten() {
                by_keys.entry(self.keys_of(item)).or_insert(item);
            }
        }
        by_keys
    }

    /// Returns the keys of an item of a map list. An absent key is `None`, and differs from null.
    fn keys_of<'a>(&self, item: &'a Value) -> Vec<Option<&'a Value>> {
        self.keys.iter().map(|key| item.get(key)).collect()
    }
}

/// The old value at the position of a value.
#[derive(Clone, Copy)]
struct OldValue<'a> {
    /// The old value; `None` if it is unknown.
    old: Option<&'a Value>,
    /// The relation of the position to the old object.
    lineage: Lineage<'a>,
}

/// The error of a rule.
struct Failure {
    error: FieldError,
    kind: RuleFailure,
}

/// The reason why a rule reports an error.
///
/// Ratcheting applies to the first variant only.
enum RuleFailure {
    /// The rule evaluated to `false`.
    Fails,
    /// The rule could not be evaluated.
    NotEvaluated,
    /// The cost budget is exhausted, so the evaluation of further rules ends.
    CostExceeded,
}

impl Rule {
    /// Compiles a rule. An unknown reason becomes `FieldValueInvalid`. A `fieldPath` that does not resolve is replaced
    /// by the path of the value. Validation rejects both, so only CRDs from older versions have them.
    fn compile(schema: Schema, rule: &Value) -> Self {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let reason = rule_validation::REASONS.iter().copied().find(|reason| *reason == text("reason"));
        let field_path = field_path::resolve(text("fieldPath"), schema.json()).filter(|path| !path.is_empty());
        let name = if text("message").is_empty() { text("rule") } else { text("message") }.trim();
        let message_expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        Self {
            code: compile(text("rule")),
            message_expression: message_expression.and_then(|text| compile(text).ok()),
            names_old: kctl_cel::names(text("rule"), "oldSelf"),
            is_old_optional: rule["optionalOldSelf"] == true,
            reason: reason.unwrap_or("FieldValueInvalid"),
            field_path: field_path.map(|path| format!(".{path}")).unwrap_or_default(),
            message: if text("message").is_empty() { format!("failed rule: {name}") } else { name.to_owned() },
            name: name.to_owned(),
        }
    }

    /// Compiles a rule that is not validated yet. One that fails the checks is treated as a rule without `oldSelf`, so
    /// that it is also evaluated, and reported, on creation.
    fn compile_unjudged(schema: Schema, rule: &Value, schema_of: SchemaOf) -> Self {
        let compiled = Self::compile(schema, rule);
        match rule_validation::rule_compile_error(rule, schema.json(), schema_of) {
            Some(why) => Self { code: Err(why), names_old: false, ..compiled },
            None => compiled,
        }
    }

    /// Charges the estimated cost of the rule and its message, which is charged even if the rule holds.
    fn charge_cost(&self, scope: &Scope, budget: &mut Budget) -> Result<(), CostExceeded> {
        let all = self.code.iter().chain(&self.message_expression);
        all.map(|code| scope.cost_of(code)).try_for_each(|cost| budget.charge_cost(cost?))
    }

    /// Returns the error of a rule that exceeds its limit or the budget.
    fn too_expensive(&self, excess: CostExceeded, path: &str) -> FieldError {
        let what = if excess == CostExceeded::Budget { "the evaluation of all rules" } else { "its evaluation" };
        self.evaluation_error(path, &format!("{what} is too expensive; no more rules are evaluated"))
    }

    /// Returns the error of a rule that could not be evaluated, regardless of the rule's `reason`.
    fn evaluation_error(&self, path: &str, why: &str) -> FieldError {
        FieldError::new("FieldValueInvalid", display_path(path), format!("Invalid value: rule {:?}: {why}", self.name))
    }

    /// Returns the value of `oldSelf`. An optional `oldSelf` is `optional.none()` on creation.
    fn old(&self, old: Option<Cel>) -> Cel {
        if self.is_old_optional { optional(old) } else { old.unwrap_or(Cel::Null) }
    }

    /// Evaluates the rule; `None` if it holds. The value and the old value are in the scope already. A result that is
    /// not a boolean counts as `false`; type checking has excluded it for validated CRDs.
    fn check(&self, scope: &mut Scope, value: &Value, old: Option<Cel>, path: &str) -> Option<Failure> {
        let failure = |error, kind| Some(Failure { error, kind });
        let code = match &self.code {
            Ok(code) => code,
            Err(why) => return failure(self.evaluation_error(path, why), RuleFailure::NotEvaluated),
        };
        match scope.run(code) {
            Ok(Cel::Bool(true)) => None,
            Ok(_) => {
                // In `messageExpression`, `oldSelf` is never an optional value: it is set or undefined.
                match old {
                    Some(old) => scope.set("oldSelf", old),
                    None => scope.unset("oldSelf"),
                }
                failure(self.failure_error(scope, value, path), RuleFailure::Fails)
            }
            Err(EvaluationError::CostExceeded) => {
                failure(self.too_expensive(CostExceeded::Expression, path), RuleFailure::CostExceeded)
            }
            Err(why) => failure(self.evaluation_error(path, &why.to_string()), RuleFailure::NotEvaluated),
        }
    }

    /// Returns the error of a rule that is `false`. Scalar values are part of the message.
    fn failure_error(&self, scope: &Scope, value: &Value, path: &str) -> FieldError {
        let evaluated = self.evaluate_message(scope);
        let (text, path) = (evaluated.as_deref().unwrap_or(&self.message), format!("{path}{}", self.field_path));
        let field = display_path(&path);
        let is_scalar = !value.is_object() && !value.is_array();
        let message = if is_scalar { format!("{text}, found {value}") } else { text.to_owned() };
        FieldError::new(self.reason, field, message)
    }

    /// Returns the trimmed result of `messageExpression`, if it is one non-empty line within the length limit.
    fn evaluate_message(&self, scope: &Scope) -> Option<String> {
        let Ok(Cel::String(message)) = scope.run(self.message_expression.as_ref()?) else { return None };
        let message = message.trim();
        let is_line = !message.is_empty() && message.len() <= MESSAGE_LEN_MAX && !message.contains('\n');
        is_line.then(|| message.to_owned())
    }
}

/// Returns the path as errors report it, without a leading dot; `<nil>` for the root.
fn display_path(path: &str) -> &str {
    if path.is_empty() { "<nil>" } else { path.trim_start_matches('.') }
}
