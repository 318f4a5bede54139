//! CEL expressions of webhooks and policies: compiles a text once, hands on what it says about a request.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, ParseErrors, Program,
        common::ast::IdedExpr,
        objects::{Key, Map},
        parser::Parser,
    },
};
use parking_lot::Mutex;
use regex::Regex;
use serde_json::Value;

use super::{authorizer, messages};
use crate::crd::cost::{Budget, Dear, Part, cost};

/// Programs that are kept; beyond it all are compiled anew when they are needed.
const PROGRAMS_LEN_MAX: usize = 1_000;

/// Longest expression that is evaluated on the stack of its caller.
const INLINE_LEN_MAX: usize = 60;
/// The stack for parsing and evaluation: enough for what [`super::beyond`] lets through.
const STACK_LEN: usize = 64 * 1024 * 1024;

pub(crate) use kube_cel::cel::Value as Cel;

type Compiled = Arc<Result<Code, String>>;

/// An expression that has been read.
struct Code {
    program: Program,
    /// The same, in which messages are maps: the evaluator knows no messages.
    expression: IdedExpr,
}

static PROGRAMS: LazyLock<Mutex<HashMap<String, Compiled>>> = LazyLock::new(Mutex::default);

/// What expressions see.
pub(crate) struct Scope {
    context: Context<'static>,
    /// The variables once more: the evaluator does not hand them out.
    known: HashMap<String, Cel>,
}

/// Why an expression says nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// In the words of the real server, without the expression.
    Fails(String),
    /// What all expressions together may cost is spent.
    Spent,
}

/// What is said where the budget is spent (`environment.ErrOutOfBudget`).
pub(crate) const SPENT: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
/// What is said of one expression that costs too much.
pub(super) const CANCELLED: &str = "operation cancelled: actual cost limit exceeded";

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fails(why) => why,
            Self::Spent => SPENT,
        })
    }
}

impl Scope {
    /// A scope with these variables.
    pub(crate) fn new<'a>(variables: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut scope = Self { context: Context::default().with_all(), known: HashMap::new() };
        for (name, value) in variables {
            scope.set(name, to_cel(value));
        }
        scope
    }

    /// Functions and variables of another concept.
    pub(super) fn context(&mut self) -> &mut Context<'static> {
        &mut self.context
    }

    pub(crate) fn set(&mut self, name: &str, value: Cel) {
        self.known.insert(name.to_owned(), value.clone());
        self.context.add_variable_from_value(name, value);
    }

    /// What an expression costs, by the values of the variables.
    ///
    /// # Errors
    /// Too much. An expression that cannot be read is free.
    pub(super) fn cost(&self, expression: &str) -> Result<usize, Dear> {
        let compiled = compiled(expression);
        let Ok(code) = compiled.as_ref() else { return Ok(0) };
        let known = self.known.iter().map(|(name, value)| (name.as_str(), Some(Part::Cel(value))));
        cost(&code.expression, known.collect())
    }

    /// What an expression says, whatever it costs.
    ///
    /// # Errors
    /// In the words of the real server, without the expression.
    pub(crate) fn evaluate(&self, expression: &str) -> Result<Cel, String> {
        match compiled(expression).as_ref() {
            Ok(code) => self.execute(code, expression).map_err(|error| match error {
                ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                ExecutionError::NoSuchOverload => "no such overload".to_owned(),
                ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
                ExecutionError::IndexOutOfBounds(index) => match index {
                    Cel::Int(index) => format!("index out of bounds: {index}"),
                    other => format!("index out of bounds: {other:?}"),
                },
                other => other.to_string(),
            }),
            Err(why) => Err(format!("compilation failed: {why}")),
        }
    }
}

impl Scope {
    /// Runs a program; long ones on a stack of their own, since each operator may be a level of the evaluator.
    fn execute(&self, code: &Code, expression: &str) -> Result<Cel, ExecutionError> {
        if expression.len() <= INLINE_LEN_MAX {
            return Cel::resolve(&code.expression, &self.context);
        }
        std::thread::scope(|threads| {
            let evaluator = std::thread::Builder::new().stack_size(STACK_LEN);
            let run = || Cel::resolve(&code.expression, &self.context);
            let running = evaluator.spawn_scoped(threads, run);
            let joined =
                running.map_err(|error| error.to_string()).and_then(|run| run.join().map_err(|_| "it gave up".into()));
            joined.unwrap_or_else(|why: String| Err(ExecutionError::function_error("evaluate", why)))
        })
    }
}

