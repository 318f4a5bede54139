//! `ResourceInterpreterCustomization`s: the scripts of each kind and operation, checked as Karmada's webhook does.
//!
//! Reads the objects as JSON and hands on [`Scripts`], which a chain of interpreters asks for its kind.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::ScriptError;
use super::interpret::{Inputs, OPERATIONS, Operation};
use super::pool::Pool;
use super::script::Script;
use crate::canonical;
use crate::operation::DependentReference;

/// The group and version of customizations.
const API_VERSION: &str = "config.karmada.io/v1alpha1";

const KIND: &str = "ResourceInterpreterCustomization";

/// An error in a customization, or in a run of one of its scripts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomizationError {
    /// The object is of another kind.
    #[error("object {name:?} is no {KIND} of {API_VERSION} but a {found}: remove it")]
    OtherKind {
        /// The object's name, as far as it has one.
        name: String,
        /// Its apiVersion and kind.
        found: String,
    },
    /// A field is missing or of the wrong type.
    #[error("customization {name:?}: {field}: {help}")]
    Field {
        /// The customization.
        name: String,
        /// The path of the field.
        field: String,
        /// What to write.
        help: String,
    },
    /// A script does not compile, or failed.
    #[error("customization {name:?}, operation {operation}: {error}")]
    Script {
        /// The customization.
        name: String,
        /// The operation's name.
        operation: &'static str,
        /// What is wrong, with the script's line.
        error: ScriptError,
    },
    /// Another customization has a script for the same kind and operation.
    #[error(
        "customization {name:?}: conflicting with InterpreterOperation({operation}) of existing {KIND}({other}) for {kind}: keep one"
    )]
    Conflict {
        /// The customization that came later.
        name: String,
        /// The one that came first.
        other: String,
        /// The operation's name.
        operation: &'static str,
        /// The kind that both are for, as `apiVersion/kind`.
        kind: String,
    },
}

/// One customization: scripts for operations on one kind.
#[derive(Clone, Debug)]
pub struct Customization {
    name: String,
    /// `apiVersion` and `kind` of the objects.
    target: (String, String),
    /// Those that can't be used keep their place, with the error.
    scripts: Vec<(Operation, Result<Script, CustomizationError>)>,
}

impl Customization {
    /// Reads a customization and compiles its scripts. An empty script counts as absent, as in Karmada.
    ///
    /// # Errors
    /// All errors of the customization at once.
    pub fn parse(object: &Value) -> Result<Self, Vec<CustomizationError>> {
        let (customization, errors) = Self::read(object, &Scripts::default());
        if errors.is_empty() { Ok(customization) } else { Err(errors) }
    }

    /// Reads whatever state a customization is in, with everything that is wrong with it. A script of `known` that is still
    /// the same is that script, with the states that wait for it.
    pub(super) fn read(object: &Value, known: &Scripts) -> (Self, Vec<CustomizationError>) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("/metadata/name");
        let target = (text("/spec/target/apiVersion"), text("/spec/target/kind"));
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if api_version != API_VERSION || kind != KIND {
            let error = CustomizationError::OtherKind { name: name.clone(), found: format!("{kind} of {api_version}") };
            return (Self { name, target, scripts: Vec::new() }, vec![error]);
        }
        let mut errors = Vec::new();
        for pointer in ["/metadata/name", "/spec/target/apiVersion", "/spec/target/kind"] {
            if text(pointer).is_empty() {
                errors.push(field(&name, pointer, "it is missing: write a text that is not empty"));
            }
        }
        let mut scripts = Vec::new();
        match object.pointer("/spec/customizations").and_then(Value::as_object) {
            None => errors.push(field(&name, "/spec/customizations", "it is missing: write an object with scripts")),
            Some(customizations) => {
                for (key, customization) in customizations {
                    let Some(operation) = OPERATIONS.into_iter().find(|operation| operation.field == key) else {
                        errors.push(no_operation(&name, key));
                        continue;
                    };
                    let known = |source: &str| known.unchanged(&name, &target, operation, source);
                    let script = script(&name, operation, customization, known).transpose();
                    errors.extend(script.iter().filter_map(|script| script.as_ref().err().cloned()));
                    scripts.extend(script.map(|script| (operation, script)));
                }
            }
        }
        (Self { name, target, scripts }, errors)
    }

    /// Returns `metadata.name`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `apiVersion` and `kind` of `spec.target`: the objects for which the scripts are.
    pub fn target(&self) -> (&str, &str) {
        (&self.target.0, &self.target.1)
    }

    /// Returns the operations for which the customization has scripts.
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        self.scripts.iter().map(|(operation, _)| *operation)
    }

    /// Returns the first conflict with the other: a script for the same kind and operation. Scripts for dependencies
    /// add up instead.
    fn conflict(&self, other: &Self) -> Option<CustomizationError> {
        if self.target != other.target || self.name == other.name {
            return None;
        }
        let is_shared = |operation: &Operation| {
            !operation.is_additive() && other.operations().any(|others| others.name == operation.name)
        };
        let operation = self.operations().find(is_shared)?;
        Some(CustomizationError::Conflict {
            name: self.name.clone(),
            other: other.name.clone(),
            operation: operation.name,
            kind: format!("{}/{}", self.target.0, self.target.1),
        })
    }
}

