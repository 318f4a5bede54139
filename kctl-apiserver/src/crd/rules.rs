//! CEL rules of a schema (`x-kubernetes-validations`). Reads the schema once and hands on what is wrong with objects.
//!
//! Evaluation is that of `kube-cel`; which old value a rule sees, and what is reported where, is decided here.
//! Upstream: `pkg/apiserver/schema/cel/validation.go` of apiextensions-apiserver.

use std::{collections::BTreeMap, error::Error};

use kube_cel::{CompiledSchema, ErrorKind, ValidationError, cel::common::ast::IdedExpr};
use serde_json::{Value, json};

use super::{
    correlation::{Lineage, Past},
    cost::{Budget, Dear, Part},
    plain,
};
use crate::schema::{ListType, Schema};
use crate::{cause::Cause, go};

/// Reasons that leave the rules unchecked: they could fail on what the schema has refused.
const BLOCKING: [&str; 5] =
    ["FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"];

/// The compiled rules of a schema and of what is below it.
///
/// What rules cost is bounded once more when they are checked, by the very value.
#[derive(Debug, Default)]
pub struct Rules {
    own: Vec<Rule>,
    fields: BTreeMap<String, Rules>,
    values: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    /// The keys by which the items of a list are found in the old list.
    keys: Vec<String>,
}

/// Where what is found goes.
struct Found<'a> {
    errors: &'a mut Vec<Cause>,
    forgiven: &'a mut Vec<Cause>,
    /// None once it is spent: no rule is checked then.
    budget: Option<Budget>,
}

#[derive(Debug)]
struct Rule {
    names_old: bool,
    /// The rule and the expression of its message, as far as they can be read.
    trees: Vec<IdedExpr>,
    compiled: CompiledSchema,
    reason: &'static str,
    /// Below the value, as it is reported.
    field_path: String,
    /// What a failed evaluation names: the message or the rule.
    name: String,
}

impl Rules {
    /// Compiles the rules of a structural schema.
    pub fn compile(schema: Schema) -> Self {
        Self::compile_at(schema, true)
    }

    /// The same of a part of it, which may be a whole object.
    fn compile_at(schema: Schema, whole: bool) -> Self {
        let below = |schema: Schema| Some(Box::new(Self::compile_at(schema, false))).filter(|rules| !rules.is_empty());
        let all = schema.json()["x-kubernetes-validations"].as_array();
        let fields = schema.properties().map(|(name, field)| (name.to_owned(), Self::compile_at(field, false)));
        let keys = if let ListType::Map(keys) = schema.list_type() { keys } else { &[] };
        Self {
            own: all.into_iter().flatten().map(|rule| Rule::compile(schema, rule, whole)).collect(),
            fields: fields.filter(|(_, rules)| !rules.is_empty()).collect(),
            values: schema.additional_properties().and_then(below),
            items: schema.items().and_then(below),
            keys: keys.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.fields.is_empty() && self.values.is_none() && self.items.is_none()
    }

    /// Checks the rules and adds to the errors of [`super::validate`]. Rules that name `oldSelf` are checked where there
    /// is an old value. Where an error makes the rules meaningless, they are not checked and that is the error added.
    /// Rules that do not name it are forgiven at values that are what they were: these errors are handed on as warnings.
    pub fn validate(&self, schema: Schema, object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) -> Vec<Cause> {
        let mut forgiven = Vec::new();
        if self.is_empty() {
            return forgiven;
        }
        if errors.iter().any(|error| BLOCKING.contains(&error.reason)) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(Cause::invalid("<nil>", &Value::Null, detail));
            return forgiven;
        }
        let lineage = Lineage::root(old.map(|old| Past::new(schema, object, old)));
        self.check(
            object,
            (old, lineage),
            "",
            &mut Found { errors, forgiven: &mut forgiven, budget: Some(Budget::of_object()) },
        );
        forgiven
    }

