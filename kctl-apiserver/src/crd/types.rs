//! The types of CEL rules: reads an expression and the schema that it is about, hands on its type or what does not fit.
//!
//! What is not known for certain is [`Type::Any`], which fits everywhere: a rule is refused only where the real server
//! refuses it, too.

use std::ptr;

use kctl_cel::plain_name;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

use super::pattern;

#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    Any,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Null,
    Time,
    Duration,
    Quantity,
    /// The type of a type.
    Kind,
    Optional,
    List(Box<Type<'a>>),
    /// Its values; keys are texts.
    Map(Box<Type<'a>>),
    /// The schema of an object, and whether it has metadata of its own.
    Object(&'a Value, bool),
}

impl<'a> Type<'a> {
    fn of(schema: &'a Value, whole: bool) -> Self {
        let flag = |key: &str| schema[key] == true;
        if flag("nullable") || flag("x-kubernetes-int-or-string") {
            return Self::Any;
        }
        match schema["type"].as_str().unwrap_or_default() {
            "boolean" => Self::Bool,
            "integer" => Self::Int,
            "number" => Self::Double,
            "string" => match schema["format"].as_str().unwrap_or_default() {
                "date" | "date-time" => Self::Time,
                "duration" => Self::Duration,
                "byte" => Self::Bytes,
                _ => Self::Text,
            },
            "array" => Self::List(Box::new(Self::of(&schema["items"], false))),
            "object" if schema["additionalProperties"].is_object() => {
                Self::Map(Box::new(Self::of(&schema["additionalProperties"], false)))
            }
            "object" => Self::Object(schema, whole || flag("x-kubernetes-embedded-resource")),
            _ => Self::Any,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Any => "dyn",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Null => "null",
            Self::Time => "timestamp",
            Self::Duration => "duration",
            Self::Quantity => "kubernetes.Quantity",
            Self::Kind => "type",
            Self::Optional => "optional_type",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Object(..) => "object",
        }
    }

    fn is_any(&self) -> bool {
        matches!(self, Self::Any)
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Uint | Self::Double)
    }

    /// Whether both may be the type of one value.
    fn fits(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _)
            | (_, Self::Any)
            | (Self::Null, Self::Object(..) | Self::Time | Self::Duration | Self::Quantity)
            | (Self::Object(..) | Self::Time | Self::Duration | Self::Quantity, Self::Null)
            | (Self::Map(_), Self::Object(..))
            | (Self::Object(..), Self::Map(_)) => true,
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => one.fits(other),
            (Self::Object(one, _), Self::Object(other, _)) => ptr::eq(*one, *other),
            (one, other) => one.name() == other.name(),
        }
    }
}

/// Names of types that are values, and groups of functions.
const NAMES: [&str; 19] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "type",
    "uint",
    "sets",
    "optional",
    "format",
    "ip",
    "google",
    "lists",
    "strings",
];
/// Functions that declare names; where the parser does not know one of their forms, nothing is known of it.
const MACROS: [&str; 10] = [
    "all",
    "exists",
    "existsOne",
    "exists_one",
    "filter",
    "map",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];
/// Functions without a rule of their own below.
const FUNCTIONS: &str = " add asApproximateFloat asInteger bool bytes charAt cidr compareTo contains containsCIDR distinct first flatten last lists.range quote range slice sort \
    containsIP dns1035Label dns1035LabelPrefix dns1123Label dns1123LabelPrefix dns1123Subdomain dns1123SubdomainPrefix dyn \
    endsWith equivalent exists family find findAll format getDate getDayOfMonth getDayOfWeek getDayOfYear getEscapedPath \
    getFullYear getHost getHostname getHours getMilliseconds getMinutes getMonth getPort getQuery getScheme getSeconds \
    hasValue indexOf intersects ip isCIDR isCanonical isGlobalUnicast isGreaterThan isIP isInteger \
    isLinkLocalMulticast isLinkLocalUnicast isLessThan isLoopback isQuantity isSemver isSorted isURL isUnspecified join \
    labelValue lastIndexOf lowerAscii major masked matches max min minor named of ofNonZeroValue none optFlatMap optMap or \
    orValue patch prefixLength qualifiedName replace semver sign split startsWith sub substring sum transformList \
    transformMap transformMapEntry trim unwrapOpt unwrap upperAscii uri url uuid validate value date datetime byte \
    @not_strictly_false ";

