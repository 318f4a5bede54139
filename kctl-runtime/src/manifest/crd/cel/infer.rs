//! The type of an expression, and what has none: unknown fields, variables and functions, and operators between types that
//! they do not know.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::{
    library::{Parsed, overloads},
    types::Type,
};
use crate::manifest::crd::defaults::pattern;

/// What was found out about an expression.
pub(super) struct Inferred {
    pub(super) result: Type,
    /// What is wrong, and what to write.
    pub(super) errors: Vec<(String, String)>,
    pub(super) uses_old: bool,
}

/// Gives an expression about a value of this type its type.
pub(super) fn infer(expression: &IdedExpr, own: &Type, is_old_optional: bool) -> Inferred {
    let old = if is_old_optional { Type::optional(own.clone()) } else { own.clone() };
    let variables = vec![("self".to_owned(), own.clone()), ("oldSelf".to_owned(), old)];
    let mut scope = Scope { variables, errors: Vec::new(), uses_old: false };
    let result = scope.of(expression);
    Inferred { result, errors: scope.errors, uses_old: scope.uses_old }
}

struct Scope {
    variables: Vec<(String, Type)>,
    errors: Vec<(String, String)>,
    uses_old: bool,
}

/// Names that are types when no variable has them.
const TYPE_NAMES: [&str; 14] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "type",
    "uint",
    "optional_type",
];

impl Scope {
    fn error(&mut self, what: String, help: impl Into<String>) -> Type {
        self.errors.push((what, help.into()));
        Type::Any
    }

