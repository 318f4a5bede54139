//! `ResourceInterpreterCustomization`s: the scripts of each kind and operation, checked as
//! Karmada's webhook does (`checkCustomizationsRule` and `validateCustomizationRule` in
//! `pkg/webhook/resourceinterpretercustomization/helper.go`).
//!
//! An object has one target kind, and a script for each operation in its own field:
//!
//! | field of `spec.customizations` | operation | function of the script |
//! |---|---|---|
//! | `replicaResource` | `InterpretReplica` | `GetReplicas(obj)` |
//! | `componentResource` | `InterpretComponent` | `GetComponents(obj)` |
//! | `replicaRevision` | `ReviseReplica` | `ReviseReplica(obj, replicas)` |
//! | `retention` | `Retain` | `Retain(desired, observed)` |
//! | `statusReflection` | `InterpretStatus` | `ReflectStatus(obj)` |
//! | `statusAggregation` | `AggregateStatus` | `AggregateStatus(obj, items)` |
//! | `healthInterpretation` | `InterpretHealth` | `InterpretHealth(obj)` |
//! | `dependencyInterpretation` | `InterpretDependency` | `GetDependencies(obj)` |

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::error::ScriptError;
use super::interpret::{SCRIPT_FUNCTIONS, ScriptFunction, ScriptInputs};
use super::pool::Pool;
use super::script::Script;
use crate::canonical;
use crate::operation::DependentReference;

const API_VERSION: &str = "config.karmada.io/v1alpha1";

const KIND: &str = "ResourceInterpreterCustomization";

/// The error of a customization, or of a run of one of its scripts. Each variant names the
/// customization.
///
/// ```
/// use kctl_interpreter::lua::{Customization, CustomizationError};
/// use serde_json::json;
///
/// let errors = Customization::parse(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } })).unwrap_err();
/// assert!(matches!(&errors[..], [CustomizationError::OtherKind { name, found, .. }] if name == "web" && found == "Pod of v1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CustomizationError {
    /// The object is not a customization: remove it.
    #[error("object {name:?} is not a {KIND} of {API_VERSION} but a {found}: remove it")]
    #[non_exhaustive]
    OtherKind {
        /// `metadata.name` of the object; empty if it has none.
        name: String,
        /// `kind` and `apiVersion` of the object.
        found: String,
    },
    /// A required field is missing, has another type, or is not known.
    #[error("customization {name:?}: {field}: {help}")]
    #[non_exhaustive]
    Field {
        /// The name of the customization.
        name: String,
        /// The path of the field, such as `spec.target.kind`.
        field: String,
        /// The problem, and the value to write.
        help: String,
    },
    /// A script does not compile, or a run of it failed.
    #[error("customization {name:?}, operation {operation}: {error}")]
    #[non_exhaustive]
    Script {
        /// The name of the customization.
        name: String,
        /// The name of the operation.
        operation: &'static str,
        /// The error, with the line of the script where it is known.
        error: ScriptError,
    },
    /// Another customization has a script for the same kind and operation.
    #[error(
        "customization {name:?}: conflicting with InterpreterOperation({operation}) of existing {KIND}({other}) for {kind}: keep one"
    )]
    #[non_exhaustive]
    Conflict {
        /// The name of the second customization.
        name: String,
        /// The name of the first customization.
        other: String,
        /// The name of the operation.
        operation: &'static str,
        /// The kind of both, as `apiVersion/kind`.
        kind: String,
    },
}