/// The type of a rule, or of the expression of its message.
///
/// # Errors
/// What does not fit, in words like those of the real server.
pub(super) fn of_rule<'a>(
    tree: &IdedExpr,
    schema: &'a Value,
    whole: bool,
    old_is_optional: bool,
) -> Result<Type<'a>, String> {
    Scope::of_rule(schema, whole, old_is_optional).of(tree)
}

/// The variables, the innermost last.
#[derive(Clone)]
pub(super) struct Scope<'a>(Vec<(String, Type<'a>)>);

impl<'a> Scope<'a> {
    pub(super) fn of_rule(schema: &'a Value, whole: bool, old_is_optional: bool) -> Self {
        let own = Type::of(schema, whole);
        let old = if old_is_optional { Type::Optional } else { own.clone() };
        Self(vec![("self".into(), own), ("oldSelf".into(), old)])
    }

    /// One in which everything has a name, and nothing a type.
    pub(super) fn without_types() -> Self {
        Self(Vec::new())
    }

    pub(super) fn has_no_types(&self) -> bool {
        self.known("self").is_none()
    }

    pub(super) fn with(&self, name: &str, is: Type<'a>) -> Self {
        let mut all = self.clone();
        all.0.push((name.into(), is));
        all
    }

    fn known(&self, name: &str) -> Option<Type<'a>> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, is)| is.clone())
    }

    /// The type of an expression.
    ///
    /// # Errors
    /// What does not fit.
    pub(super) fn of(&self, tree: &IdedExpr) -> Result<Type<'a>, String> {
        match &tree.expr {
            Expr::Unspecified | Expr::Struct(_) => Ok(Type::Any),
            Expr::Ident(name) => match self.known(name) {
                Some(found) => Ok(found),
                None if NAMES.contains(&name.as_str()) => Ok(Type::Kind),
                None => Err(format!("undeclared reference to '{name}' (in container '')")),
            },
            Expr::Literal(value) => Ok(literal(value)),
            Expr::Select(select) => {
                let operand = self.of(&select.operand)?;
                let found = field(&operand, &select.field)?;
                Ok(if select.test { Type::Bool } else { found })
            }
            Expr::List(list) => {
                let items = list.elements.iter().map(|item| self.of(item)).collect::<Result<Vec<_>, _>>()?;
                Ok(Type::List(Box::new(one_of(&items)?)))
            }
            Expr::Map(map) => {
                let mut values = Vec::new();
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.of(&entry.key)?;
                        values.push(self.of(&entry.value)?);
                    }
                }
                Ok(Type::Map(Box::new(one_of(&values)?)))
            }
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::Call(call) => self.call(call),
        }
    }

    fn comprehension(&self, inner: &ComprehensionExpr) -> Result<Type<'a>, String> {
        let (key, value) = match self.of(&inner.iter_range)? {
            Type::List(item) => (Type::Int, *item),
            Type::Map(value) => (Type::Text, *value),
            Type::Any => (Type::Any, Type::Any),
            // With one name, objects have none to go through, either.
            other => return Err(format!("expression of type '{}' cannot be range of a comprehension", other.name())),
        };
        let is_map = matches!(key, Type::Text);
        let accumulated = self.of(&inner.accu_init)?;
        let mut scope = match &inner.iter_var2 {
            Some(second) => self.with(&inner.iter_var, key).with(second, value),
            None => self.with(&inner.iter_var, if is_map { key } else { value }),
        };
        scope = scope.with(&inner.accu_var, accumulated);
        let step = scope.of(&inner.loop_step)?;
        self.with(&inner.accu_var, step).of(&inner.result)
    }

    fn call(&self, call: &CallExpr) -> Result<Type<'a>, String> {
        let name = call.func_name.as_str();
        if MACROS.contains(&name) {
            return Ok(Type::Any);
        }
        constant(name, &call.args)?;
        // A group of functions is no variable.
        let group = call.target.as_deref().and_then(|target| match &target.expr {
            Expr::Ident(group) if self.known(group).is_none() => Some(group.as_str()),
            _ => None,
        });
        if let Some(group) = group.filter(|group| !NAMES.contains(group)) {
            return Err(format!("undeclared reference to '{group}' (in container '')"));
        }
        let target = call.target.as_deref().filter(|_| group.is_none()).map(|target| self.of(target)).transpose()?;
        let is_member = target.is_some();
        let mut all: Vec<Type<'a>> = target.into_iter().collect();
        for argument in &call.args {
            all.push(self.of(argument)?);
        }
        let unfit = || {
            let shown: Vec<&str> = all.iter().map(Type::name).collect();
            let shown = match shown.as_slice() {
                [target, rest @ ..] if is_member => format!("{target}.({})", rest.join(", ")),
                all => format!("({})", all.join(", ")),
            };
            format!("found no matching overload for '{name}' applied to '{shown}'")
        };
        if group == Some("sets") {
            return match all.as_slice() {
                [one, other] if !one.fits(other) => Err(unfit()),
                _ => Ok(Type::Bool),
            };
        }
        if let Ok(found) = operator(name, &all).or_else(|_| function(name, &all, is_member)) {
            return found.ok_or_else(unfit);
        }
        if FUNCTIONS.split_whitespace().any(|known| known == name) {
            return Ok(Type::Any);
        }
        Err(format!("undeclared reference to '{name}' (in container '')"))
    }
}

