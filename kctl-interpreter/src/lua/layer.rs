//! [`Configurable`]: the scripts of customizations as a layer of the chain.

use std::sync::Arc;

use serde_json::Value;

use super::{Customization, CustomizationError, Pool, ScriptInputs, Scripts};
use crate::{
    chain::{Layer, LayerFuture, no_rule_error},
    kind::Gvk,
    operation::{self, Operation},
};

/// Scripts and the pool in which they run, as the layer at
/// [`LayerKind::Configurable`](crate::chain::LayerKind::Configurable).
///
/// A script runs on the thread that polls the operation, for as long as the limits of the pool
/// allow. Use a [`Registry`](crate::registry::Registry) if other tasks share the thread. A clone
/// shares scripts and pool.
///
/// ```
/// use kctl_interpreter::{chain::{Chain, LayerKind}, lua::{Configurable, Limits, Pool}, operation::{InterpretHealth, Object}};
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
/// let layer = Configurable::from_customizations([&customization], Pool::new(Limits::default()));
/// assert!(layer.errors().is_empty());
/// let chain = Chain::native().with(LayerKind::Configurable, layer);
/// let widget = Object(json!({ "apiVersion": "example.com/v1", "kind": "Widget" }));
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// assert!(chain.interpret::<InterpretHealth>(widget).await?);
/// # Ok::<_, kctl_interpreter::chain::ChainError>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Configurable {
    scripts: Arc<Scripts>,
    errors: Vec<CustomizationError>,
    /// The pool, which layers of changed customizations share.
    pool: Arc<Pool>,
}

impl Configurable {
    /// Creates the layer from scripts that were parsed already, without errors.
    pub fn new(scripts: Scripts, pool: Pool) -> Self {
        Self { scripts: Arc::new(scripts), errors: Vec::new(), pool: Arc::new(pool) }
    }

    /// Creates the layer from the customizations of a control plane, valid or not;
    /// [`Configurable::errors`] returns what is invalid.
    ///
    /// If two customizations have a script for the same kind and operation, the first by name wins,
    /// as in Karmada. An invalid script keeps its place and returns its error: otherwise another
    /// script would silently take over.
    pub fn from_customizations<'a>(customizations: impl IntoIterator<Item = &'a Value>, pool: Pool) -> Self {
        Self::new(Scripts::default(), pool).followed_by(customizations)
    }

    /// Creates the layer for changed customizations, with the same pool. They replace the customizations of this layer.
    ///
    /// Scripts that did not change are not compiled again, and keep their idle states. Call it when
    /// a watch reports a change.
    ///
    /// ```
    /// use kctl_interpreter::lua::{Configurable, Limits, Pool};
    /// use serde_json::json;
    ///
    /// let layer = Configurable::from_customizations([], Pool::new(Limits::default()));
    /// let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" } });
    /// let changed = layer.followed_by([&pod]);
    /// assert_eq!(
    ///     changed.errors()[0].to_string(),
    ///     "object \"web\" is not a ResourceInterpreterCustomization of config.karmada.io/v1alpha1 but a Pod of v1: remove it"
    /// );
    /// ```
    #[must_use]
    pub fn followed_by<'a>(&self, customizations: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut errors = Vec::new();
        let read = customizations.into_iter().map(|object| {
            let (customization, wrong) = Customization::read(object, &self.scripts);
            errors.extend(wrong);
            customization
        });
        let scripts = Scripts::merge(read);
        Self { scripts: Arc::new(scripts), errors, pool: self.pool.clone() }
    }

    /// Returns the errors of invalid customizations, in the order in which these were given. Log
    /// them, or report them in a condition.
    pub fn errors(&self) -> &[CustomizationError] {
        &self.errors
    }

    /// Runs the script for an operation, with the inputs converted to borrowed JSON.
    fn run_script(&self, operation: Operation, inputs: &operation::Inputs) -> Result<Value, crate::chain::LayerError> {
        let status_items = inputs.status_items.as_ref().map(serde_json::to_value).transpose()?;
        let values = ScriptInputs {
            desired: inputs.desired.as_ref(),
            observed: inputs.observed.as_ref(),
            status_items: status_items.as_ref(),
            replicas: inputs.replicas,
        };
        let answer = self.scripts.interpret(&self.pool, operation.name(), &values);
        answer.ok_or_else(|| no_rule_error(operation, &inputs.kind()))?.map_err(Into::into)
    }
}