fn field(name: &str, pointer: &str, help: &str) -> CustomizationError {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    CustomizationError::Field { name: name.to_owned(), field, help: help.to_owned() }
}

fn no_operation(name: &str, key: &str) -> CustomizationError {
    let fields = OPERATIONS.map(|operation| operation.field).join(", ");
    field(name, &format!("/spec/customizations/{key}"), &format!("it is no operation: write one of {fields}"))
}

/// Compiles the script of one operation, if it is not empty and not known.
fn script(
    name: &str,
    operation: Operation,
    customization: &Value,
    known: impl FnOnce(&str) -> Option<Script>,
) -> Result<Option<Script>, CustomizationError> {
    let source = match customization.get("luaScript") {
        Some(Value::String(source)) => source,
        _ if customization.is_null() => return Ok(None),
        _ => {
            let pointer = format!("/spec/customizations/{}/luaScript", operation.field);
            return Err(field(name, &pointer, "it is missing: write the script as text"));
        }
    };
    if source.is_empty() {
        return Ok(None);
    }
    let compiled = known(source).map_or_else(|| Script::compile(source, operation.function), Ok);
    compiled.map(Some).map_err(|error| CustomizationError::Script {
        name: name.to_owned(),
        operation: operation.name,
        error,
    })
}

/// The scripts of all customizations, by kind and operation.
///
/// ```
/// use kctl_interpreter::lua::Scripts;
/// use serde_json::json;
///
/// let customization = json!({
///     "apiVersion": "config.karmada.io/v1alpha1",
///     "kind": "ResourceInterpreterCustomization",
///     "metadata": { "name": "widgets" },
///     "spec": {
///         "target": { "apiVersion": "example.com/v1", "kind": "Widget" },
///         "customizations": { "healthInterpretation": { "luaScript": "function InterpretHealth(o) return true end" } },
///     },
/// });
/// let scripts = Scripts::parse([&customization]).map_err(|errors| errors[0].clone())?;
/// assert!(scripts.has("example.com/v1", "Widget", "InterpretHealth"));
/// # Ok::<(), kctl_interpreter::lua::CustomizationError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scripts {
    by_target: BTreeMap<(String, String), Vec<Rule>>,
}

#[derive(Clone, Debug)]
struct Rule {
    customization: String,
    operation: Operation,
    script: Result<Script, CustomizationError>,
}