/// What the real server evaluates of constants when it compiles a rule.
fn constant(name: &str, arguments: &[IdedExpr]) -> Result<(), String> {
    let [IdedExpr { expr: Expr::Literal(LiteralValue::String(text)), .. }] = arguments else { return Ok(()) };
    let text: &str = text.inner();
    let is_right = match name {
        "matches" => pattern::is_valid(text),
        "timestamp" => text.parse::<jiff::Timestamp>().is_ok(),
        "duration" => text.parse::<jiff::SignedDuration>().is_ok() || text == "0",
        _ => true,
    };
    if is_right { Ok(()) } else { Err(format!("invalid {name} argument")) }
}

fn literal<'a>(value: &LiteralValue) -> Type<'a> {
    match value {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// The one type of several values.
fn one_of<'a>(all: &[Type<'a>]) -> Result<Type<'a>, String> {
    let known = all.iter().find(|one| !one.is_any()).cloned().unwrap_or(Type::Any);
    match all.iter().find(|one| !one.fits(&known)) {
        Some(other) => Err(format!("expected type '{}' but found '{}'", known.name(), other.name())),
        None => Ok(known),
    }
}

/// The type of a field.
fn field<'a>(of: &Type<'a>, name: &str) -> Result<Type<'a>, String> {
    match of {
        Type::Any | Type::Kind => Ok(Type::Any),
        Type::Map(value) => Ok(Type::clone(value)),
        Type::Object(schema, whole) => {
            let plain = plain_name(name);
            match (&schema["properties"][plain.as_str()], *whole, name) {
                (_, true, "apiVersion" | "kind") => Ok(Type::Text),
                (_, true, "metadata") => Ok(Type::Object(&METADATA, false)),
                (found, _, _)
                    if found.is_object()
                        && (found["type"].is_string() || found["x-kubernetes-int-or-string"] == true) =>
                {
                    Ok(Type::of(found, false))
                }
                _ => Err(format!("undefined field '{name}'")),
            }
        }
        other => Err(format!("type '{}' does not support field selection", other.name())),
    }
}

/// Of its metadata, an object shows these to its rules.
static METADATA: std::sync::LazyLock<Value> = std::sync::LazyLock::new(
    || serde_json::json!({ "type": "object", "properties": { "name": { "type": "string" }, "generateName": { "type": "string" } } }),
);

/// It is another function.
struct Other;

/// What an operator makes of its operands; nothing when they do not fit.
fn operator<'a>(name: &str, all: &[Type<'a>]) -> Result<Option<Type<'a>>, Other> {
    let are = |wanted: &Type<'_>| all.iter().all(|one| one.fits(wanted));
    let alike = |known: &dyn Fn(&Type<'_>) -> bool| {
        all.iter().all(|one| one.is_any() || known(one)) && all.iter().all(|one| one.fits(&all[0]))
    };
    let first = || all.iter().find(|one| !one.is_any()).cloned().unwrap_or(Type::Any);
    let times = |one: &Type<'_>| matches!(one, Type::Time | Type::Duration | Type::Any);
    Ok(match (name, all) {
        ("_&&_" | "_||_" | "!_", _) => are(&Type::Bool).then_some(Type::Bool),
        ("_?_:_", [condition, one, other]) => (condition.fits(&Type::Bool) && one.fits(other))
            .then(|| if one.is_any() { other.clone() } else { one.clone() }),
        ("_==_" | "_!=_", [one, other]) => one.fits(other).then_some(Type::Bool),
        ("_<_" | "_<=_" | "_>_" | "_>=_", [one, other]) => {
            let ordered = |one: &Type<'_>| {
                matches!(one, Type::Bool | Type::Text | Type::Bytes | Type::Time | Type::Duration) || one.is_number()
            };
            (alike(&ordered) || (one.is_number() && other.is_number())).then_some(Type::Bool)
        }
        ("_+_" | "_-_", [one, other]) if times(one) && times(other) => Some(Type::Any),
        ("_+_", [..]) => {
            let added = |one: &Type<'_>| matches!(one, Type::Text | Type::Bytes | Type::List(_)) || one.is_number();
            alike(&added).then(|| match all {
                [Type::List(one), other @ Type::List(_)] if one.is_any() => other.clone(),
                _ => first(),
            })
        }
        ("_-_" | "_*_" | "_/_", [..]) => alike(&|one: &Type<'_>| one.is_number()).then(first),
        ("-_", [one]) => (one.is_any() || matches!(one, Type::Int | Type::Double)).then(first),
        ("_%_", [..]) => alike(&|one: &Type<'_>| matches!(one, Type::Int | Type::Uint)).then(first),
        ("@in", [one, Type::List(item)]) => one.fits(item).then_some(Type::Bool),
        ("@in", [one, Type::Map(_)]) => one.fits(&Type::Text).then_some(Type::Bool),
        ("@in", [_, range]) => range.is_any().then_some(Type::Bool),
        ("_[_]", [Type::List(item), index]) => index.fits(&Type::Int).then(|| Type::clone(item)),
        ("_[_]", [Type::Map(value), key]) => key.fits(&Type::Text).then(|| Type::clone(value)),
        ("_[_]", [of, _]) => of.is_any().then_some(Type::Any),
        _ => return Err(Other),
    })
}

