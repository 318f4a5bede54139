//! Evaluates a parsed CEL expression against its variables and returns its value or an error.
//!
//! Operators, loops, conversions, optional values and most functions are evaluated here, in the order and with the errors of
//! upstream; `kube-cel` evaluates the others.
//!
//! A call is tried as an operator (`operators`), a function of optional values (`optional`) and a macro (`loops`)
//! first, because these decide whether their operands are evaluated. For any other function, the receiver and the
//! arguments are evaluated first. Then the cost (`bounds`) and the overload (`overloads`) are checked before the
//! function runs.
//!
//! Callers are `cel` (which compiles, caches and counts cost) and, through it, CRD rules, admission
//! policies and match conditions. Evaluation is synchronous and depends on nothing but the
//! variables and functions that the caller provides: two evaluations of equal variables give equal
//! results. Maps are therefore visited in the order of their keys, where Go's order is random.

mod addresses;
mod bounds;
mod convert;
mod equality;
mod format;
mod formats;
mod lists;
mod loops;
mod operators;
mod optional;
mod overloads;
mod patterns;
mod quantities;
mod steps;
mod strings;
mod times;
mod urls;
pub(crate) mod value_size;
mod versions;

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, Value as Cel,
    common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, SelectExpr},
    objects::{Key, Map},
};

pub(crate) use self::{
    equality::{Kinds, ListKind},
    optional::wrap as optional,
};

/// The value of an expression, or the reason why it has none.
type EvalResult<T = Cel> = Result<T, EvaluationError>;

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum EvaluationError {
    /// A map has no such key.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// The expression exceeds the cost limit of one expression.
    #[error("the expression is too expensive; simplify it or bound the sizes of its values")]
    CostExceeded,
    /// The expression exceeds the cost limit of all expressions together (`environment.ErrOutOfBudget`).
    #[error("all expressions together are too expensive; no more are evaluated")]
    BudgetExceeded,
    /// Another reason. The message does not repeat the expression.
    #[error("{0}")]
    Fails(String),
}

impl From<String> for EvaluationError {
    fn from(why: String) -> Self {
        Self::Fails(why)
    }
}

impl From<&str> for EvaluationError {
    fn from(why: &str) -> Self {
        Self::Fails(why.to_owned())
    }
}

/// The only key of a map that represents a CEL type: the result of `type(x)`, or a name such as `int`.
///
/// Keys of JSON objects are strings, so no object of a client is mistaken for a type.
pub(crate) const TYPE: Key = Key::Uint(u64::MAX);
/// Error of `cel-go` when no overload of a function or operator accepts the argument types.
const NO_OVERLOAD: &str = "no such overload";
/// Error of `cel-go` when integer, duration or timestamp arithmetic leaves its range.
const OVERFLOW: &str = "overflow";

/// Variables that carry evaluated arguments into functions of `kube-cel`. CEL identifiers cannot start with `@`, so no
/// expression can name them. A call with more arguments has no overload.
const ARGUMENTS: [&str; 8] = ["@0", "@1", "@2", "@3", "@4", "@5", "@6", "@7"];
/// Variable that carries the evaluated receiver of a member call, as [`ARGUMENTS`] does for arguments.
const TARGET: &str = "@target";

/// The operand before the dot of a call.
enum Target<'a> {
    /// A global function, as in `quantity(x)`.
    None,
    /// A member function of a value that is evaluated already.
    Value(Cel),
    /// The name of a library, as in `math.abs(x)`.
    Library(&'a str),
}

impl Target<'_> {
    /// Returns the receiver.
    fn value(&self) -> Option<&Cel> {
        if let Self::Value(value) = self { Some(value) } else { None }
    }
}

