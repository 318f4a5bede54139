//! The operations of scripts: which function answers one, what goes in, and which shape must come out.

use serde_json::{Map, Value, json};

use super::error::ScriptError;
use super::limits::Limits;
use super::repair::{Root, repair};
use super::script::Script;

use super::vm::{Returned, State};
use crate::canonical::{self, Component, ReplicaRequirements, in_any_case};
use crate::operation::DependentReference;

/// An operation that scripts have: its name, its field in a customization, and the function that answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The name, as `InterpretReplica`.
    pub name: &'static str,
    /// The field of `spec.customizations`.
    pub field: &'static str,
    /// The function that the script defines.
    pub function: &'static str,
}

const fn operation(name: &'static str, field: &'static str, function: &'static str) -> Operation {
    Operation { name, field, function }
}

/// The operations that scripts can implement: all but `Prune`.
pub const OPERATIONS: [Operation; 8] = [
    operation("AggregateStatus", "statusAggregation", "AggregateStatus"),
    operation("InterpretComponent", "componentResource", "GetComponents"),
    operation("InterpretDependency", "dependencyInterpretation", "GetDependencies"),
    operation("InterpretHealth", "healthInterpretation", "InterpretHealth"),
    operation("InterpretReplica", "replicaResource", "GetReplicas"),
    operation("InterpretStatus", "statusReflection", "ReflectStatus"),
    operation("Retain", "retention", "Retain"),
    operation("ReviseReplica", "replicaRevision", "ReviseReplica"),
];

impl Operation {
    /// Returns the operation of that name; none for a name that scripts do not have.
    pub fn named(name: &str) -> Option<Self> {
        OPERATIONS.into_iter().find(|operation| operation.name == name)
    }

    /// Returns whether the answers of several customizations for one kind are put together.
    pub(super) fn is_additive(self) -> bool {
        self.name == "InterpretDependency"
    }
}

/// The inputs of an operation. Operations on one object read the desired object, or the observed one if there is no desired object.
/// Status and health prefer the observed object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// The object as the control plane wants it.
    pub desired: Option<&'a Value>,
    /// The object of the member cluster.
    pub observed: Option<&'a Value>,
    /// A list of `AggregatedStatusItem`s; without one the script gets nil, as in Karmada.
    pub status_items: Option<&'a Value>,
    /// The replicas for `ReviseReplica`, 0 by default.
    pub replicas: Option<i64>,
}

/// Runs the script for an operation; the value has one key a result, like `{"replica": 1, "requires": null}`.
pub(super) fn interpret(
    state: &State,
    operation: Operation,
    script: &Script,
    inputs: &Inputs<'_>,
    limits: &Limits,
) -> Result<Value, ScriptError> {
    let call = Call { state, operation, script, limits };
    match operation.name {
        "AggregateStatus" => {
            let items = inputs.status_items.map_or(Value::Null, status_items);
            let object = call.object(&[call.input(inputs.desired.or(inputs.observed))?, &items], &[])?;
            Ok(answer("aggregatedStatus", object))
        }
        "InterpretComponent" => call.components(inputs),
        "InterpretDependency" => call.dependencies(inputs),
        "InterpretHealth" => call.health(inputs),
        "InterpretReplica" => call.replicas(inputs),
        "InterpretStatus" => call.status(inputs),
        "Retain" => {
            let desired = call.input(inputs.desired)?;
            let observed = inputs.observed.unwrap_or(&Value::Null);
            call.object(&[desired, observed], &[desired, observed]).map(|object| answer("retained", object))
        }
        _ => {
            let object = call.input(inputs.desired.or(inputs.observed))?;
            let replicas = Value::from(inputs.replicas.unwrap_or(0));
            call.object(&[object, &replicas], &[object]).map(|object| answer("revised", object))
        }
    }
}

/// Returns an answer with one result; `json!` would copy it.
fn answer(key: &str, result: Value) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), result)]))
}

/// Writes the items as Karmada's type does: known fields, without those that are empty.
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

/// One call of a script for an operation.
struct Call<'a> {
    state: &'a State,
    operation: Operation,
    script: &'a Script,
    limits: &'a Limits,
}

