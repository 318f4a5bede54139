//! Rules in words that the evaluator knows: reads an expression with optional syntax (`.?`, `[?…]`, `optMap`) or loops with
//! two variables, and writes one that means the same without them.
//!
//! Variables get names of their own, so that what is written in several places means the same everywhere.

use kctl_cel::{Environment, Type};
use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, MapExpr, SelectExpr, StructExpr,
};
use serde_json::Value;

/// The function that makes a map of entries, where expressions without types are evaluated; no expression can name it.
pub(crate) const MAP_OF: &str = "mapOfEntries";

/// The same for a list that is sorted by a list of keys.
pub(crate) const SORTED_BY: &str = "sortedByKeys";

/// What is written for one value grows with each use of it.
const TEXT_LEN_MAX: usize = 16 * 1024;

/// The expression without what the evaluator does not know; none if it has nothing of that.
///
/// # Errors
/// What cannot be said otherwise.
pub(super) fn rewritten(
    expression: &str,
    schema: &Value,
    whole: bool,
    old_is_optional: bool,
) -> Option<Result<String, String>> {
    if !(old_is_optional || may_be_unknown(expression)) {
        return None;
    }
    let tree = crate::admission::tree_with_optionals(expression).ok()?;
    let is_about_old = old_is_optional && kctl_cel::names(expression, "oldSelf");
    if !is_about_old && !is_unknown(&tree) {
        return None;
    }
    // What is written says itself where there is no old value.
    let environment = Environment::of_rule(schema, whole, false).unwrap_or_default();
    Some(written(&tree, Some(environment), old_is_optional))
}

/// The same of an expression about what has no schema: what is a list and what a map shows when it is evaluated.
///
/// # Errors
/// As [`rewritten`].
pub(crate) fn rewritten_without_types(expression: &str) -> Option<Result<String, String>> {
    if !may_be_unknown(expression) {
        return None;
    }
    let tree = crate::admission::tree_with_optionals(expression).ok()?;
    is_unknown(&tree).then(|| written(&tree, None, false))
}

fn may_be_unknown(expression: &str) -> bool {
    MARKS.iter().chain(&PAIRS).any(|part| expression.contains(part))
}

fn written(tree: &IdedExpr, environment: Option<Environment>, old_is_optional: bool) -> Result<String, String> {
    Writer { environment, names: Vec::new(), n_names: 0, old_is_optional, left: TEXT_LEN_MAX }.plain(tree)
}

const MARKS: [&str; 4] = ["?", "optMap", "optFlatMap", "sortBy"];
/// Loops that there are with two variables.
const PAIRS: [&str; 7] =
    ["all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry"];

/// Whether something in an expression is not known to the evaluator.
fn is_unknown(tree: &IdedExpr) -> bool {
    let any = |all: &[IdedExpr]| all.iter().any(is_unknown);
    match &tree.expr {
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            let own = ["_?._", "_[?_]", "optMap", "optFlatMap", "sortBy"].contains(&name)
                || (call.target.is_some() && PAIRS.contains(&name) && call.args.len() >= 3);
            own || any(&call.args) || call.target.as_deref().is_some_and(is_unknown)
        }
        Expr::Select(select) => is_unknown(&select.operand),
        Expr::List(list) => !list.optional_indices.is_empty() || any(&list.elements),
        Expr::Map(map) => map.entries.iter().any(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => entry.optional || is_unknown(&entry.key) || is_unknown(&entry.value),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Comprehension(inner) => {
            [&inner.iter_range, &inner.loop_cond, &inner.loop_step, &inner.result].into_iter().any(is_unknown)
        }
        Expr::Struct(made) => made.entries.iter().any(|entry| match &entry.expr {
            EntryExpr::StructField(field) => field.optional || is_unknown(&field.value),
            EntryExpr::MapEntry(_) => false,
        }),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => false,
    }
}

fn is_unknown_map(map: &MapExpr) -> bool {
    map.entries.iter().any(|entry| matches!(&entry.expr, EntryExpr::MapEntry(entry) if entry.optional))
}

/// A part of the text.
enum Written {
    Plain(String),
    /// A value of the evaluator that may be there or not.
    Optional(String),
    /// The old value, which is null where there is none.
    Old,
}