/// One customization: compiled scripts for operations on one kind.
///
/// Parse an object to check it before it is written, for example in a test of your own
/// customizations. Put several together with [`Scripts::merge`].
///
/// ```
/// use kctl_interpreter::lua::Customization;
/// use serde_json::json;
///
/// let customization = Customization::parse(&json!({
///     "apiVersion": "config.karmada.io/v1alpha1",
///     "kind": "ResourceInterpreterCustomization",
///     "metadata": { "name": "widgets" },
///     "spec": {
///         "target": { "apiVersion": "example.com/v1", "kind": "Widget" },
///         "customizations": { "healthInterpretation": { "luaScript": "function InterpretHealth(o) return true end" } },
///     },
/// }))
/// .map_err(|errors| errors[0].clone())?;
/// assert_eq!((customization.name(), customization.target()), ("widgets", ("example.com/v1", "Widget")));
/// assert_eq!(customization.operations().map(|one| one.name).collect::<Vec<_>>(), ["InterpretHealth"]);
/// # Ok::<(), kctl_interpreter::lua::CustomizationError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Customization {
    name: String,
    target: Target,
    /// The scripts by operation. An invalid script keeps its place, with its error.
    scripts: Vec<(ScriptFunction, Result<Script, CustomizationError>)>,
}

/// `spec.target`: the kind to which the scripts apply.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    api_version: String,
    kind: String,
}

impl Customization {
    /// Reads a customization and compiles its scripts. An empty script counts as absent, as in
    /// Karmada.
    ///
    /// ```
    /// use kctl_interpreter::lua::Customization;
    /// use serde_json::json;
    ///
    /// let errors = Customization::parse(&json!({
    ///     "apiVersion": "config.karmada.io/v1alpha1",
    ///     "kind": "ResourceInterpreterCustomization",
    ///     "metadata": { "name": "widgets" },
    ///     "spec": {
    ///         "target": { "apiVersion": "example.com/v1" },
    ///         "customizations": { "retention": { "luaScript": "function Retain(" } },
    ///     },
    /// }))
    /// .unwrap_err();
    /// assert_eq!(errors.len(), 2, "the kind is missing, and the script does not compile: {errors:?}");
    /// ```
    ///
    /// # Errors
    /// All errors of the customization at once.
    pub fn parse(object: &Value) -> Result<Self, Vec<CustomizationError>> {
        let (customization, errors) = Self::read(object, &Scripts::default());
        if errors.is_empty() { Ok(customization) } else { Err(errors) }
    }