/// Evaluates one expression. It borrows the tree, so that loop variables need no copies of their names.
pub(crate) struct Evaluator<'a> {
    /// Functions of `kube-cel`, for calls that this module does not evaluate itself.
    functions: &'a Context<'static>,
    /// Variables of the expression, such as `self` and `oldSelf`.
    variables: &'a HashMap<String, Cel>,
    /// Lists among `variables` that the schema declares as sets or maps; they compare and concatenate by those rules.
    kinds: &'a Kinds,
    /// Variables of loops, the innermost last.
    bound: Vec<(&'a str, Cel)>,
}

impl<'a> Evaluator<'a> {
    /// Creates an evaluator with the variables of `variables`, then the variables that `functions` holds besides
    /// functions.
    pub(crate) fn new(functions: &'a Context<'static>, variables: &'a HashMap<String, Cel>, kinds: &'a Kinds) -> Self {
        Self { functions, variables, kinds, bound: Vec::new() }
    }

    /// Evaluates `tree`, including its subexpressions, by recursion.
    ///
    /// The recursion is as deep as the tree; the caller bounds the depth when it parses, and runs deep trees on a
    /// larger stack. An identifier that is neither a variable here nor in `functions` is an error of `kube-cel`.
    ///
    /// # Errors
    /// Fails if a function or an operator does.
    pub(crate) fn evaluate(&mut self, tree: &'a IdedExpr) -> EvalResult {
        match &tree.expr {
            Expr::Literal(literal) => Ok(value_of(literal)),
            Expr::Ident(name) => match self.variable(name) {
                Some(value) => Ok(value.clone()),
                None => Cel::resolve(tree, self.functions).map_err(error_message),
            },
            Expr::Select(select) => self.select(select),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(inner) => self.comprehension(inner),
            Expr::Call(call) => self.call(call),
            // Messages have been replaced by maps.
            Expr::Struct(_) | Expr::Unspecified => Err(NO_OVERLOAD.into()),
        }
    }

    /// Returns the value of a variable. Loop variables shadow outer ones and the variables of the expression.
    fn variable(&self, name: &str) -> Option<&Cel> {
        let bound = self.bound.iter().rev().find(|(bound_name, _)| *bound_name == name).map(|(_, value)| value);
        bound.or_else(|| self.variables.get(name))
    }

    /// Evaluates `a.b` and `has(a.b)`. Selection from an optional value yields an optional value. A missing key is an
    /// error, except in `has()`. Selecting from a scalar finds nothing.
    fn select(&mut self, select: &'a SelectExpr) -> EvalResult {
        let operand = self.evaluate(&select.operand)?;
        let key = Cel::String(Arc::new(select.field.clone()));
        if let Some(there) = optional::downcast(&operand) {
            let found = there.value().and_then(|operand| part(operand, &key).unwrap_or_default());
            return Ok(if select.test { Cel::Bool(found.is_some()) } else { optional::wrap(found) });
        }
        let found = part(&operand, &key)?;
        if select.test {
            return Ok(Cel::Bool(found.is_some()));
        }
        found.ok_or_else(|| EvaluationError::NoSuchKey(select.field.clone()))
    }

