//! CEL expressions of webhooks and policies: compiles each once, and evaluates it for a request.

use std::{
    any::Any,
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use kctl_cel::{Environment, Type};
use kube_cel::{
    KubeCelExt,
    cel::{Context, ParseErrors, common::ast::IdedExpr},
};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    cost::{Budget, CostExceeded, cost, depth},
    functions::{self, map},
    messages,
};
use crate::evaluate::{EvaluationError, Evaluator, Kinds};

/// Maximum number of cached programs. At the limit all are dropped, and compiled again when they are needed.
const PROGRAMS_LEN_MAX: usize = 1_000;

/// The depth limit of the parser: more than [`super::exceeded_limit`] allows, so that its error is never seen.
const PARSER_DEPTH_MAX: u16 = 300;
/// The stack for parsing: enough for the deepest expression that [`super::exceeded_limit`] accepts. Pages are committed as the
/// parser uses them.
const STACK_LEN: usize = 64 * 1024 * 1024;

pub(crate) use kube_cel::cel::Value as Cel;

/// A compiled expression, or the error of its compilation.
type CompiledExpression = Arc<Result<Code, String>>;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Code {
    /// The tree. Messages are replaced by maps, because the evaluator has no messages.
    expression: IdedExpr,
    /// The depth of the tree, which decides if the evaluation needs its own stack.
    depth: usize,
}

/// Compiled expressions by source. Invariant: at most [`PROGRAMS_LEN_MAX`]. At the bound all are dropped.
static PROGRAMS: LazyLock<Mutex<HashMap<String, CompiledExpression>>> = LazyLock::new(Mutex::default);

/// The variables and functions of expressions.
pub(crate) struct Scope {
    /// The evaluator's functions.
    context: Context<'static>,
    /// The values of the variables, by name.
    variables: HashMap<String, Cel>,
    /// List types of lists in the variables, for equality.
    kinds: Kinds,
}

impl Scope {
    /// Creates a scope with all functions. It shares them, so that creating it is cheap; no function can be added.
    ///
    /// For CRD rules, which are evaluated very often.
    pub(crate) fn with_functions() -> Self {
        Self { context: functions::ALL.new_inner_scope(), variables: HashMap::new(), kinds: Kinds::default() }
    }

    /// Creates a scope with these variables.
    pub(crate) fn new<'a>(variables: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        let mut context = Context::default().with_all();
        functions::add(&mut context);
        let mut scope = Self { context, variables: HashMap::new(), kinds: Kinds::default() };
        for (name, value) in variables {
            scope.set(name, to_cel(value));
        }
        scope
    }

    /// Returns the evaluator's functions and variables, so that a caller can add some.
    pub(crate) fn context(&mut self) -> &mut Context<'static> {
        &mut self.context
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: Cel) {
        self.variables.insert(name.to_owned(), value);
    }

    /// Returns the list types of the lists in variables.
    pub(crate) fn kinds(&mut self) -> &mut Kinds {
        &mut self.kinds
    }

    /// Removes a variable.
    pub(crate) fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }

    /// Returns the cost of an expression for the values of the variables.
    ///
    /// # Errors
    /// Fails if it exceeds the limit of one expression. An expression that does not compile is free.
    pub(crate) fn cost(&self, expression: &str) -> Result<usize, CostExceeded> {
        let compiled = compile_cached(expression);
        compiled.as_ref().as_ref().map_or(Ok(0), |code| self.cost_of(code))
    }

    /// Returns the cost of a compiled expression for the values of the variables.
    ///
    /// # Errors
    /// Fails if it exceeds the limit of one expression.
    pub(crate) fn cost_of(&self, code: &Code) -> Result<usize, CostExceeded> {
        let variables = || self.variables.iter().map(|(name, value)| (name.as_str(), value)).collect();
        kctl_cel::with_large_stack(code.depth, || cost(&code.expression, variables()))
    }

    /// Evaluates an expression without a cost limit.
    ///
    /// # Errors
    /// Fails if the evaluation does. The message does not repeat the expression.
    pub(crate) fn evaluate(&self, expression: &str) -> Result<Cel, EvaluationError> {
        match compile_cached(expression).as_ref() {
            Ok(code) => self.run(code),
            Err(why) => Err(format!("compilation failed: {why}").into()),
        }
    }

    /// Evaluates a compiled expression. A deep one runs on its own stack, since each operator is a recursion. A panic
    /// of a library function becomes an error, as in cel-go (`cel/program.go`, `Eval`).
    ///
    /// # Errors
    /// Fails as [`Scope::evaluate`] does.
    pub(crate) fn run(&self, code: &Code) -> Result<Cel, EvaluationError> {
        // The evaluation shares no state that a panic could leave inconsistent.
        let evaluate = || {
            let evaluate = AssertUnwindSafe(|| {
                Evaluator::new(&self.context, &self.variables, &self.kinds).evaluate(&code.expression)
            });
            catch_unwind(evaluate).unwrap_or_else(|panic| Err(internal_error(panic.as_ref()).into()))
        };
        kctl_cel::with_large_stack(code.depth, evaluate)
    }
}

