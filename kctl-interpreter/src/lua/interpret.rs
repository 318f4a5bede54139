//! The operations of scripts: the function that answers each, its arguments, and the form of its
//! result.
//!
//! | operation | arguments | result |
//! |---|---|---|
//! | `InterpretReplica` | object | a number, and a table of requirements or nil |
//! | `InterpretComponent` | object | a list of components, or nil |
//! | `ReviseReplica` | object, number | the changed object |
//! | `Retain` | desired object, observed object | the changed desired object |
//! | `InterpretStatus` | object | a table |
//! | `AggregateStatus` | object, list of items or nil | the changed object |
//! | `InterpretHealth` | object | a boolean |
//! | `InterpretDependency` | object | a list of references |
//!
//! The source is Karmada's `pkg/resourceinterpreter/customized/declarative/luavm/lua.go` (`GetReplicas`, `ReviseReplica` and
//! the other methods of `VM`), whose messages for wrong results are repeated.

use serde_json::{Map, Value, json};

use super::error::ScriptError;
use super::limits::Limits;
use super::repair::{Root, repair};
use super::script::Script;

use super::vm::{Returned, State};
use crate::canonical::{self, Component, ReplicaRequirements, fold_field_names};
use crate::operation::{self, DependentReference, Op};

/// An operation that scripts can answer. [`operation::Operation`](crate::operation::Operation) is
/// the same as a value for all layers.
///
/// ```
/// use kctl_interpreter::lua::ScriptFunction;
///
/// let replicas = ScriptFunction::from_name("InterpretReplica").map(|one| (one.field, one.function));
/// assert_eq!(replicas, Some(("replicaResource", "GetReplicas")));
/// assert_eq!(ScriptFunction::from_name("Prune"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptFunction {
    /// The name, such as `InterpretReplica`.
    pub name: &'static str,
    /// The field of `spec.customizations` that holds the script, such as `replicaResource`.
    pub field: &'static str,
    /// The global function that the script defines, such as `GetReplicas`.
    pub function: &'static str,
    /// The same operation as a value for all layers, which code matches on.
    value: operation::Operation,
}

/// Returns an operation, for the table.
const fn script_function<O: Op>(field: &'static str, function: &'static str) -> ScriptFunction {
    ScriptFunction { name: O::NAME, field, function, value: O::OPERATION }
}

/// The operations that scripts can answer, sorted by name: all but `Prune`.
pub const SCRIPT_FUNCTIONS: [ScriptFunction; 8] = [
    script_function::<operation::AggregateStatus>("statusAggregation", "AggregateStatus"),
    script_function::<operation::InterpretComponent>("componentResource", "GetComponents"),
    script_function::<operation::InterpretDependency>("dependencyInterpretation", "GetDependencies"),
    script_function::<operation::InterpretHealth>("healthInterpretation", "InterpretHealth"),
    script_function::<operation::InterpretReplica>("replicaResource", "GetReplicas"),
    script_function::<operation::InterpretStatus>("statusReflection", "ReflectStatus"),
    script_function::<operation::Retain>("retention", "Retain"),
    script_function::<operation::ReviseReplica>("replicaRevision", "ReviseReplica"),
];

impl ScriptFunction {
    /// Returns the operation with a name; `None` for a name that scripts do not have.
    pub fn from_name(name: &str) -> Option<Self> {
        SCRIPT_FUNCTIONS.into_iter().find(|operation| operation.name == name)
    }

    /// Returns `true` if the results of several customizations for one kind are combined.
    pub(super) fn is_additive(self) -> bool {
        self.value == operation::Operation::InterpretDependency
    }
}