impl Scripts {
    /// Reads customizations and refuses what Karmada's webhook would: a script that does not compile, and two
    /// customizations with a script for the same kind and operation.
    ///
    /// # Errors
    /// Everything that is wrong, at once.
    pub fn parse<'a>(documents: impl IntoIterator<Item = &'a Value>) -> Result<Self, Vec<CustomizationError>> {
        let (mut customizations, mut errors) = (Vec::<Customization>::new(), Vec::new());
        for document in documents {
            match Customization::parse(document) {
                Ok(customization) => {
                    errors.extend(customizations.iter().filter_map(|existing| customization.conflict(existing)));
                    customizations.push(customization);
                }
                Err(found) => errors.extend(found),
            }
        }
        if errors.is_empty() { Ok(Self::merge(customizations)) } else { Err(errors) }
    }

    /// Puts customizations together as Karmada does at run time: in the order of their names the first script of a
    /// kind and operation is used, and for dependencies all are.
    pub fn merge(customizations: impl IntoIterator<Item = Customization>) -> Self {
        let mut customizations: Vec<Customization> = customizations.into_iter().collect();
        customizations.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_target = BTreeMap::<_, Vec<Rule>>::new();
        for Customization { name, target, scripts } in customizations {
            let rules = by_target.entry(target).or_default();
            for (operation, script) in scripts {
                if operation.is_additive() || rules.iter().all(|rule| rule.operation != operation) {
                    rules.push(Rule { customization: name.clone(), operation, script });
                }
            }
        }
        Self { by_target }
    }

    /// Returns `true` if there are no scripts for any kind.
    pub fn is_empty(&self) -> bool {
        self.by_target.is_empty()
    }

    /// Returns `true` if there is a script for the operation on the kind.
    pub fn has(&self, api_version: &str, kind: &str, operation: &str) -> bool {
        self.rules(api_version, kind, operation).next().is_some()
    }

    /// Returns whether a script for the operation on the kind has blocked its thread for long.
    pub(super) fn are_slow(&self, api_version: &str, kind: &str, operation: &str) -> bool {
        self.rules(api_version, kind, operation).any(|rule| rule.script.as_ref().is_ok_and(Script::is_slow))
    }

    /// The script that a customization of this name had, where it was for the same and has not changed.
    fn unchanged(&self, name: &str, target: &(String, String), operation: Operation, source: &str) -> Option<Script> {
        let mut rules = self.by_target.get(target)?.iter();
        let rule = rules.find(|rule| rule.operation == operation && rule.customization == name)?;
        rule.script.as_ref().ok().filter(|script| script.source() == source).cloned()
    }

    #[cfg(test)]
    pub(super) fn script(&self, api_version: &str, kind: &str, operation: &str) -> Option<Script> {
        self.rules(api_version, kind, operation).next()?.script.as_ref().ok().cloned()
    }

    fn rules<'a>(&'a self, api_version: &str, kind: &str, operation: &'a str) -> impl Iterator<Item = &'a Rule> {
        let rules = self.by_target.get(&(api_version.to_owned(), kind.to_owned())).into_iter().flatten();
        rules.filter(move |rule| rule.operation.name == operation)
    }

    /// Runs the script for an operation on the object's kind, and returns `None` if there is no script. Dependencies of several scripts are
    /// combined.
    ///
    /// # Errors
    /// The first script that failed, with its customization. As in Karmada, no other layer is asked then.
    pub fn interpret(
        &self,
        pool: &Pool,
        operation: &str,
        inputs: &Inputs<'_>,
    ) -> Option<Result<Value, CustomizationError>> {
        let object = inputs.desired.or(inputs.observed)?;
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut results = Vec::new();
        for rule in self.rules(text("apiVersion"), text("kind"), operation) {
            let run = |script| pool.interpret(operation, script, inputs).map_err(|error| rule.error(error));
            match rule.script.as_ref().map_err(Clone::clone).and_then(run) {
                Ok(result) => results.push((rule, result)),
                Err(error) => return Some(Err(error)),
            }
        }
        let (rule, last) = results.pop()?;
        Some(if results.is_empty() { Ok(last) } else { union(rule, last, results.into_iter().map(|(_, list)| list)) })
    }
}

impl Rule {
    fn error(&self, error: ScriptError) -> CustomizationError {
        CustomizationError::Script { name: self.customization.clone(), operation: self.operation.name, error }
    }
}

fn union(rule: &Rule, last: Value, others: impl Iterator<Item = Value>) -> Result<Value, CustomizationError> {
    let lists = others.chain([last]).map(|mut result| result["dependencies"].take());
    let all: Vec<Value> = lists.flat_map(|list| list.as_array().cloned().unwrap_or_default()).collect();
    canonical::read_list::<DependentReference>(Value::Array(all))
        .and_then(canonical::verify_dependencies)
        .and_then(|dependencies| canonical::write(&dependencies))
        .map(|dependencies| json!({ "dependencies": dependencies }))
        .map_err(|message| {
            rule.error(ScriptError::WrongResult { function: rule.operation.function.to_owned(), message })
        })
}

#[cfg(test)]
#[path = "customization_tests.rs"]
mod tests;