impl Written {
    /// As the evaluator takes it.
    fn text(self) -> String {
        match self {
            Self::Plain(text) | Self::Optional(text) => text,
            Self::Old => optional(HAS_OLD, "oldSelf"),
        }
    }

    /// Whether it is there, and what it is.
    fn parts(&self) -> Option<(String, String)> {
        match self {
            Self::Plain(_) => None,
            Self::Optional(text) => Some((format!("{text}.hasValue()"), format!("{text}.value()"))),
            Self::Old => Some((format!("({HAS_OLD})"), "oldSelf".into())),
        }
    }
}

fn optional(condition: &str, value: &str) -> String {
    format!("({condition} ? optional.of({value}) : optional.none())")
}

/// How it is asked in what is written whether there is an old value.
const HAS_OLD: &str = "oldSelf != null";

struct Writer {
    /// The types of what is written may be asked for; none where there are no types.
    environment: Option<Environment>,
    /// What is written for variables, the innermost last.
    names: Vec<(String, String)>,
    n_names: usize,
    old_is_optional: bool,
    /// How much may still be written.
    left: usize,
}

impl Writer {
    fn plain(&mut self, tree: &IdedExpr) -> Result<String, String> {
        let text = self.of(tree)?.text();
        self.left = self.left.checked_sub(text.len()).ok_or("it is too long when it is written out")?;
        Ok(text)
    }

    fn all(&mut self, all: &[IdedExpr]) -> Result<Vec<String>, String> {
        all.iter().map(|one| self.plain(one)).collect()
    }