/// The borrowed inputs of a script.
///
/// Operations on one object read the desired object, or the observed one if the desired one is
/// absent. `InterpretStatus` and `InterpretHealth` prefer the observed object, because they ask
/// about the member cluster.
///
/// ```
/// use kctl_interpreter::lua::{ScriptInputs, Limits, Pool, Script};
/// use serde_json::json;
///
/// let source = "function ReviseReplica(o, n) o.spec.replicas = n return o end";
/// let script = Script::compile(source, "ReviseReplica")?;
/// let object = json!({ "kind": "Widget", "spec": { "replicas": 1 } });
/// let inputs = ScriptInputs { desired: Some(&object), replicas: Some(4), ..ScriptInputs::default() };
/// let answer = Pool::new(Limits::default()).interpret("ReviseReplica", &script, &inputs)?;
/// assert_eq!(answer["revised"]["spec"]["replicas"], 4);
/// # Ok::<(), kctl_interpreter::lua::ScriptError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ScriptInputs<'a> {
    /// The object as the control plane has it.
    pub desired: Option<&'a Value>,
    /// The object as the member cluster has it.
    pub observed: Option<&'a Value>,
    /// A list of [`AggregatedStatusItem`](crate::operation::AggregatedStatusItem)s as JSON. Without
    /// one the script gets nil, as in Karmada (`AggregateStatus` in `luavm/lua.go`).
    pub status_items: Option<&'a Value>,
    /// The number for `ReviseReplica`; 0 by default.
    pub replicas: Option<i64>,
}

/// Runs the script for an operation, and returns the result in the JSON form of
/// [`Op::encode`](crate::operation::Op::encode).
///
/// # Errors
/// An input is missing, the run failed, or the result has another form than the operation needs.
pub(super) fn interpret(
    state: &State,
    operation: ScriptFunction,
    script: &Script,
    inputs: &ScriptInputs<'_>,
    limits: &Limits,
) -> Result<Value, ScriptError> {
    let call = ScriptCall { state, operation, script, limits };
    match operation.value {
        operation::Operation::AggregateStatus => {
            let items = inputs.status_items.map_or(Value::Null, status_items);
            let object = call.object(&[call.input(inputs.desired.or(inputs.observed))?, &items], &[])?;
            Ok(wrap_result("aggregatedStatus", object))
        }
        operation::Operation::InterpretComponent => call.components(inputs),
        operation::Operation::InterpretDependency => call.dependencies(inputs),
        operation::Operation::InterpretHealth => call.health(inputs),
        operation::Operation::InterpretReplica => call.replicas(inputs),
        operation::Operation::InterpretStatus => call.status(inputs),
        operation::Operation::Retain => {
            let desired = call.input(inputs.desired)?;
            let observed = inputs.observed.unwrap_or(&Value::Null);
            call.object(&[desired, observed], &[desired, observed]).map(|object| wrap_result("retained", object))
        }
        operation::Operation::ReviseReplica => {
            let object = call.input(inputs.desired.or(inputs.observed))?;
            let replicas = Value::from(inputs.replicas.unwrap_or(0));
            call.object(&[object, &replicas], &[object]).map(|object| wrap_result("revised", object))
        }
        operation::Operation::Prune => Err(ScriptError::unsupported_operation(operation.name)),
    }
}

/// Returns a result with one field. `json!` would copy the value.
fn wrap_result(key: &str, result: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), result)]))
}

/// Returns the items as Karmada's Go type writes them: only known fields, without empty ones.
fn status_items(items: &Value) -> Value {
    let Some(items) = items.as_array() else { return items.clone() };
    let is_kept = |name: &str, value: &Value| match name {
        "clusterName" => true,
        "status" => !value.is_null(),
        "applied" => *value == Value::Bool(true),
        "appliedMessage" | "health" => value.as_str().is_some_and(|text| !text.is_empty()),
        _ => false,
    };
    let item = |item: &Value| {
        let fields = item.as_object().into_iter().flatten().filter(|(name, value)| is_kept(name, value));
        let mut fields: Map<String, Value> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        fields.entry("clusterName").or_insert_with(|| Value::from(""));
        Value::Object(fields)
    };
    Value::Array(items.iter().map(item).collect())
}

struct ScriptCall<'a> {
    state: &'a State,
    operation: ScriptFunction,
    script: &'a Script,
    limits: &'a Limits,
}