/// Returns the message of a panic in the evaluator.
fn internal_error(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let why = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("unknown");
    format!("internal error: {why}")
}

/// The reason why an expression must not be stored.
pub(crate) enum Problem {
    /// It does not compile, has a type error, or has another type than required.
    Invalid(String),
    /// It compiles, but no program can be made of it: upstream returns an internal error.
    Internal(String),
}

/// Returns the reason why an expression must not be stored, if there is one.
///
/// `allowed` are the allowed types by name; an empty list allows all. An unknown type passes.
pub(crate) fn problem(expression: &str, environment: &Environment, allowed: &[&str]) -> Option<Problem> {
    match type_of(expression, environment) {
        Err(why) => Some(Problem::Invalid(format!("compilation failed: {why}"))),
        Ok(Some(found)) if !allowed.is_empty() && !allowed.contains(&found.to_string().as_str()) => {
            let allowed = allowed.join(" or ");
            Some(Problem::Invalid(format!("must evaluate to {allowed}, found {found}")))
        }
        Ok(_) => kctl_cel::instantiate(expression).err().map(Problem::Internal),
    }
}

/// Returns the type of an expression; `None` if it is not known before evaluation.
///
/// # Errors
/// Fails if the expression does not compile or has a type error.
pub(crate) fn type_of(expression: &str, environment: &Environment) -> Result<Option<Type>, String> {
    tree(expression)?;
    kctl_cel::type_of(expression, environment).map_err(|issues| issues.to_string())
}

/// Returns a compiled expression, or its error, from the cache.
fn compile_cached(expression: &str) -> CompiledExpression {
    let mut programs = PROGRAMS.lock();
    if let Some(program) = programs.get(expression) {
        return program.clone();
    }
    if programs.len() >= PROGRAMS_LEN_MAX {
        programs.clear();
    }
    let compiled: CompiledExpression = Arc::new(compile(expression));
    programs.insert(expression.into(), compiled.clone());
    debug_assert!(programs.len() <= PROGRAMS_LEN_MAX, "a full cache is emptied before an insert");
    compiled
}

/// Compiles an expression.
///
/// Each expression is parsed on a new thread: compiling is rare, since results are cached.
///
/// # Errors
/// Fails if the expression does not compile.
pub(crate) fn compile(expression: &str) -> Result<Code, String> {
    let text = expression.to_owned();
    parse_on_thread(expression, move || {
        kctl_cel::read_within(&text, PARSER_DEPTH_MAX).map(|tree| {
            let expression = messages::as_maps(&tree);
            Code { depth: depth(&expression), expression }
        })
    })
}

/// Parses an expression within the limits, on a thread with a large stack.
fn parse_on_thread<T: Send + 'static>(
    expression: &str,
    parse: impl FnOnce() -> Result<T, ParseErrors> + Send + 'static,
) -> Result<T, String> {
    if let Some(why) = super::exceeded_limit(expression) {
        return Err(why);
    }
    let parse = move || parse().map_err(|errors| errors.to_string());
    // Each level of brackets takes many recursions of the parser, whose stack frames are large in unoptimized builds.
    let parser = std::thread::Builder::new().stack_size(STACK_LEN).spawn(parse);
    let parsed = parser.map_err(|error| error.to_string())?.join();
    parsed.unwrap_or_else(|_| Err("the parser gave up".into()))
}