    fn check(&self, value: &Value, (old, lineage): (Option<&Value>, Lineage), path: &str, found: &mut Found) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for rule in &self.own {
            let Some(budget) = &mut found.budget else { return };
            if let Err(dear) = rule.trees.iter().try_for_each(|tree| {
                let known = vec![("self", Some(Part::Json(value))), ("oldSelf", old.map(Part::Json))];
                budget.take(tree, known)
            }) {
                found.errors.push(rule.too_dear(dear, value, path));
                found.budget = None;
                return;
            }
            let mut errors = Vec::new();
            rule.check(value, old, path, &mut errors);
            if !errors.is_empty() && !rule.names_old && lineage.is_unchanged() {
                found.forgiven.append(&mut errors);
            }
            found.errors.append(&mut errors);
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let old = old.and_then(|old| old.get(name));
                    if let Some(rules) = self.fields.get(name) {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        rules.check(value, (old, lineage.field(name)), &path, found);
                    } else if let Some(rules) = &self.values {
                        rules.check(value, (old, lineage.field(name)), &format!("{path}[{name}]"), found);
                    }
                }
            }
            Value::Array(items) => {
                let Some(rules) = &self.items else { return };
                for (i, (item, lineage)) in items.iter().zip(lineage.items(items.len())).enumerate() {
                    rules.check(item, (self.same(item, old), lineage), &format!("{path}[{i}]"), found);
                }
            }
            _ => {}
        }
    }

    /// The item with the same keys; items of lists without keys have no past.
    fn same<'a>(&self, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        let is_same = |one: &&Value| self.keys.iter().all(|key| one.get(key) == item.get(key));
        old?.as_array()?.iter().find(|one| !self.keys.is_empty() && is_same(one))
    }
}

impl Rule {
    fn compile(schema: Schema, rule: &Value, whole: bool) -> Self {
        let text = |key: &str| rule[key].as_str();
        let reason = match text("reason") {
            Some("FieldValueForbidden") => "FieldValueForbidden",
            Some("FieldValueRequired") => "FieldValueRequired",
            Some("FieldValueDuplicate") => "FieldValueDuplicate",
            _ => "FieldValueInvalid",
        };
        let mut alone = without_rules(schema.json());
        let taken = compilable(schema, rule, whole);
        alone["x-kubernetes-validations"] = json!([taken]);
        Self {
            trees: ["rule", "messageExpression"]
                .into_iter()
                .filter_map(|key| crate::admission::tree(taken[key].as_str()?).ok())
                .collect(),
            names_old: kctl_cel::names(text("rule").unwrap_or_default(), "oldSelf"),
            compiled: kube_cel::compile_schema(&alone),
            reason,
            field_path: below(schema, text("fieldPath").unwrap_or_default()),
            name: text("message").or(text("rule")).unwrap_or_default().trim().to_owned(),
        }
    }

    fn too_dear(&self, dear: Dear, value: &Value, path: &str) -> Cause {
        let why = match dear {
            Dear::Alone => format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call \
                 cost exceeds limit for rule: {}",
                self.name
            ),
            Dear::Together => {
                "validation failed due to running out of cost budget, no further validation rules will be run".into()
            }
        };
        let field = if path.is_empty() { "<nil>" } else { path };
        Cause::new("FieldValueInvalid", field, format!("Invalid value: {}: {why}", shown(value)))
    }

    fn check(&self, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<Cause>) {
        let Err(found) = kube_cel::validate_compiled(&self.compiled, value, old) else { return };
        let named = |field: &str| if field.is_empty() { "<nil>" } else { field.trim_start_matches('.') }.to_owned();
        let (path, field) = (named(path), named(&format!("{path}{}", self.field_path)));
        let is_container = value.is_object() || value.is_array();
        for error in found.into_vec() {
            if error.kind != ErrorKind::ValidationFailure {
                let message =
                    format!("Invalid value: {}: {} evaluating rule: {}", shown(value), cause(&error), self.name);
                errors.push(Cause::new("FieldValueInvalid", &path, message));
                continue;
            }
            let text = error.message.trim();
            errors.push(match self.reason {
                "FieldValueRequired" => Cause::required(&field, text),
                "FieldValueForbidden" => Cause::forbidden(&field, text),
                "FieldValueDuplicate" if is_container => Cause::new(self.reason, &field, "Duplicate value".to_owned()),
                "FieldValueDuplicate" => Cause::duplicate(&field, value),
                _ if is_container => Cause::new(self.reason, &field, format!("Invalid value: {text}")),
                _ => Cause::invalid(&field, value, text),
            });
        }
    }
}