/// The same of a function by its name.
fn function<'a>(name: &str, all: &[Type<'a>], is_member: bool) -> Result<Option<Type<'a>>, Other> {
    let texts = |count: usize| all.len() == count && all.iter().all(|one| one.fits(&Type::Text));
    Ok(match (name, all) {
        ("size", [one]) => {
            let sized = matches!(one, Type::Text | Type::Bytes | Type::List(_) | Type::Map(_) | Type::Any);
            sized.then_some(Type::Int)
        }
        ("startsWith" | "endsWith" | "matches", _) if is_member => texts(2).then_some(Type::Bool),
        ("lowerAscii" | "upperAscii" | "trim", _) if is_member => texts(1).then_some(Type::Text),
        ("int", [_]) => Some(Type::Int),
        ("uint", [_]) => Some(Type::Uint),
        ("double", [_]) => Some(Type::Double),
        ("string", [_]) => Some(Type::Text),
        ("timestamp", [_]) => Some(Type::Time),
        ("duration", [_]) => Some(Type::Duration),
        ("quantity", [_]) => Some(Type::Quantity),
        ("type", [_]) => Some(Type::Kind),
        _ => return Err(Other),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(rule: &str, expected: Result<&str, &str>) {
        let schema = json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "n": { "type": "integer" },
            "either": { "x-kubernetes-int-or-string": true },
            "since": { "type": "string", "format": "date-time" },
            "hosts": { "type": "array", "items": { "type": "string" } },
            "labels": { "type": "object", "additionalProperties": { "type": "string" } },
            "my-name": { "type": "string" },
        } });
        let tree = crate::admission::tree(rule).unwrap();
        let found = of_rule(&tree, &schema, false, false).map(|found| found.name());
        assert_eq!(found.as_ref().map(|found| *found).map_err(String::as_str), expected, "{rule}");
    }

    #[test]
    fn rules_have_the_types_of_their_schema() {
        check("self.name == 'a'", Ok("bool"));
        check("self.either == 1 || self.either == 'a'", Ok("bool"));
        check("self.hosts.all(host, host.startsWith('a'))", Ok("bool"));
        check("self.hosts.map(host, size(host))[0] + 1", Ok("int"));
        check("self.labels.exists(key, self.labels[key] == 'a')", Ok("bool"));
        check("self.my__dash__name", Ok("string"));
        check("self.since > timestamp('2020-01-01T00:00:00Z')", Ok("bool"));
        check("1u < self.n", Ok("bool"));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        check("self.n == 'a'", Err("found no matching overload for '_==_' applied to '(int, string)'"));
        check("self.nothing == 1", Err("undefined field 'nothing'"));
        check("other == 1", Err("undeclared reference to 'other' (in container '')"));
        check("self.hosts.all(host, host)", Err("found no matching overload for '_&&_' applied to '(bool, string)'"));
        check("self.name.all(letter, true)", Err("expression of type 'string' cannot be range of a comprehension"));
        check("self.name.reverse() == 'a'", Err("undeclared reference to 'reverse' (in container '')"));
        check("self.name.matches('[')", Err("invalid matches argument"));
    }
}