    /// Evaluates a list literal; an absent optional element (`[?x]`) is left out.
    fn list(&mut self, list: &'a ListExpr) -> EvalResult {
        let mut items = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            let value = self.evaluate(element)?;
            if list.optional_indices.contains(&index) {
                let there = optional::downcast(&value).ok_or(NO_OVERLOAD)?;
                items.extend(there.value().cloned());
            } else {
                items.push(value);
            }
        }
        Ok(Cel::List(Arc::new(items)))
    }

    /// Evaluates a map literal; an entry with an absent optional value (`{?k: v}`) is left out. A repeated key replaces
    /// the earlier value.
    fn map(&mut self, map: &'a MapExpr) -> EvalResult {
        let mut entries = HashMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { return Err(NO_OVERLOAD.into()) };
            let key = key_of(&self.evaluate(&entry.key)?).ok_or("unsupported key type")?;
            let value = self.evaluate(&entry.value)?;
            if entry.optional {
                let there = optional::downcast(&value).ok_or(NO_OVERLOAD)?;
                entries.extend(there.value().map(|value| (key, value.clone())));
            } else {
                entries.insert(key, value);
            }
        }
        Ok(Cel::Map(Map { map: Arc::new(entries) }))
    }

    /// Evaluates a call. Operators, optional functions and macros come first, because they control whether their
    /// operands are evaluated at all.
    fn call(&mut self, call: &'a CallExpr) -> EvalResult {
        let special = self.operator(call).or_else(|| self.optional(call)).or_else(|| self.macros(call));
        special.unwrap_or_else(|| self.function(call))
    }

    /// Evaluates an ordinary function, after its receiver and its arguments. A receiver that is an identifier but not a
    /// variable names a library, such as `math`.
    fn function(&mut self, call: &'a CallExpr) -> EvalResult {
        let target = match call.target.as_deref() {
            Some(IdedExpr { expr: Expr::Ident(name), .. }) if self.variable(name).is_none() => Target::Library(name),
            Some(target) => Target::Value(self.evaluate(target)?),
            None => Target::None,
        };
        let arguments: Vec<Cel> =
            call.args.iter().map(|argument| self.evaluate(argument)).collect::<EvalResult<_>>()?;
        let name = call.func_name.as_str();
        bounds::check(name, &target, &arguments)?;
        if let Some(why) = overloads::overload_error(name, &target, &arguments) {
            return Err(why.into());
        }
        if let Some(result) = call_own(name, &target, &arguments) {
            return result;
        }
        self.call_kube_cel(name, target, arguments)
    }

    /// Calls a function that only `kube-cel` implements, with the evaluated values bound to reserved variables.
    fn call_kube_cel(&self, name: &str, target: Target<'_>, arguments: Vec<Cel>) -> EvalResult {
        let ident = |name: &str| IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) };
        let mut scope = self.functions.new_inner_scope();
        if arguments.len() > ARGUMENTS.len() {
            return Err(NO_OVERLOAD.into());
        }
        let args = ARGUMENTS.iter().take(arguments.len()).map(|name| ident(name)).collect();
        for (name, value) in ARGUMENTS.iter().zip(arguments) {
            scope.add_variable_from_value(*name, value);
        }
        let target = match target {
            Target::Value(value) => {
                scope.add_variable_from_value(TARGET, value);
                Some(Box::new(ident(TARGET)))
            }
            Target::None => None,
            Target::Library(library) => Some(Box::new(ident(library))),
        };
        let call = CallExpr { func_name: name.to_owned(), target, args };
        Cel::resolve(&IdedExpr { id: 0, expr: Expr::Call(call) }, &scope).map_err(error_message)
    }
}

/// Returns the result of a function that this module or its submodules implement, or `None` if `kube-cel` has to
/// evaluate it. Conversions and member functions by the type of the receiver are tried before the libraries.
fn call_own(name: &str, target: &Target<'_>, arguments: &[Cel]) -> Option<EvalResult> {
    let libraries =
        [patterns::call, quantities::call, versions::call, urls::call, formats::call, addresses::call, optional::call];
    let built_in = match (target, arguments) {
        (Target::None, [value]) => convert::to(name, value),
        (Target::Library("lists"), [Cel::Int(..0)]) if name == "range" => Some(Ok(Cel::List(Arc::default()))),
        (Target::Value(Cel::String(text)), [Cel::List(values)]) if name == "format" => {
            Some(format::format(text, values))
        }
        (Target::Value(Cel::String(text)), _) => strings::call(name, text, arguments),
        (Target::Value(Cel::Timestamp(time)), _) => times::call(name, time, arguments),
        (Target::Value(Cel::List(items)), _) => lists::call(name, items, arguments),
        _ => None,
    };
    built_in.or_else(|| libraries.into_iter().find_map(|call| call(name, target, arguments)))
}