    fn of(&mut self, expression: &IdedExpr) -> Type {
        match &expression.expr {
            Expr::Unspecified => Type::Any,
            Expr::Literal(literal) => of_literal(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::List(list) => {
                let mut items: Vec<Type> = list.elements.iter().map(|item| self.of(item)).collect();
                for index in &list.optional_indices {
                    if let Some(item) = items.get_mut(*index) {
                        *item = self.left_out(item.clone());
                    }
                }
                Type::list(self.one_type("list", items))
            }
            Expr::Map(map) => {
                let (mut keys, mut values) = (Vec::new(), Vec::new());
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        keys.push(self.of(&entry.key));
                        let value = self.of(&entry.value);
                        values.push(if entry.optional { self.left_out(value) } else { value });
                    }
                }
                Type::map(self.one_type("map", keys), self.one_type("map", values))
            }
            Expr::Struct(value) => {
                let what = format!("there is no type `{}`", value.type_name);
                self.error(what, "rules make no objects")
            }
            Expr::Select(select) => {
                let of = self.of(&select.operand);
                let field = self.field(&of, &select.field);
                if select.test { Type::Plain("bool") } else { field }
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// What is in a list or a map where `?` is before an optional value that is there.
    fn left_out(&mut self, value: Type) -> Type {
        match value {
            Type::Any => Type::Any,
            Type::Optional(of) => (*of).clone(),
            other => self.error(format!("`?` before a {other}"), "leave out `?`, or write an optional value"),
        }
    }

    /// The type of all items of a literal.
    fn one_type(&mut self, what: &str, items: Vec<Type>) -> Type {
        let Some(first) = items.first().filter(|_| self.errors.is_empty()) else { return Type::Any };
        // What is known only when it is evaluated goes with nothing else.
        let is_other =
            |item: &Type| (*item == Type::Any) != (*first == Type::Any) || !fits(first, item, &mut BTreeMap::new());
        let other = items.iter().find(|item| is_other(item));
        if let Some(other) = other {
            let what = format!("a {what} of {first} and {other}");
            return self.error(what, "write values of one type, or `dyn(…)`");
        }
        common(items.into_iter())
    }

    /// Texts that are read when the rule is: regular expressions, times and durations.
    fn literal_argument(&mut self, call: &CallExpr) {
        let Some(Expr::Literal(LiteralValue::String(text))) = call.args.last().map(|argument| &argument.expr) else {
            return;
        };
        let text = text.inner();
        let wrong = match call.func_name.as_str() {
            "matches" => pattern(text).err().map(|error| format!("`{text}` is no regular expression: {error}")),
            "timestamp" => text.parse::<Timestamp>().err().map(|_| format!("`{text}` is no time")),
            "duration" => (!is_duration(text)).then(|| format!("`{text}` is no duration")),
            _ => None,
        };
        if let Some(what) = wrong {
            self.error(what, "write for example `^[a-z]+$`, `2030-01-01T00:00:00Z` or `1h30m`");
        }
    }

    fn variable(&mut self, name: &str) -> Type {
        self.uses_old |= name == "oldSelf";
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        if let Some((_, found)) = found {
            return found.clone();
        }
        if TYPE_NAMES.contains(&name) {
            return Type::Plain("type");
        }
        self.error(format!("there is no variable `{name}`"), format!("write `self.{name}`, if it is a field"))
    }

    fn field(&mut self, of: &Type, name: &str) -> Type {
        match of {
            Type::Any => Type::Any,
            Type::Object(fields) => {
                if let Some(field) = fields.get(name) {
                    return field.clone();
                }
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                let help = if known.is_empty() {
                    "the type has no fields".into()
                } else {
                    format!("the fields are {}", known.join(", "))
                };
                self.error(format!("there is no field `{name}`"), help)
            }
            Type::Map(_, value) => (**value).clone(),
            Type::Optional(of) => Type::optional(self.field(&of.clone(), name)),
            other => {
                self.error(format!("`{name}` of a {other}, which has no fields"), "use a field of an object or a map")
            }
        }
    }

    fn call(&mut self, call: &CallExpr) -> Type {
        if let Some(result) = self.macro_of(call) {
            return result;
        }
        if call.func_name == "_?._"
            && let [of, name] = call.args.as_slice()
            && let Expr::Literal(LiteralValue::String(name)) = &name.expr
        {
            let of = self.of(of);
            let field = self.field(&of, name.inner());
            return if matches!(field, Type::Optional(_)) { field } else { Type::optional(field) };
        }
        self.literal_argument(call);
        // A method, unless what is before the dot is the name of a library.
        let mut name = call.func_name.clone();
        let mut arguments = Vec::new();
        if let Some(target) = &call.target {
            match &target.expr {
                Expr::Ident(library) if self.is_library(library, &call.func_name) => name = format!("{library}.{name}"),
                _ => {
                    arguments.push(self.of(target));
                    name = format!(".{name}");
                }
            }
        }
        arguments.extend(call.args.iter().map(|argument| self.of(argument)));
        let compares = ["_<=_", "_>_", "_>=_"].contains(&name.as_str());
        let known = overloads(if compares { "_<_" } else { &name });
        if known.is_empty() {
            return self.error(
                format!("there is no function `{}`", name.trim_start_matches('.')),
                "see the CEL functions of Kubernetes",
            );
        }
        let results: Vec<Type> =
            known.iter().filter_map(|overload| apply(&overload.parameters, &overload.result, &arguments)).collect();
        match results.as_slice() {
            [] => {
                let types: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                let what = format!("`{}` does not go with {}", spoken(&name), types.join(" and "));
                self.error(what, "compare values of one type: `int(…)`, `string(…)` and `double(…)` convert")
            }
            [first, rest @ ..] if rest.iter().all(|other| other == first) => first.clone(),
            _ => Type::Any,
        }
    }

    fn is_library(&self, library: &str, function: &str) -> bool {
        let is_variable = self.variables.iter().any(|(known, _)| known == library);
        !is_variable && !overloads(&format!("{library}.{function}")).is_empty()
    }

    /// What cel-go expands and this parser does not: it names variables of its own.
    fn macro_of(&mut self, call: &CallExpr) -> Option<Type> {
        let target = call.target.as_deref();
        let name = |expression: &IdedExpr| match &expression.expr {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        };
        match (call.func_name.as_str(), target, call.args.as_slice()) {
            ("optMap" | "optFlatMap", Some(target), [variable, result]) => {
                let of = match self.of(target) {
                    Type::Optional(of) => (*of).clone(),
                    _ => Type::Any,
                };
                let result = self.within(vec![(name(variable)?, of)], result);
                Some(if call.func_name == "optMap" { Type::optional(result) } else { result })
            }
            ("all" | "exists" | "existsOne" | "exists_one", Some(target), [first, second, test]) => {
                let variables = self.pair(target, name(first)?, name(second)?);
                let test = self.within(variables, test);
                if !test.is("bool") {
                    self.error(format!("`{}` tests a {test}", call.func_name), "compare something");
                }
                Some(Type::Plain("bool"))
            }
            ("transformList" | "transformMap", Some(target), [first, second, .., result]) => {
                let variables = self.pair(target, name(first)?, name(second)?);
                let key = variables.first().map_or(Type::Any, |(_, key)| key.clone());
                if let [_, _, test, _] = call.args.as_slice() {
                    self.within(variables.clone(), test);
                }
                let value = self.within(variables, result);
                Some(if call.func_name == "transformList" { Type::list(value) } else { Type::map(key, value) })
            }
            ("transformMapEntry", Some(target), [first, second, .., result]) => {
                let variables = self.pair(target, name(first)?, name(second)?);
                Some(self.within(variables, result))
            }
            ("sortBy", Some(target), [variable, key]) => {
                let list = self.of(target);
                let item = if let Type::List(item) = &list { (**item).clone() } else { Type::Any };
                self.within(vec![(name(variable)?, item)], key);
                Some(list)
            }
            _ => None,
        }
    }

    /// The two variables of a loop: index and item, or key and value.
    fn pair(&mut self, range: &IdedExpr, first: String, second: String) -> Vec<(String, Type)> {
        let (key, value) = match self.of(range) {
            Type::List(item) => (Type::Plain("int"), (*item).clone()),
            Type::Map(key, value) => ((*key).clone(), (*value).clone()),
            _ => (Type::Any, Type::Any),
        };
        vec![(first, key), (second, value)]
    }

    fn within(&mut self, variables: Vec<(String, Type)>, expression: &IdedExpr) -> Type {
        let before = self.variables.len();
        self.variables.extend(variables);
        let result = self.of(expression);
        self.variables.truncate(before);
        result
    }

    fn comprehension(&mut self, comprehension: &ComprehensionExpr) -> Type {
        let item = match self.of(&comprehension.iter_range) {
            Type::Any => Type::Any,
            Type::List(item) => (*item).clone(),
            Type::Map(key, _) => (*key).clone(),
            other => self.error(format!("a {other} has no items"), "go through a list or a map"),
        };
        let start = self.of(&comprehension.accu_init);
        let variables = |so_far: &Type| {
            vec![(comprehension.accu_var.clone(), so_far.clone()), (comprehension.iter_var.clone(), item.clone())]
        };
        self.within(variables(&start), &comprehension.loop_cond);
        let step = self.within(variables(&start), &comprehension.loop_step);
        let so_far = common([start, step].into_iter());
        self.within(variables(&so_far), &comprehension.result)
    }
}

/// As Go writes them: `1h30m`, `-1.5s`.
fn is_duration(text: &str) -> bool {
    let mut rest = text.trim_start_matches(['-', '+']);
    if rest == "0" {
        return true;
    }
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|char: char| char.is_ascii_digit() || char == '.').len();
        let unit = ["ns", "us", "µs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|unit| rest[digits..].starts_with(unit))
            .max_by_key(|unit| unit.len());
        let Some(unit) = unit.filter(|_| rest[..digits].parse::<f64>().is_ok()) else { return false };
        rest = &rest[digits + unit.len()..];
    }
    !text.is_empty()
}

fn of_literal(literal: &LiteralValue) -> Type {
    Type::Plain(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::Null => "null_type",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
    })
}