    /// Reads a customization with all of its errors. In the result, a script that does not compile keeps its place, with its
    /// error.
    ///
    /// A script of `previous` is used again, with its idle Lua states, if the customization's name, the kind, the operation
    /// and the source are the same.
    pub(super) fn read(object: &Value, previous: &Scripts) -> (Self, Vec<CustomizationError>) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("/metadata/name");
        let target = Target { api_version: text("/spec/target/apiVersion"), kind: text("/spec/target/kind") };
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        if api_version != API_VERSION || kind != KIND {
            let error = CustomizationError::OtherKind { name: name.clone(), found: format!("{kind} of {api_version}") };
            return (Self { name, target, scripts: Vec::new() }, vec![error]);
        }
        let mut errors = Vec::new();
        for pointer in ["/metadata/name", "/spec/target/apiVersion", "/spec/target/kind"] {
            if text(pointer).is_empty() {
                errors.push(field(&name, pointer, "it is missing: write a string that is not empty"));
            }
        }
        let mut scripts = Vec::new();
        match object.pointer("/spec/customizations").and_then(Value::as_object) {
            None => errors.push(field(&name, "/spec/customizations", "it is missing: write an object with scripts")),
            Some(customizations) => {
                for (key, customization) in customizations {
                    let Some(operation) = SCRIPT_FUNCTIONS.into_iter().find(|operation| operation.field == key) else {
                        errors.push(unknown_operation(&name, key));
                        continue;
                    };
                    let previous = |source: &str| previous.reusable_script(&name, &target, operation, source);
                    let script = script(&name, operation, customization, previous).transpose();
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

    /// Returns `apiVersion` and `kind` of `spec.target`: the kind to which the scripts apply.
    pub fn target(&self) -> (&str, &str) {
        (&self.target.api_version, &self.target.kind)
    }

    /// Returns the operations that have a script, in the order of the object's fields. Scripts that
    /// do not compile are included.
    pub fn operations(&self) -> impl Iterator<Item = ScriptFunction> {
        self.scripts.iter().map(|(operation, _)| *operation)
    }

    /// Returns the first conflict with another customization: a script for the same kind and
    /// operation.
    ///
    /// Scripts for dependencies don't conflict, because their results are combined.
    fn conflict(&self, other: &Self) -> Option<CustomizationError> {
        if self.target != other.target || self.name == other.name {
            return None;
        }
        let is_shared = |operation: &ScriptFunction| {
            !operation.is_additive() && other.operations().any(|others| others.name == operation.name)
        };
        let operation = self.operations().find(is_shared)?;
        Some(CustomizationError::Conflict {
            name: self.name.clone(),
            other: other.name.clone(),
            operation: operation.name,
            kind: format!("{}/{}", self.target.api_version, self.target.kind),
        })
    }
}

fn field(name: &str, pointer: &str, help: &str) -> CustomizationError {
    let field = pointer.trim_start_matches('/').replace('/', ".");
    CustomizationError::Field { name: name.to_owned(), field, help: help.to_owned() }
}

/// Returns the error of a field of `spec.customizations` that no operation has.
fn unknown_operation(name: &str, key: &str) -> CustomizationError {
    let fields = SCRIPT_FUNCTIONS.map(|operation| operation.field).join(", ");
    field(name, &format!("/spec/customizations/{key}"), &format!("it is not an operation: write one of {fields}"))
}

/// Compiles the script of one operation; `None` if it is absent or empty. `unchanged` returns an
/// already compiled script with the same source.
fn script(
    name: &str,
    operation: ScriptFunction,
    customization: &Value,
    unchanged: impl FnOnce(&str) -> Option<Script>,
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
    let compiled = unchanged(source).map_or_else(|| Script::compile(source, operation.function), Ok);
    compiled.map(Some).map_err(|error| CustomizationError::Script {
        name: name.to_owned(),
        operation: operation.name,
        error,
    })
}

/// The scripts of all customizations, by kind and operation.
///
/// [`Scripts::parse`] is strict and reports what Karmada's validating webhook would reject.
/// [`Scripts::merge`] takes what a control plane has, conflicts included. A clone shares the
/// compiled scripts.
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
    /// The rules by `apiVersion` and `kind`. The rules of one operation are in the order of the customizations' names.
    /// Invariant: no list is empty.
    by_target: BTreeMap<Target, Vec<ScriptRule>>,
}

/// One script, and where it comes from.
#[derive(Clone, Debug)]
struct ScriptRule {
    customization: String,
    operation: ScriptFunction,
    /// The compiled script, or the error that each run returns.
    script: Result<Script, CustomizationError>,
}

impl Scripts {
    /// Reads customizations, and rejects what Karmada's validating webhook would: a script that
    /// does not compile, and two customizations with a script for the same kind and operation.
    ///
    /// # Errors
    /// All errors of all customizations at once.
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

    /// Combines customizations as Karmada does at run time (`LoadConfig` in
    /// `configmanager/manager.go`).
    ///
    /// In the order of their names, the first script of a kind and operation is used. For
    /// dependencies all scripts are used.
    ///
    /// ```
    /// use kctl_interpreter::lua::{Customization, Scripts};
    /// use serde_json::json;
    ///
    /// let customization = |name: &str, healthy: bool| {
    ///     Customization::parse(&json!({
    ///         "apiVersion": "config.karmada.io/v1alpha1",
    ///         "kind": "ResourceInterpreterCustomization",
    ///         "metadata": { "name": name },
    ///         "spec": {
    ///             "target": { "apiVersion": "example.com/v1", "kind": "Widget" },
    ///             "customizations": {
    ///                 "healthInterpretation": { "luaScript": format!("function InterpretHealth(o) return {healthy} end") },
    ///             },
    ///         },
    ///     }))
    ///     .map_err(|errors| errors[0].clone())
    /// };
    /// let scripts = Scripts::merge([customization("b", false)?, customization("a", true)?]);
    /// # use kctl_interpreter::lua::{ScriptInputs, Limits, Pool};
    /// let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget" });
    /// let inputs = ScriptInputs { observed: Some(&widget), ..ScriptInputs::default() };
    /// let answer = scripts.interpret(&Pool::new(Limits::default()), "InterpretHealth", &inputs);
    /// assert_eq!(answer, Some(Ok(json!({ "healthy": true }))), "the script of `a` comes first");
    /// # Ok::<(), kctl_interpreter::lua::CustomizationError>(())
    /// ```
    pub fn merge(customizations: impl IntoIterator<Item = Customization>) -> Self {
        let mut customizations: Vec<Customization> = customizations.into_iter().collect();
        customizations.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_target = BTreeMap::<_, Vec<ScriptRule>>::new();
        // A kind without a script gets no entry, which `is_empty` relies on.
        customizations.retain(|customization| !customization.scripts.is_empty());
        for Customization { name, target, scripts } in customizations {
            let rules = by_target.entry(target).or_default();
            for (operation, script) in scripts {
                if operation.is_additive() || rules.iter().all(|rule| rule.operation != operation) {
                    rules.push(ScriptRule { customization: name.clone(), operation, script });
                }
            }
        }
        Self { by_target }
    }

    /// Returns `true` if no kind has a script.
    pub fn is_empty(&self) -> bool {
        self.by_target.is_empty()
    }

    /// Returns `true` if an operation on a kind has a script, valid or not.
    pub fn has(&self, api_version: &str, kind: &str, operation: &str) -> bool {
        self.rules(api_version, kind, operation).next().is_some()
    }

    /// Returns `true` if a script for the operation on the kind has blocked its thread for long.
    pub(super) fn are_slow(&self, api_version: &str, kind: &str, operation: &str) -> bool {
        self.rules(api_version, kind, operation).any(|rule| rule.script.as_ref().is_ok_and(Script::is_slow))
    }

    /// Returns the script that a customization of this name already has for the kind and operation,
    /// if its source is the same.
    fn reusable_script(&self, name: &str, target: &Target, operation: ScriptFunction, source: &str) -> Option<Script> {
        let mut rules = self.by_target.get(target)?.iter();
        let rule = rules.find(|rule| rule.operation == operation && rule.customization == name)?;
        rule.script.as_ref().ok().filter(|script| script.source() == source).cloned()
    }

    #[cfg(test)]
    pub(super) fn script(&self, api_version: &str, kind: &str, operation: &str) -> Option<Script> {
        self.rules(api_version, kind, operation).next()?.script.as_ref().ok().cloned()
    }

    /// Returns the rules for an operation on a kind, in the order in which they run.
    fn rules<'a>(&'a self, api_version: &str, kind: &str, operation: &'a str) -> impl Iterator<Item = &'a ScriptRule> {
        let target = Target { api_version: api_version.to_owned(), kind: kind.to_owned() };
        let rules = self.by_target.get(&target).into_iter().flatten();
        rules.filter(move |rule| rule.operation.name == operation)
    }

    /// Runs the script for an operation on the object's kind; `None` without a script or an object.
    ///
    /// The result has the JSON form of [`Op::encode`](crate::operation::Op::encode). If several
    /// customizations have a script for `InterpretDependency`, all run, and the references are
    /// combined, sorted and without duplicates. For each script the call blocks its thread as
    /// long as [`Pool::interpret`] does.
    ///
    /// # Errors
    /// The error of the first script that failed, with the name of its customization. As in
    /// Karmada, no other layer answers then.
    pub fn interpret(
        &self,
        pool: &Pool,
        operation: &str,
        inputs: &ScriptInputs<'_>,
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

impl ScriptRule {
    /// Returns the error of a run, with the name of the customization.
    fn error(&self, error: ScriptError) -> CustomizationError {
        CustomizationError::Script { name: self.customization.clone(), operation: self.operation.name, error }
    }
}

/// Combines the dependencies of several scripts, and verifies them again as one list.
fn union(rule: &ScriptRule, last: Value, others: impl Iterator<Item = Value>) -> Result<Value, CustomizationError> {
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