/// Converts a literal of the parser to a value.
fn value_of(literal: &LiteralValue) -> Cel {
    match literal {
        LiteralValue::Boolean(value) => Cel::Bool(*value.inner()),
        LiteralValue::Bytes(bytes) => Cel::Bytes(Arc::new(bytes.inner().to_vec())),
        LiteralValue::Double(value) => Cel::Float(*value.inner()),
        LiteralValue::Int(value) => Cel::Int(*value.inner()),
        LiteralValue::Null => Cel::Null,
        LiteralValue::String(text) => Cel::String(Arc::new(text.inner().to_owned())),
        LiteralValue::UInt(value) => Cel::UInt(*value.inner()),
    }
}

/// Converts a value to a map key. A float with a whole value is the equal integer key; other floats, lists and maps are
/// not keys.
fn key_of(value: &Cel) -> Option<Key> {
    Some(match value {
        Cel::String(text) => Key::String(text.clone()),
        Cel::Int(number) => Key::Int(*number),
        Cel::UInt(number) => Key::Uint(*number),
        Cel::Bool(value) => Key::Bool(*value),
        Cel::Float(_) => Key::Int(whole(value)?),
        _ => return None,
    })
}

/// Returns the value as the CEL function `string` converts it; an empty string if it cannot be converted.
pub(crate) fn as_text(value: &Cel) -> String {
    convert::text(value).unwrap_or_default()
}

/// Returns the runtime type name of a value, as `cel-go` spells it in errors.
///
/// Library values have qualified names, such as `kubernetes.Quantity`.
pub(crate) fn type_name(value: &Cel) -> String {
    let name = match value {
        Cel::List(_) => "list",
        Cel::Map(fields) if fields.map.len() == 1 && fields.map.contains_key(&TYPE) => "type",
        Cel::Map(_) | Cel::Function(..) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Duration(_) => "google.protobuf.Duration",
        Cel::Timestamp(_) => "google.protobuf.Timestamp",
        Cel::Null => "null_type",
        Cel::Opaque(value) => return value.runtime_type_name().to_owned(),
    };
    name.into()
}

/// Converts a number of any type to `i64`; `None` if it has a fraction or is out of range, as doubles beyond 9e18,
/// since the bounds of `i64` are not exact doubles.
#[expect(clippy::cast_possible_truncation, reason = "it is whole and within the bounds")]
fn whole(number: &Cel) -> Option<i64> {
    match number {
        Cel::Int(number) => Some(*number),
        Cel::UInt(number) => i64::try_from(*number).ok(),
        Cel::Float(number) if number.fract() == 0.0 && number.abs() < 9e18 => Some(*number as i64),
        _ => None,
    }
}

/// Returns the item of a list at an index, or the value of a map at a key; `Ok(None)` if it is absent. Signed and
/// unsigned integer keys are interchangeable. `Err` is for an index of the wrong type.
fn part(container: &Cel, key: &Cel) -> EvalResult<Option<Cel>> {
    match container {
        Cel::Map(map) => {
            let found = |key: Key| map.map.get(&key).cloned();
            let exact = key_of(key).ok_or(NO_OVERLOAD)?;
            let other = match exact {
                Key::Int(number) => u64::try_from(number).ok().map(Key::Uint),
                Key::Uint(number) => i64::try_from(number).ok().map(Key::Int),
                Key::Bool(_) | Key::String(_) => None,
            };
            Ok(found(exact).or_else(|| found(other?)))
        }
        Cel::List(_) if matches!(key, Cel::String(_)) => Err("unsupported index type 'string' in list".into()),
        Cel::List(items) => {
            let index = whole(key).ok_or(NO_OVERLOAD)?;
            Ok(usize::try_from(index).ok().and_then(|index| items.get(index)).cloned())
        }
        // Scalars have no parts.
        _ => Ok(None),
    }
}

/// Returns the message of an error of `kube-cel`.
fn error_message(error: ExecutionError) -> EvaluationError {
    match error {
        ExecutionError::FunctionError { message, .. } => message.into(),
        other => other.to_string().into(),
    }
}