impl ScriptCall<'_> {
    /// Returns an input, which must be an object.
    fn input<'a>(&self, object: Option<&'a Value>) -> Result<&'a Value, ScriptError> {
        object.filter(|object| object.is_object()).ok_or_else(|| ScriptError::WrongInput {
            operation: self.operation.name.to_owned(),
            message: "it needs an object to work on".to_owned(),
        })
    }

    fn invalid_result(&self, message: impl Into<String>) -> ScriptError {
        ScriptError::WrongResult { function: self.script.function().to_owned(), message: message.into() }
    }

    /// Calls the function and returns its first `N` results; missing ones are nil.
    fn run<const N: usize>(&self, args: &[&Value]) -> Result<[Returned; N], ScriptError> {
        let results = self.state.call(self.script, self.limits, args, N)?;
        results.try_into().map_err(|_| self.invalid_result("the function returned too few values"))
    }

    /// Runs an operation that returns an object, which must have a `kind`.
    ///
    /// `references` are objects that restore the type of empty tables in the result.
    fn object(&self, args: &[&Value], references: &[&Value]) -> Result<Value, ScriptError> {
        let [result] = self.run(args)?;
        let Returned::Table(table) = result else {
            let got = result.type_name();
            return Err(self.invalid_result(format!("expect the returned requires type is table but got {got}")));
        };
        let object = repair(table, Root::Object, references);
        let has_kind = object.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
        if !has_kind {
            let input = args.first().copied().unwrap_or(&Value::Null);
            return Err(self.invalid_result(format!("json unmarshal obj failed: {}", operation::kind_missing(input))));
        }
        Ok(object)
    }

    /// Runs `InterpretReplica`. A number with a fraction is truncated, as in Go (`ConvertLuaResultToInt` in
    /// `luavm/lua_convert.go`).
    fn replicas(&self, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let [replicas, requirements] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let Returned::Number(replicas) = replicas else {
            return Err(self.invalid_result(format!("result type {} is not number", type_code(&replicas))));
        };
        let requirements = match requirements {
            Returned::Table(table) => {
                canonical::read::<ReplicaRequirements>(fold_field_names(repair(table, Root::Object, &[])))
                    .and_then(|requirements| canonical::write(&requirements))
                    .map_err(|error| self.invalid_result(error))?
            }
            Returned::Other("nil") => Value::Null,
            other => {
                let got = other.type_name();
                return Err(self.invalid_result(format!("expect the returned requires type is table but got {got}")));
            }
        };
        Ok(json!({"replica": super::number::truncate_32(replicas), "requires": requirements}))
    }

    fn components(&self, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let components = match result {
            Returned::Table(table) => {
                canonical::read_list::<Component>(fold_field_names(repair(table, Root::List, &[])))
                    .and_then(|components| canonical::write(&components))
                    .map_err(|error| {
                        self.invalid_result(format!("failed to convert lua table for components: {error}"))
                    })?
            }
            Returned::Other("nil") => Value::Null,
            other => {
                let got = other.type_name();
                let message = format!("expected result type 'table' or 'nil' from GetComponents, but got '{got}'");
                return Err(self.invalid_result(message));
            }
        };
        Ok(wrap_result("components", components))
    }

    /// Runs `InterpretDependency`. Karmada has no nil here (`GetDependencies` in `luavm/lua.go`): a script without
    /// references returns an empty table.
    fn dependencies(&self, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let Returned::Table(table) = result else {
            let got = result.type_name();
            return Err(self.invalid_result(format!("expect the returned requires type is table but got {got}")));
        };
        let dependencies = canonical::read_list::<DependentReference>(fold_field_names(repair(table, Root::List, &[])))
            .and_then(canonical::verify_dependencies)
            .and_then(|dependencies| canonical::write(&dependencies))
            .map_err(|error| self.invalid_result(error))?;
        Ok(wrap_result("dependencies", dependencies))
    }

    fn health(&self, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.observed.or(inputs.desired))?])?;
        match result {
            Returned::Bool(healthy) => Ok(json!({"healthy": healthy})),
            other => Err(self.invalid_result(format!("result type {} is not bool", type_code(&other)))),
        }
    }

    /// Runs `InterpretStatus`. Empty tables in the status are removed, because nothing says which
    /// type they had.
    fn status(&self, inputs: &ScriptInputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.observed.or(inputs.desired))?])?;
        match result {
            Returned::Table(table) => Ok(wrap_result("status", repair(table, Root::Object, &[]))),
            other => {
                let got = other.type_name();
                Err(self.invalid_result(format!("expect the returned replica type is table but got {got}")))
            }
        }
    }
}

/// Returns gopher-lua's number of the type (`LValueType` in `value.go`), which Karmada's messages show.
fn type_code(value: &Returned) -> u8 {
    match value {
        Returned::Bool(_) => 1,
        Returned::Number(_) => 2,
        Returned::Table(_) => 7,
        Returned::Other("nil") => 0,
        Returned::Other("string") => 3,
        Returned::Other("function") => 4,
        Returned::Other(_) => 5,
    }
}