/// The type of values of several: their own where it is one, else it is known only when it is evaluated.
fn common(types: impl Iterator<Item = Type>) -> Type {
    types.reduce(join).unwrap_or(Type::Any)
}

fn join(one: Type, other: Type) -> Type {
    match (one, other) {
        (Type::Any, known) | (known, Type::Any) => known,
        (Type::List(one), Type::List(other)) => Type::list(join((*one).clone(), (*other).clone())),
        (one, other) if one == other => one,
        _ => Type::Any,
    }
}

/// The result of an overload, if the arguments fit.
fn apply(parameters: &[Parsed], result: &Parsed, arguments: &[Type]) -> Option<Type> {
    if parameters.len() != arguments.len() {
        return None;
    }
    let mut bound = BTreeMap::new();
    let fits =
        parameters.iter().zip(arguments).all(|(parameter, argument)| fits(&parameter.to_type(), argument, &mut bound));
    fits.then(|| substitute(&result.to_type(), &bound))
}

fn fits(parameter: &Type, argument: &Type, bound: &mut BTreeMap<char, Type>) -> bool {
    match (parameter, argument) {
        (Type::Variable(name), argument) => match bound.get(name).cloned() {
            None | Some(Type::Any) => {
                bound.insert(*name, argument.clone());
                true
            }
            Some(known) => fits(&known, argument, bound) || fits(argument, &known, bound),
        },
        // Messages, and what is one in CEL, may be null.
        (Type::Any, _)
        | (_, Type::Any)
        | (Type::Plain("null_type"), Type::Object(_) | Type::Plain("timestamp" | "duration"))
        | (Type::Object(_) | Type::Plain("timestamp" | "duration"), Type::Plain("null_type")) => true,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => fits(one, other, bound),
        (Type::Map(key, value), Type::Map(other, of)) => fits(key, other, bound) && fits(value, of, bound),
        (one, other) => one == other,
    }
}

fn substitute(of: &Type, bound: &BTreeMap<char, Type>) -> Type {
    match of {
        Type::Variable(name) => bound.get(name).cloned().unwrap_or(Type::Any),
        Type::List(item) => Type::list(substitute(item, bound)),
        Type::Optional(item) => Type::optional(substitute(item, bound)),
        Type::Map(key, value) => Type::map(substitute(key, bound), substitute(value, bound)),
        other => other.clone(),
    }
}

/// An operator as it is written.
fn spoken(name: &str) -> &str {
    match name {
        "_?_:_" => "? :",
        "_[_]" => "[ ]",
        "@in" => "in",
        name => name.trim_matches(['_', '.']),
    }
}