impl Call<'_> {
    fn input<'a>(&self, object: Option<&'a Value>) -> Result<&'a Value, ScriptError> {
        object.filter(|object| object.is_object()).ok_or_else(|| ScriptError::WrongInput {
            operation: self.operation.name.to_owned(),
            message: "it needs an object to work on".to_owned(),
        })
    }

    fn wrong(&self, message: impl Into<String>) -> ScriptError {
        ScriptError::WrongResult { function: self.script.function().to_owned(), message: message.into() }
    }

    fn run<const N: usize>(&self, args: &[&Value]) -> Result<[Returned; N], ScriptError> {
        let results = self.state.call(self.script, self.limits, args, N)?;
        results.try_into().map_err(|_| self.wrong("the function returned too few values"))
    }

    /// Runs an operation that returns an object, which must have a kind.
    fn object(&self, args: &[&Value], references: &[&Value]) -> Result<Value, ScriptError> {
        let [result] = self.run(args)?;
        let Returned::Table(table) = result else {
            let got = result.type_name();
            return Err(self.wrong(format!("expect the returned requires type is table but got {got}")));
        };
        let object = repair(table, Root::Object, references);
        let has_kind = object.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
        if !has_kind {
            let shown: String = object.to_string().chars().take(200).collect();
            return Err(self.wrong(format!("json unmarshal obj failed: Object 'Kind' is missing in '{shown}'")));
        }
        Ok(object)
    }

    fn replicas(&self, inputs: &Inputs<'_>) -> Result<Value, ScriptError> {
        let [replicas, requirements] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let Returned::Number(replicas) = replicas else {
            return Err(self.wrong(format!("result type {} is not number", type_code(&replicas))));
        };
        let requirements = match requirements {
            Returned::Table(table) => {
                canonical::read::<ReplicaRequirements>(in_any_case(repair(table, Root::Object, &[])))
                    .and_then(|requirements| canonical::write(&requirements))
                    .map_err(|error| self.wrong(error))?
            }
            Returned::Other("nil") => Value::Null,
            other => {
                let got = other.type_name();
                return Err(self.wrong(format!("expect the returned requires type is table but got {got}")));
            }
        };
        Ok(json!({"replica": super::number::truncate_32(replicas), "requires": requirements}))
    }

    fn components(&self, inputs: &Inputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let components = match result {
            Returned::Table(table) => canonical::read_list::<Component>(in_any_case(repair(table, Root::List, &[])))
                .and_then(|components| canonical::write(&components))
                .map_err(|error| self.wrong(format!("failed to convert lua table for components: {error}")))?,
            Returned::Other("nil") => Value::Null,
            other => {
                let got = other.type_name();
                let message = format!("expected result type 'table' or 'nil' from GetComponents, but got '{got}'");
                return Err(self.wrong(message));
            }
        };
        Ok(answer("components", components))
    }

    fn dependencies(&self, inputs: &Inputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.desired.or(inputs.observed))?])?;
        let Returned::Table(table) = result else {
            let got = result.type_name();
            return Err(self.wrong(format!("expect the returned requires type is table but got {got}")));
        };
        let dependencies = canonical::read_list::<DependentReference>(in_any_case(repair(table, Root::List, &[])))
            .and_then(canonical::verify_dependencies)
            .and_then(|dependencies| canonical::write(&dependencies))
            .map_err(|error| self.wrong(error))?;
        Ok(answer("dependencies", dependencies))
    }

    fn health(&self, inputs: &Inputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.observed.or(inputs.desired))?])?;
        match result {
            Returned::Bool(healthy) => Ok(json!({"healthy": healthy})),
            other => Err(self.wrong(format!("result type {} is not bool", type_code(&other)))),
        }
    }

    fn status(&self, inputs: &Inputs<'_>) -> Result<Value, ScriptError> {
        let [result] = self.run(&[self.input(inputs.observed.or(inputs.desired))?])?;
        match result {
            Returned::Table(table) => Ok(answer("status", repair(table, Root::Object, &[]))),
            other => {
                let got = other.type_name();
                Err(self.wrong(format!("expect the returned replica type is table but got {got}")))
            }
        }
    }
}

/// Returns the number that gopher-lua has for the type: Karmada's messages show it.
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