    fn of(&mut self, tree: &IdedExpr) -> Result<Written, String> {
        Ok(Written::Plain(match &tree.expr {
            Expr::Literal(literal) => literal_text(literal),
            Expr::Ident(name) => match self.names.iter().rev().find(|(known, _)| known == name) {
                Some((_, text)) => text.clone(),
                None if self.old_is_optional && name == "oldSelf" => return Ok(Written::Old),
                None => name.clone(),
            },
            Expr::Select(select) => return self.select(select),
            Expr::List(list) if list.optional_indices.is_empty() => {
                format!("[{}]", self.all(&list.elements)?.join(", "))
            }
            Expr::Map(map) if self.environment.is_none() && is_unknown_map(map) => self.map(map)?,
            Expr::Map(map) => {
                let mut entries = Vec::new();
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(entry) if !entry.optional => {
                            entries.push(format!("{}: {}", self.plain(&entry.key)?, self.plain(&entry.value)?));
                        }
                        _ => return Err("entries that may be left out".into()),
                    }
                }
                format!("{{{}}}", entries.join(", "))
            }
            Expr::List(list) => self.list(&list.elements, &list.optional_indices)?,
            Expr::Comprehension(inner) => self.comprehension(inner)?,
            Expr::Call(call) => return self.call(call),
            // What has no types takes an object for the map of its fields.
            Expr::Struct(made) if self.environment.is_none() => self.object(made)?,
            Expr::Struct(_) | Expr::Unspecified => return Err("objects with a type".into()),
        }))
    }

    /// A list of which items may be left out: lists of one or none, one after the other.
    fn list(&mut self, items: &[IdedExpr], optional: &[usize]) -> Result<String, String> {
        let mut parts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            parts.push(if optional.contains(&index) {
                let (there, value) = self.there(item)?;
                format!("({there} ? [{value}] : [])")
            } else {
                format!("[{}]", self.plain(item)?)
            });
        }
        Ok(format!("({})", parts.join(" + ")))
    }

    /// A map of which entries may be left out.
    fn map(&mut self, map: &MapExpr) -> Result<String, String> {
        let mut parts = Vec::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err("objects with a type".into()) };
            let key = self.plain(&entry.key)?;
            parts.push(if entry.optional {
                let (there, value) = self.there(&entry.value)?;
                format!("({there} ? [[{key}, {value}]] : [])")
            } else {
                format!("[[{key}, {}]]", self.plain(&entry.value)?)
            });
        }
        Ok(format!("{MAP_OF}({})", parts.join(" + ")))
    }

    fn object(&mut self, made: &StructExpr) -> Result<String, String> {
        let mut parts = Vec::new();
        for entry in &made.entries {
            let EntryExpr::StructField(field) = &entry.expr else { return Err("objects with keys".into()) };
            let key = Value::from(field.field.as_str());
            parts.push(if field.optional {
                let (there, value) = self.there(&field.value)?;
                format!("({there} ? [[{key}, {value}]] : [])")
            } else {
                format!("[[{key}, {}]]", self.plain(&field.value)?)
            });
        }
        let parts = if parts.is_empty() { "[]".to_owned() } else { parts.join(" + ") };
        Ok(format!("{MAP_OF}({parts})"))
    }

    /// Whether an optional value is there, and what it is.
    fn there(&mut self, tree: &IdedExpr) -> Result<(String, String), String> {
        let written = self.of(tree)?;
        Ok(written.parts().unwrap_or_else(|| {
            let text = written.text();
            (format!("{text}.hasValue()"), format!("{text}.value()"))
        }))
    }

    fn select(&mut self, select: &SelectExpr) -> Result<Written, String> {
        let (operand, field) = (self.of(&select.operand)?, &select.field);
        Ok(match (operand.parts(), select.test) {
            (None, true) => Written::Plain(format!("has({}.{field})", operand.text())),
            (None, false) => Written::Plain(format!("{}.{field}", operand.text())),
            (Some((there, value)), true) => Written::Plain(format!("({there} && has({value}.{field}))")),
            (Some((there, value)), false) => {
                Written::Optional(optional(&format!("{there} && has({value}.{field})"), &format!("{value}.{field}")))
            }
        })
    }

    fn call(&mut self, call: &CallExpr) -> Result<Written, String> {
        let name = call.func_name.as_str();
        match (name, call.target.as_deref(), call.args.as_slice()) {
            ("_?._", None, [of, field]) => {
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else {
                    return Err("a computed field".into());
                };
                let (field, of) = (field.inner(), self.of(of)?);
                let (there, value) = match of.parts() {
                    Some((there, value)) => (format!("{there} && "), value),
                    None => (String::new(), of.text()),
                };
                let condition = format!("{there}has({value}.{field})");
                Ok(Written::Optional(optional(&condition, &format!("{value}.{field}"))))
            }
            ("_[?_]", None, [of, key]) => self.optional_index(of, key),
            ("optMap" | "optFlatMap", Some(of), [variable, result]) => {
                let Some((there, value)) = self.of(of)?.parts() else { return Err(format!("{name} of a value")) };
                let result = self.named(variable, value, result)?;
                let made = if name == "optMap" { format!("optional.of({result})") } else { result };
                Ok(Written::Optional(format!("({there} ? {made} : optional.none())")))
            }
            ("sortBy", Some(of), [variable, key]) if self.environment.is_none() => {
                let (range, item) = (self.plain(of)?, self.new_name("item", Type::Dyn));
                let key = self.named(variable, item.clone(), key)?;
                Ok(Written::Plain(format!("{SORTED_BY}({range}, {range}.map({item}, {key}))")))
            }
            ("sortBy", ..) => Err("sortBy, which sorts by a key".into()),
            ("hasValue" | "value", Some(of), []) => {
                let of = self.of(of)?;
                let parts = of.parts();
                Ok(Written::Plain(match parts {
                    Some((there, value)) => {
                        if name == "value" {
                            value
                        } else {
                            there
                        }
                    }
                    None => format!("{}.{name}()", of.text()),
                }))
            }
            ("orValue", Some(of), [other]) => {
                let (of, other) = (self.of(of)?, self.plain(other)?);
                Ok(Written::Plain(match of.parts() {
                    Some((there, value)) => format!("({there} ? {value} : {other})"),
                    None => format!("{}.orValue({other})", of.text()),
                }))
            }
            (_, Some(range), [first, second, rest @ ..]) if PAIRS.contains(&name) && !rest.is_empty() => {
                Ok(Written::Plain(self.pairs(name, range, (first, second), rest)?))
            }
            _ => self.function(call),
        }
    }

    fn function(&mut self, call: &CallExpr) -> Result<Written, String> {
        let name = call.func_name.as_str();
        let arguments = self.all(&call.args)?;
        let infix = name.strip_prefix('_').and_then(|rest| rest.strip_suffix('_'));
        let text = match (name, arguments.as_slice(), &call.target) {
            ("_?_:_", [condition, one, other], None) => format!("({condition} ? {one} : {other})"),
            ("_[_]", [of, index], None) => format!("{of}[{index}]"),
            ("@in", [one, other], None) => format!("({one} in {other})"),
            ("!_" | "-_", [of], None) => format!("({}{of})", &name[..1]),
            (_, [one, other], None) if infix.is_some() => format!("({one} {} {other})", infix.unwrap_or_default()),
            (_, _, Some(target)) => format!("{}.{name}({})", self.plain(target)?, arguments.join(", ")),
            _ => format!("{name}({})", arguments.join(", ")),
        };
        let is_group = call
            .target
            .as_deref()
            .is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "optional"));
        let is_optional = is_group || ["first", "last", "validate", "or"].contains(&name);
        Ok(if is_optional { Written::Optional(text) } else { Written::Plain(text) })
    }

    /// Of lists and maps it is asked in two ways whether something is there.
    fn optional_index(&mut self, of: &IdedExpr, key: &IdedExpr) -> Result<Written, String> {
        let (of, key) = (self.of(of)?, self.plain(key)?);
        let (there, value) = match of.parts() {
            Some((there, value)) => (format!("{there} && "), value),
            None => (String::new(), of.text()),
        };
        let r#type = self.type_of(&value);
        let (of_list, of_map) = (format!("{key} >= 0 && {key} < size({value})"), format!("{key} in {value}"));
        let condition = match r#type {
            Type::List(_) => format!("{there}{of_list}"),
            Type::Map(..) => format!("{there}{of_map}"),
            _ if self.environment.is_none() => format!("{there}(type({value}) == list ? {of_list} : {of_map})"),
            _ => return Err("an optional index into what may be a list or a map".into()),
        };
        Ok(Written::Optional(optional(&condition, &format!("{value}[{key}]"))))
    }

    /// A loop with two variables: one over the indexes or the keys, and the value is looked up.
    fn pairs(
        &mut self,
        name: &str,
        range: &IdedExpr,
        (first, second): (&IdedExpr, &IdedExpr),
        rest: &[IdedExpr],
    ) -> Result<String, String> {
        let range = self.plain(range)?;
        let r#type = self.type_of(&range);
        let indexes = format!("lists.range(size({range}))");
        let (over, of_key) = match r#type {
            Type::List(_) => (indexes, Type::Int),
            Type::Map(key, _) => (range.clone(), *key),
            _ if self.environment.is_none() => {
                let keys = format!("{range}.map(key, key)");
                (format!("(type({range}) == list ? {indexes} : {keys})"), Type::Dyn)
            }
            _ => return Err(format!("{name} with two variables over what may be a list or a map")),
        };
        let (Expr::Ident(first), Expr::Ident(second)) = (&first.expr, &second.expr) else {
            return Err("a variable that is no name".into());
        };
        let key = self.new_name(first, of_key);
        let n_before = self.names.len();
        self.names.push((first.clone(), key.clone()));
        self.names.push((second.clone(), format!("{range}[{key}]")));
        let rest = self.all(rest);
        self.names.truncate(n_before);
        let rest = match (name, rest?.as_slice()) {
            ("transformMap", [before @ .., value]) => {
                let entry = format!("[{key}, {value}]");
                before.iter().cloned().chain([entry]).collect::<Vec<_>>().join(", ")
            }
            (_, rest) => rest.join(", "),
        };
        let called = match name {
            "transformList" => "map",
            "existsOne" => "exists_one",
            "transformMap" | "transformMapEntry" if self.environment.is_none() => {
                return Ok(format!("{MAP_OF}({over}.map({key}, {rest}))"));
            }
            "transformMap" | "transformMapEntry" => return Err(format!("{name}, which makes a map")),
            name => name,
        };
        Ok(format!("{over}.{called}({key}, {rest})"))
    }

    /// An expression with a variable that stands for a text.
    fn named(&mut self, variable: &IdedExpr, text: String, tree: &IdedExpr) -> Result<String, String> {
        let Expr::Ident(name) = &variable.expr else { return Err("a variable that is no name".into()) };
        self.names.push((name.clone(), text));
        let found = self.plain(tree);
        self.names.pop();
        found
    }

    /// A name that nothing else has in what is written.
    fn new_name(&mut self, name: &str, is: Type) -> String {
        self.n_names += 1;
        let name = format!("{name}_{}", self.n_names);
        self.environment = self.environment.take().map(|environment| environment.with(&name, is));
        name
    }

    /// The type of something that is written.
    fn type_of(&self, text: &str) -> Type {
        let Some(environment) = &self.environment else { return Type::Dyn };
        // A value that is there is of its own type, which may be none that can be compared with null.
        let text = text.replace(HAS_OLD, "true");
        crate::admission::checked(&text, environment).ok().flatten().unwrap_or(Type::Dyn)
    }

    /// A loop, as it was before the parser wrote it out.
    fn comprehension(&mut self, inner: &ComprehensionExpr) -> Result<String, String> {
        let unknown = || "a loop that is written in another way".to_owned();
        let Expr::Call(step) = &inner.loop_step.expr else { return Err(unknown()) };
        let (name, parts): (_, Vec<&IdedExpr>) = match (step.func_name.as_str(), step.args.as_slice()) {
            ("_&&_", [_, test]) => ("all", vec![test]),
            ("_||_", [_, test]) => ("exists", vec![test]),
            ("_?_:_", [test, _, _]) if matches!(inner.accu_init.expr, Expr::Literal(_)) => ("exists_one", vec![test]),
            ("_?_:_", [test, added, _]) => ("map", vec![test, appended(added).ok_or_else(unknown)?]),
            ("_+_", _) => ("map", vec![appended(&inner.loop_step).ok_or_else(unknown)?]),
            _ => return Err(unknown()),
        };
        let range = self.plain(&inner.iter_range)?;
        let item = match self.type_of(&range) {
            Type::List(item) => *item,
            Type::Map(key, _) => *key,
            _ => Type::Dyn,
        };
        let variable = self.new_name(&inner.iter_var, item);
        self.names.push((inner.iter_var.clone(), variable.clone()));
        let parts: Result<Vec<String>, String> = parts.into_iter().map(|part| self.plain(part)).collect();
        self.names.pop();
        Ok(format!("{range}.{name}({variable}, {})", parts?.join(", ")))
    }
}

