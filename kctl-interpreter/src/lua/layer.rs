//! The scripts of customizations as a layer of the chain.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Customization, CustomizationError, Inputs, OPERATIONS, Pool, Scripts};
use crate::{
    chain::{Layer, LayerFuture},
    kind::Gvk,
    operation::{self, Operation},
};

/// Scripts, and the pool in which they run. A script runs on the thread that asks, for as long as the limits of the pool
/// allow.
pub struct Configurable {
    scripts: Scripts,
    /// Why there is no script, by kind and operation, where one was written that can't be used.
    broken: BTreeMap<(String, String, &'static str), CustomizationError>,
    pool: Pool,
}

impl Configurable {
    /// Makes a layer of scripts.
    pub fn new(scripts: Scripts, pool: Pool) -> Self {
        Self { scripts, broken: BTreeMap::new(), pool }
    }

    /// Makes a layer of the customizations that a control plane has, whatever state they are in. Where two have a script for
    /// one kind and operation, the first by name is used, as in Karmada. A script that can't be used has its error for an
    /// answer: without it, another layer would answer, and nobody would know.
    pub fn of_control_plane<'a>(customizations: impl IntoIterator<Item = &'a Value>, pool: Pool) -> Self {
        let mut good = Vec::new();
        let mut broken = BTreeMap::new();
        for object in customizations {
            match Customization::parse(object) {
                Ok(customization) => good.push(customization),
                Err(errors) => {
                    for error in errors {
                        broken.extend(concerned(object, &error).map(|key| (key, error.clone())));
                    }
                }
            }
        }
        Self { scripts: Scripts::merge(good), broken, pool }
    }

    /// The errors of the customizations that can't be used, each once.
    pub fn errors(&self) -> Vec<&CustomizationError> {
        let mut errors: Vec<_> = self.broken.values().collect();
        errors.dedup();
        errors
    }

    fn is_broken(&self, operation: Operation, kind: &Gvk) -> Option<&CustomizationError> {
        // Not worth three allocations a call where nothing is broken, which is always.
        let key = || (kind.api_version(), kind.kind.clone(), operation.name());
        if self.broken.is_empty() { None } else { self.broken.get(&key()) }
    }

    fn answer(&self, operation: Operation, inputs: &operation::Inputs) -> Result<Value, crate::chain::LayerError> {
        if let Some(error) = self.is_broken(operation, &inputs.kind()) {
            return Err(error.clone().into());
        }
        let status_items = inputs.status_items.as_ref().map(serde_json::to_value).transpose()?;
        let values = Inputs {
            desired: inputs.desired.as_ref(),
            observed: inputs.observed.as_ref(),
            status_items: status_items.as_ref(),
            replicas: inputs.replicas,
        };
        let answer = self.scripts.interpret(&self.pool, operation.name(), &values);
        answer.unwrap_or_else(|| unreachable!("the chain asks only for what the layer handles")).map_err(Into::into)
    }
}

/// The operations that an error leaves without a script: one for a script, else all that the object has one for.
fn concerned(object: &Value, error: &CustomizationError) -> impl Iterator<Item = (String, String, &'static str)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let target = (text("/spec/target/apiVersion"), text("/spec/target/kind"));
    let written =
        |field: &str| object.pointer(&format!("/spec/customizations/{field}")).is_some_and(|it| !it.is_null());
    let only = match error {
        CustomizationError::Script { operation, .. } => Some(*operation),
        _ => None,
    };
    let names = OPERATIONS.into_iter().filter(|operation| written(operation.field)).map(|operation| operation.name);
    let names: Vec<_> = names.filter(|name| only.is_none_or(|only| only == *name)).collect();
    names.into_iter().map(move |name| (target.0.clone(), target.1.clone(), name))
}

impl Layer for Configurable {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.scripts.has(&kind.api_version(), &kind.kind, operation.name()) || self.is_broken(operation, kind).is_some()
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a operation::Inputs) -> LayerFuture<'a> {
        Box::pin(std::future::ready(self.answer(operation, inputs)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lua::Limits;

    #[test]
    fn a_script_that_does_not_compile_has_its_error_for_an_answer_and_spoils_no_other() {
        let customization = |name: &str, scripts: Value| {
            json!({
                "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": { "name": name },
                "spec": { "target": { "apiVersion": "a.io/v1", "kind": "A" }, "customizations": scripts },
            })
        };
        let healthy = json!({ "luaScript": "function InterpretHealth(o) return true end" });
        let half = json!({ "luaScript": "function" });
        let objects = [
            customization("good", json!({ "healthInterpretation": healthy })),
            customization("half", json!({ "retention": half, "dependencyInterpretation": null })),
            customization(
                "late",
                json!({ "healthInterpretation": { "luaScript": "function InterpretHealth(o) return false end" } }),
            ),
        ];
        let layer = Configurable::of_control_plane(&objects, Pool::new(Limits::default()));
        assert_eq!(layer.errors().len(), 1);
        let object = json!({ "apiVersion": "a.io/v1", "kind": "A" });
        let (kind, inputs) = (Gvk::of(&object), operation::Object(object).into());
        let cases = [
            (Operation::InterpretHealth, Some(Ok(json!({ "healthy": true })))),
            (Operation::Retain, Some(Err("customization \"half\", operation Retain: "))),
            (Operation::InterpretDependency, None),
        ];
        for (operation, expected) in cases {
            assert_eq!(layer.handles(operation, &kind), expected.is_some(), "{operation}");
            match expected {
                Some(Ok(expected)) => assert_eq!(layer.answer(operation, &inputs).unwrap(), expected),
                Some(Err(start)) => {
                    let error = layer.answer(operation, &inputs).unwrap_err().to_string();
                    assert!(error.starts_with(start), "{error}");
                }
                None => {}
            }
        }
    }

    #[test]
    fn customizations_with_equal_scripts_leave_one_another_nothing() {
        // Whatever it leaves behind would be seen by who runs in the same state.
        let script = "counts = (counts or 0) + 1
            local upvalue = 0
            function ReflectStatus(o)
              counts, upvalue = counts + 1, upvalue + 1
              local kube, before = require('kube'), string.seen
              string.seen, kube.seen, math.seen = o.kind, o.kind, o.kind
              return { counts = counts, upvalue = upvalue, before = before or 'nobody', kind = o.kind }
            end";
        let customization = |kind: &str| {
            json!({
                "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": { "name": kind.to_lowercase() },
                "spec": {
                    "target": { "apiVersion": "a.io/v1", "kind": kind },
                    "customizations": { "statusReflection": { "luaScript": script } },
                },
            })
        };
        let layer = Configurable::of_control_plane(
            &[customization("First"), customization("Second")],
            Pool::new(Limits::default()),
        );
        assert!(layer.errors().is_empty());
        for kind in ["First", "Second", "First", "First", "Second"] {
            let inputs = operation::Object(json!({ "apiVersion": "a.io/v1", "kind": kind })).into();
            let expected = json!({ "counts": 2, "upvalue": 1, "before": "nobody", "kind": kind });
            assert_eq!(layer.answer(Operation::InterpretStatus, &inputs).unwrap(), json!({ "status": expected }));
        }
        let pool = format!("{:?}", layer.pool);
        assert!(pool.contains("n_idle: 2"), "a state each: {pool}");
    }
}