impl Layer for Configurable {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        self.scripts.has(&kind.api_version(), &kind.kind, operation.name())
    }

    fn is_slow(&self, operation: Operation, kind: &Gvk) -> bool {
        self.scripts.are_slow(&kind.api_version(), &kind.kind, operation.name())
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a operation::Inputs) -> LayerFuture<'a> {
        Box::pin(std::future::ready(self.run_script(operation, inputs)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::lua::Limits;

    #[test]
    fn uncompilable_script_fails_only_its_own_operation() {
        let customization = |name: &str, scripts: Value| {
            json!({
                "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": { "name": name },
                "spec": { "target": { "apiVersion": "a.io/v1", "kind": "A" }, "customizations": scripts },
            })
        };
        let healthy = |yes: bool| json!({ "luaScript": format!("function InterpretHealth(o) return {yes} end") });
        let status = json!({ "luaScript": "function ReflectStatus(o) return { a = 1 } end" });
        let half = json!({ "luaScript": "function" });
        let objects = [
            customization("good", json!({ "healthInterpretation": healthy(true) })),
            customization(
                "half",
                json!({ "retention": half, "statusReflection": status, "dependencyInterpretation": null }),
            ),
            customization(
                "late",
                json!({ "healthInterpretation": healthy(false), "retention": { "luaScript": "function Retain(d, o) return d end" } }),
            ),
            customization("later", json!({ "healthInterpretation": half, "unknown": half })),
        ];
        let layer = Configurable::from_customizations(&objects, Pool::new(Limits::default()));
        let errors: Vec<String> = layer.errors().iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        let object = json!({ "apiVersion": "a.io/v1", "kind": "A" });
        let (kind, inputs) = (Gvk::from_object(&object), operation::Object(object).into());
        let cases = [
            // The second script of an operation is not used, so its error does not matter.
            (Operation::InterpretHealth, Some(Ok(json!({ "healthy": true })))),
            // A broken script answers with its error; the valid one after it is not used instead.
            (Operation::Retain, Some(Err("customization \"half\", operation Retain: "))),
            (Operation::InterpretStatus, Some(Ok(json!({ "status": { "a": 1 } })))),
            (Operation::InterpretDependency, None),
        ];
        for (operation, expected) in cases {
            assert_eq!(layer.handles(operation, &kind), expected.is_some(), "{operation}");
            match expected {
                Some(Ok(expected)) => assert_eq!(layer.run_script(operation, &inputs).unwrap(), expected),
                Some(Err(start)) => {
                    let error = layer.run_script(operation, &inputs).unwrap_err().to_string();
                    assert!(error.starts_with(start), "{error}");
                }
                None => {}
            }
        }
    }

    #[test]
    fn unchanged_scripts_are_not_recompiled() {
        let customization = |name: &str, kind: &str, answer: bool| {
            json!({
                "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
                "metadata": { "name": name },
                "spec": {
                    "target": { "apiVersion": "a.io/v1", "kind": kind },
                    "customizations": {
                        "healthInterpretation": { "luaScript": format!("function InterpretHealth(o) return {answer} end") },
                    },
                },
            })
        };
        let mut objects = [customization("a", "A", true), customization("b", "B", true)];
        let first = Configurable::from_customizations(&objects, Pool::new(Limits::default()));
        let script =
            |layer: &Configurable, kind: &str| layer.scripts.script("a.io/v1", kind, "InterpretHealth").unwrap();
        let ask = |layer: &Configurable, kind: &str| {
            let inputs = operation::Object(json!({ "apiVersion": "a.io/v1", "kind": kind })).into();
            layer.run_script(Operation::InterpretHealth, &inputs).unwrap()["healthy"].clone()
        };
        assert_eq!((ask(&first, "A"), ask(&first, "B")), (json!(true), json!(true)));
        objects[1] = customization("b", "B", false);
        let second = first.followed_by(&objects);
        assert!(script(&second, "A").is_same(&script(&first, "A")), "its states wait for it");
        assert!(!script(&second, "B").is_same(&script(&first, "B")));
        assert_eq!((ask(&second, "A"), ask(&second, "B")), (json!(true), json!(false)));
        assert_eq!(ask(&first, "B"), true, "a reader of the old layer keeps its answers");
        // The same script under another name belongs to another customization, and is compiled again.
        let third = second.followed_by(&[customization("c", "A", true)]);
        assert!(!script(&third, "A").is_same(&script(&second, "A")));
        assert!(
            !third.handles(
                Operation::InterpretHealth,
                &Gvk::from_object(&json!({ "apiVersion": "a.io/v1", "kind": "B" }))
            )
        );
    }

    #[test]
    fn customizations_with_equal_scripts_share_no_globals() {
        // Globals that it leaves behind would be visible to the next script in the same Lua state.
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
        let layer = Configurable::from_customizations(
            &[customization("First"), customization("Second")],
            Pool::new(Limits::default()),
        );
        assert!(layer.errors().is_empty());
        for kind in ["First", "Second", "First", "First", "Second"] {
            let inputs = operation::Object(json!({ "apiVersion": "a.io/v1", "kind": kind })).into();
            let expected = json!({ "counts": 2, "upvalue": 1, "before": "nobody", "kind": kind });
            assert_eq!(layer.run_script(Operation::InterpretStatus, &inputs).unwrap(), json!({ "status": expected }));
        }
        let pool = format!("{:?}", layer.pool);
        assert!(pool.contains("n_idle: 2"), "a state each: {pool}");
    }
}