/// What a step adds to the list that a loop makes.
fn appended(step: &IdedExpr) -> Option<&IdedExpr> {
    let Expr::Call(call) = &step.expr else { return None };
    let [_, IdedExpr { expr: Expr::List(list), .. }] = call.args.as_slice() else { return None };
    list.elements.first()
}

fn literal_text(literal: &LiteralValue) -> String {
    match literal {
        LiteralValue::Boolean(value) => value.inner().to_string(),
        LiteralValue::Bytes(bytes) => {
            let all: Vec<String> = bytes.inner().iter().map(|byte| format!("\\x{byte:02x}")).collect();
            format!("b\"{}\"", all.concat())
        }
        LiteralValue::Double(value) => format!("{:?}", value.inner()),
        LiteralValue::Int(value) => value.inner().to_string(),
        LiteralValue::Null => "null".into(),
        LiteralValue::String(text) => Value::from(text.inner()).to_string(),
        LiteralValue::UInt(value) => format!("{}u", value.inner()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(rule: &str, expected: Option<Result<&str, &str>>) {
        let schema = json!({ "type": "object", "properties": {
            "a": { "type": "string" },
            "list": { "type": "array", "items": { "type": "string" } },
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
        } });
        let found = rewritten(rule, &schema, false, rule.contains("oldSelf"));
        let found = found.as_ref().map(|found| found.as_ref().map(String::as_str).map_err(String::as_str));
        assert_eq!(found, expected, "{rule}");
    }

    #[test]
    fn what_is_not_known_is_said_otherwise() {
        check("self.list.all(a, a != '')", None);
        let optional = "(has(self.a) ? optional.of(self.a) : optional.none())";
        let expected = format!(r#"(({optional}.hasValue() ? {optional}.value() : "x") == "y")"#);
        check("self.?a.orValue('x') == 'y'", Some(Ok(&expected)));
        check(
            "self.list.all(i, a, i > 0 || a == 'x')",
            Some(Ok(r#"lists.range(size(self.list)).all(i_1, ((i_1 > 0) || (self.list[i_1] == "x")))"#)),
        );
        check(
            "self.map.exists(k, v, self.list.exists(k, k == v))",
            Some(Ok("self.map.exists(k_1, self.list.exists(k_2, (k_2 == self.map[k_1])))")),
        );
        check("oldSelf.orValue(self) == self", Some(Ok("(((oldSelf != null) ? oldSelf : self) == self)")));
        check("self.map.transformMap(k, v, v + 'x') == self.map", Some(Err("transformMap, which makes a map")));
    }
}