/// A value that could not be judged, as it is named: by its type.
fn shown(value: &Value) -> String {
    go::quote(if value.is_array() { "array" } else { super::validate::type_of(value).0 })
}

/// Why a rule could not be evaluated, in the words of upstream where they are known.
fn cause(error: &ValidationError) -> String {
    let text = error.source().map_or_else(|| error.message.clone(), ToString::to_string);
    if text.starts_with("Division by zero") {
        return "division by zero".to_owned();
    }
    text.strip_prefix("No such key: ").map_or(text.clone(), |key| format!("no such key: {key}"))
}

/// The schema, of which only the shape is left: rules below it are checked where they stand.
fn without_rules(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let dropped = ["x-kubernetes-validations", "default", "anyOf", "oneOf", "allOf", "not"];
            let kept = fields.iter().filter(|(name, value)| !dropped.contains(&name.as_str()) || is_schema(value));
            kept.map(|(name, value)| (name.clone(), without_rules(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_rules).collect(),
        _ => schema.clone(),
    }
}

/// Whether a value under the name of a keyword is the schema of a field of that name.
fn is_schema(value: &Value) -> bool {
    value.get("type").is_some_and(Value::is_string)
}

/// The rule as `kube-cel` takes it: without what it does not know. Its optional old value is null where there is none.
fn compilable(schema: Schema, rule: &Value, whole: bool) -> Value {
    let is_optional = rule["optionalOldSelf"] == true;
    let mut taken = rule.clone();
    for key in ["rule", "messageExpression"] {
        let Some(text) = rule[key].as_str() else { continue };
        match plain::rewritten(text, schema.json(), whole, is_optional) {
            Some(Ok(plain)) => taken[key] = plain.into(),
            Some(Err(_)) => taken[key] = UNEVALUABLE.into(),
            None => {}
        }
    }
    // To its message the real server shows the old value in another form than to the rule, so that it cannot be made.
    let message = rule["messageExpression"].as_str().unwrap_or_default();
    if is_optional && kctl_cel::names(message, "oldSelf") {
        taken["messageExpression"] = Value::Null;
    }
    if taken["rule"] != rule["rule"] && rule["message"].as_str().is_none_or(|text| text.trim().is_empty()) {
        taken["message"] = format!("failed rule: {}", rule["rule"].as_str().unwrap_or_default().trim()).into();
    }
    let mut rule = taken;
    // What would harm the process is the name of something that is not there: the rule fails, and says so.
    for key in ["rule", "messageExpression"] {
        if rule[key].as_str().is_some_and(|text| crate::admission::check(text).is_err_and(|why| is_harmful(&why))) {
            rule[key] = UNEVALUABLE.into();
        }
    }
    rule
}

/// An expression that fails when it is evaluated.
const UNEVALUABLE: &str = "ruleThatCannotBeEvaluated";

/// Expressions that merely do not compile are told by `kube-cel`.
fn is_harmful(why: &str) -> bool {
    why.starts_with("expression ") || why.contains("undeclared reference")
}

/// A field path below a value; the key of a map stands in brackets.
fn below(schema: Schema, path: &str) -> String {
    let mut schema = Some(schema);
    let mut out = String::new();
    for name in path.split(['.', '[', ']']).map(|name| name.trim_matches('\'')).filter(|name| !name.is_empty()) {
        let is_key = schema.is_some_and(|schema| schema.property(name).is_none() && schema.field(name).is_some());
        out.push_str(&if is_key { format!(".[{name}]") } else { format!(".{name}") });
        schema = schema.and_then(|schema| schema.field(name));
    }
    out
}