/// Names that are declared by a macro, such as the `x` of `all(x, …)`.
static DECLARED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\.(?:all|exists|exists_one|existsOne|filter|map|sortBy|transformList|transformMap)\(\s*([A-Za-z_]\w*)(?:\s*,\s*([A-Za-z_]\w*))?")
        .expect("the pattern is right")
});

/// Why an expression may not be stored: it does not compile, names what is not there, or is plainly of another type
/// than `wanted`. Types are known of expressions without variables only.
pub(crate) fn problem(expression: &str, variables: &[&str], wanted: &[&str]) -> Option<String> {
    let compiled = compiled(expression);
    let code = match compiled.as_ref() {
        Ok(code) => code,
        Err(why) => return Some(format!("compilation failed: {why}")),
    };
    if let Some(why) = messages::problem(&code.program, expression, variables) {
        return Some(format!("compilation failed: {why}"));
    }
    let program = &code.program;
    let declared: Vec<&str> = DECLARED
        .captures_iter(expression)
        .flat_map(|found| [found.get(1), found.get(2)].into_iter().flatten().map(|name| name.as_str()))
        .collect();
    let references = program.references();
    let used = references.variables();
    let unknown =
        used.iter().filter(|name| !variables.contains(*name) && !declared.contains(*name) && !TYPES.contains(*name));
    let first = unknown.filter(|name| !name.starts_with('@')).min_by_key(|name| position(expression, name));
    if let Some(name) = first {
        let at = position(expression, name);
        let line = expression.lines().next().unwrap_or_default();
        return Some(format!(
            "compilation failed: ERROR: <input>:1:{}: undeclared reference to '{name}' (in container '')\n | {line}\n | {}^",
            at + 1,
            ".".repeat(at)
        ));
    }
    let or = wanted.join(" or ");
    let told = |found: String| {
        (!wanted.is_empty() && !wanted.contains(&found.as_str()))
            .then(|| format!("must evaluate to {or} but got {found}"))
    };
    match authorizer::type_of(program.expression(), expression) {
        Err(why) => return Some(format!("compilation failed: {why}")),
        Ok(Some(found)) => return told(found.into()),
        Ok(None) => {}
    }
    if !used.is_empty() || messages::holds(program.expression()).is_some() {
        return None;
    }
    told(type_of(&program.execute(&Context::default().with_all()).ok()?))
}

/// Names of types, which are values too.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "string", "timestamp"];

fn position(expression: &str, name: &str) -> usize {
    let pattern = Regex::new(&format!(r"(?:^|[^.\w]){}\b", regex::escape(name)));
    let found = pattern.ok().and_then(|pattern| pattern.find(expression).map(|found| found.end() - name.len()));
    found.unwrap_or(0)
}

fn type_of(value: &Cel) -> String {
    let simple = match value {
        Cel::List(items) => {
            let mut types: Vec<String> = items.iter().map(type_of).collect();
            types.dedup();
            return match types.as_slice() {
                [one] => format!("list({one})"),
                _ => "list(dyn)".into(),
            };
        }
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Map(_) => "map",
        Cel::Null => "null_type",
        _ => "dyn",
    };
    simple.into()
}

fn compiled(expression: &str) -> Compiled {
    let mut programs = PROGRAMS.lock();
    if let Some(known) = programs.get(expression) {
        return known.clone();
    }
    if programs.len() >= PROGRAMS_LEN_MAX {
        programs.clear();
    }
    let compiled: Compiled = Arc::new(compile(expression));
    programs.insert(expression.into(), compiled.clone());
    compiled
}

fn compile(expression: &str) -> Result<Code, String> {
    let text = expression.to_owned();
    let program = parsed(expression, move || Program::compile(&text))?;
    let expression = messages::as_maps(program.expression());
    Ok(Code { program, expression })
}