/// Parses an expression to its syntax tree.
///
/// # Errors
/// Fails if the expression does not parse.
pub(crate) fn tree(expression: &str) -> Result<IdedExpr, String> {
    let text = expression.to_owned();
    parse_on_thread(expression, move || kctl_cel::read_within(&text, PARSER_DEPTH_MAX))
}

/// Converts JSON to CEL. Integers become `int`.
///
/// Numbers beyond `i64` become doubles.
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
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (name.clone(), to_cel(value)))),
    }
}

/// The result of the match conditions of a webhook or a policy for a request.
pub(crate) enum MatchResult {
    /// All conditions are true.
    Matches,
    /// A condition is false.
    DoesNotMatch,
    /// A condition failed, and none is false.
    Failed(String),
}

/// Evaluates match conditions (`plugin/webhook/matchconditions/matcher.go`). A false condition takes precedence over
/// a failing one.
///
/// `scope` is called only if conditions exist, since making one costs more than most requests.
pub(crate) fn fits(conditions: &Value, scope: impl FnOnce() -> Scope) -> MatchResult {
    let all = conditions.as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return MatchResult::Matches;
    }
    let scope = scope();
    let mut budget = Budget::OF_CONDITIONS;
    let expressions = all.iter().map(|condition| condition["expression"].as_str().unwrap_or_default());
    let paid: Vec<_> =
        expressions.map(|text| (text, scope.cost(text).and_then(|cost| budget.charge_cost(cost)))).collect();
    // If the budget is exhausted, no condition is evaluated.
    if paid.iter().any(|(_, paid)| *paid == Err(CostExceeded::Budget)) {
        return MatchResult::Failed(EvaluationError::BudgetExceeded.to_string());
    }
    let mut failures: Vec<String> = Vec::new();
    for (expression, paid) in paid {
        match paid.map_err(EvaluationError::from).and_then(|()| scope.evaluate(expression)) {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => return MatchResult::DoesNotMatch,
            Ok(_) => failures.push(format!("expression {expression:?} must evaluate to bool")),
            Err(why) => failures.push(format!("expression {expression:?}: {why}")),
        }
    }
    if failures.is_empty() { MatchResult::Matches } else { MatchResult::Failed(failures.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(expression: &str) -> Option<Cel> {
        let object = json!({ "metadata": { "name": "a", "namespace": "b", "labels": { "a/b": "c" } }, "n": 3 });
        Scope::new([("object", &object)]).evaluate(expression).ok()
    }

    #[test]
    fn expressions_see_objects_as_json_has_them() {
        for expression in [
            "object.metadata.name == 'a'",
            "object.metadata.namespace == 'b'",
            "object.metadata.labels['a/b'] == 'c'",
            "object.n <= 3",
            "has(object.metadata.labels) && !has(object.spec)",
        ] {
            assert_eq!(evaluate(expression), Some(Cel::Bool(true)), "{expression}");
        }
        assert_eq!(evaluate("object.spec"), None);
    }

    #[test]
    fn objects_are_not_mistaken_for_types() {
        let object = json!({ "@type": "int" });
        for expression in [
            "type(object) == map",
            "object != int",
            "object.exists(key, key == '@type')",
            "type(1) == int && type(int) == type",
        ] {
            let value = Scope::new([("object", &object)]).evaluate(expression);
            assert_eq!(value, Ok(Cel::Bool(true)), "{expression}");
        }
    }

    #[test]
    fn panic_of_a_function_is_an_evaluation_error() {
        let mut scope = Scope::new([]);
        scope.context().add_function("broken", |_: Cel| -> kube_cel::cel::ResolveResult { panic!("too much") });
        assert_eq!(scope.evaluate("broken(1)"), Err("internal error: too much".into()));
        assert_eq!(scope.evaluate("broken(1) || true"), Err("internal error: too much".into()));
        assert_eq!(scope.evaluate("1 + 1"), Ok(Cel::Int(2)));
    }

    #[test]
    fn sort_keys_must_have_one_type() {
        let why = "list elements must have the same type";
        assert_eq!(Scope::new([]).evaluate("[dyn(1), dyn(2.0)].sortBy(x, x)"), Err(why.into()));
        assert_eq!(evaluate("[2, 1].sortBy(x, x) == [1, 2]"), Some(Cel::Bool(true)));
    }
}