/// What a parser makes of an expression within the bounds.
fn parsed<T: Send + 'static>(
    expression: &str,
    parse: impl FnOnce() -> Result<T, ParseErrors> + Send + 'static,
) -> Result<T, String> {
    if let Some(why) = super::beyond(expression) {
        return Err(why);
    }
    let parse = move || parse().map_err(|errors| errors.to_string().replace("\n| ", "\n | "));
    // One level of brackets takes many levels of the parser, whose frames are large without optimisation.
    let parser = std::thread::Builder::new().stack_size(STACK_LEN).spawn(parse);
    let parsed = parser.map_err(|error| error.to_string())?.join();
    parsed.unwrap_or_else(|_| Err("the parser gave up".into()))
}

/// An expression that may have optional syntax, which nobody evaluates as it is.
///
/// # Errors
/// It does not compile.
pub(crate) fn tree_with_optionals(expression: &str) -> Result<IdedExpr, String> {
    let text = expression.to_owned();
    parsed(expression, move || Parser::default().enable_optional_syntax(true).parse(&text))
}

/// An expression as a tree, for those who look into it.
///
/// # Errors
/// It does not compile.
pub(crate) fn tree(expression: &str) -> Result<IdedExpr, String> {
    compile(expression).map(|code| code.expression)
}

/// Whether an expression can be evaluated without harm to the process.
///
/// # Errors
/// Why not; also when it does not compile.
pub(crate) fn check(expression: &str) -> Result<(), String> {
    let code = compile(expression)?;
    messages::problem(&code.program, expression, &[]).map_or(Ok(()), Err)
}

/// JSON as CEL sees it: whole numbers are ints.
pub(crate) fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, float) => Cel::Float(float.unwrap_or(f64::MAX)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let key = |name: &String| Key::String(Arc::new(name.clone()));
            let map = fields.iter().map(|(name, value)| (key(name), to_cel(value))).collect();
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// A map out of values that are CEL's already.
pub(crate) fn map(fields: HashMap<String, Cel>) -> Cel {
    let map = fields.into_iter().map(|(name, value)| (Key::String(Arc::new(name)), value)).collect();
    Cel::Map(Map { map: Arc::new(map) })
}

/// The conditions of a webhook or a policy under which it is about a request.
pub(crate) enum Fit {
    Fits,
    FitsNot,
    /// One cannot be told, and none is false.
    Fails(String),
}

/// Whether all conditions hold (`plugin/webhook/matchconditions/matcher.go`): one that is false wins over one that fails.
pub(crate) fn fits(conditions: &Value, scope: impl FnOnce() -> Scope) -> Fit {
    let all = conditions.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return Fit::Fits;
    }
    let scope = scope();
    let (mut failure, mut budget) = (None, Budget::of_conditions());
    let expressions = all.iter().map(|condition| condition["expression"].as_str().unwrap_or_default());
    let paid: Vec<_> = expressions.map(|text| (text, scope.cost(text).and_then(|cost| budget.pay(cost)))).collect();
    // What is spent is spent for all: nothing is evaluated.
    if paid.iter().any(|(_, paid)| *paid == Err(Dear::Together)) {
        return Fit::Fails(SPENT.to_owned());
    }
    for (expression, paid) in paid {
        match paid.map_or_else(|_| Err(CANCELLED.to_owned()), |()| scope.evaluate(expression)) {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return Fit::FitsNot,
            Ok(_) => failure = failure.or(Some(format!("expression '{expression}' evaluated to no bool"))),
            Err(why) => {
                failure = failure.or(Some(format!("expression '{expression}' resulted in error: {why}")));
            }
        }
    }
    failure.map_or(Fit::Fits, Fit::Fails)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_says(expression: &str, expected: Result<Cel, &str>) {
        let object = json!({ "metadata": { "name": "a", "namespace": "b", "labels": { "a/b": "c" } }, "n": 3 });
        let said = Scope::new([("object", &object)]).evaluate(expression);
        assert_eq!(said, expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn expressions_see_objects_as_json_has_them() {
        check_says("object.metadata.name == 'a'", Ok(Cel::Bool(true)));
        check_says("object.metadata.namespace == 'b'", Ok(Cel::Bool(true)));
        check_says("object.metadata.labels['a/b'] == 'c'", Ok(Cel::Bool(true)));
        check_says("object.n <= 3", Ok(Cel::Bool(true)));
        check_says("has(object.metadata.labels) && !has(object.spec)", Ok(Cel::Bool(true)));
        check_says("object.spec", Err("no such key: spec"));
    }
}
