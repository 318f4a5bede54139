//! The chain of layers: finds the layer that answers an operation on a kind, and calls it.
//!
//! A [`Chain`] has at most one [`Layer`] of each [`LayerKind`]. The first one that has a rule for the operation and kind
//! answers; the layers after it are not asked, even if it fails. This is the order of Karmada's
//! `pkg/resourceinterpreter/interpreter.go`. A chain never changes under a caller: use [`Registry`](crate::registry::Registry)
//! (feature `registry`) if customizations or webhooks come and go.
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, Layer, LayerFuture, LayerKind}, kind::Gvk, operation::{Inputs, InterpretHealth, Object, Operation}};
//! use serde_json::json;
//!
//! /// Reports every Widget as healthy.
//! struct Widgets;
//!
//! impl Layer for Widgets {
//!     fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
//!         operation == Operation::InterpretHealth && kind.kind == "Widget"
//!     }
//!
//!     fn interpret<'a>(&'a self, _operation: Operation, _inputs: &'a Inputs) -> LayerFuture<'a> {
//!         Box::pin(async { Ok(json!({ "healthy": true })) })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let chain = Chain::native().with(LayerKind::Configurable, Widgets);
//! let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget" });
//! assert!(chain.interpret::<InterpretHealth>(Object(widget)).await?);
//! # Ok::<_, kctl_interpreter::chain::ChainError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::{
    error::Error,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
};

use serde_json::Value;

use crate::{
    kind::Gvk,
    native,
    operation::{Inputs, Op, Operation},
};

/// A kind of layer, and with it the position in the chain; the first layer with a rule answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerKind {
    /// Lua scripts of the `ResourceInterpreterCustomization`s that users install in the control plane.
    Configurable,
    /// HTTPS servers that users register with `ResourceInterpreterWebhookConfiguration`s.
    Webhook,
    /// Lua scripts for widely used kinds, which come with the control plane.
    ThirdParty,
    /// Rules for the built-in kinds of Kubernetes, such as Deployment and Job. `InterpretStatus` and `Prune` have a rule for every kind.
    Native,
}

impl LayerKind {
    /// Every kind of layer, in the order in which the chain looks for a rule.
    pub const ALL: [Self; 4] = [Self::Configurable, Self::Webhook, Self::ThirdParty, Self::Native];

    /// Returns the name of the layer in errors and in the label `layer` of metrics.
    ///
    /// ```
    /// use kctl_interpreter::chain::LayerKind;
    ///
    /// assert_eq!(LayerKind::ALL.map(LayerKind::name), ["configurable", "webhook", "third-party", "native"]);
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Configurable => "configurable",
            Self::Webhook => "webhook",
            Self::ThirdParty => "third-party",
            Self::Native => "native",
        }
    }
}

/// The error of a layer. [`ChainError::LayerFailed`] wraps it with the layer, the operation and the object.
pub type LayerError = Box<dyn Error + Send + Sync>;
/// The future of a layer's result, in the JSON form of [`Op::encode`].
pub type LayerFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, LayerError>> + Send + 'a>>;

/// A source of interpreter rules, such as scripts, webhooks or functions.
///
/// One method handles every operation: the types of [`Op`] convert inputs to [`Inputs`] and answers to outputs. Implement it to
/// answer from elsewhere; the [module](self) has an example.
pub trait Layer: Send + Sync {
    /// Returns `true` if the layer has a rule for an operation on a kind.
    ///
    /// The chain calls it for every operation, so it should look at memory only.
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool;

    /// Returns `true` if answers are known to block their thread for more than about a millisecond.
    ///
    /// A [`Registry`](crate::registry::Registry) then runs them where other tasks don't wait. The default is `false`.
    fn is_slow(&self, _operation: Operation, _kind: &Gvk) -> bool {
        false
    }

    /// Answers an operation, in the JSON form of [`Op::encode`].
    ///
    /// The chain calls the first layer whose [`Layer::handles`] returned `true`. If no layer has a rule, it calls the layer at
    /// [`LayerKind::Native`], which returns the error.
    ///
    /// The returned future may be dropped before it ends, for example when the caller's timeout passes.
    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a>;

    /// Answers like [`Layer::interpret`], and consumes the inputs.
    ///
    /// A layer that changes objects can override it to save the copy. The default borrows them.
    fn interpret_owned(&self, operation: Operation, inputs: Inputs) -> LayerFuture<'_> {
        Box::pin(async move { self.interpret(operation, &inputs).await })
    }
}

/// The error of an operation on a [`Chain`]. [`Chain::interpret`] and [`Chain::interpret_dynamic`] return it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No layer has a rule: install a customization or a webhook for the kind.
    #[error("interpreter for {operation} of {kind:?} not found: install a customization or a webhook for it", kind = kind.to_string())]
    #[non_exhaustive]
    RuleMissing {
        /// The operation of the call.
        operation: Operation,
        /// The kind of the object.
        kind: Gvk,
    },
    /// The customizations or webhooks of the control plane are not known yet: try again.
    #[error("not yet ready to handle request: the {} rules were not read yet", layer_kind.name())]
    #[non_exhaustive]
    NotReady {
        /// The layer that is waited for.
        layer_kind: LayerKind,
    },
    /// The layer that has the rule failed. Later layers are not called, as in Karmada.
    #[error("{} interpreter, {operation} of {}", layer_kind.name(), describe_object(kind, name))]
    #[non_exhaustive]
    LayerFailed {
        /// The layer that returned the error.
        layer_kind: LayerKind,
        /// The operation of the call.
        operation: Operation,
        /// The kind of the object.
        kind: Gvk,
        /// `namespace/name` of the object, or its name; empty where it has none.
        name: String,
        /// The error that the layer returned.
        source: LayerError,
    },
    /// A layer returned a result in a form that the operation does not have.
    #[error("{} interpreter, {operation} of {}: the result has the wrong form", layer_kind.name(), describe_object(kind, name))]
    #[non_exhaustive]
    ResultMalformed {
        /// The layer.
        layer_kind: LayerKind,
        /// The operation of the call.
        operation: Operation,
        /// The kind of the object.
        kind: Gvk,
        /// `namespace/name` of the object, or its name; empty where it has none.
        name: String,
        /// The mismatch between the result and the output of the operation.
        source: serde_json::Error,
    },
}

/// Returns the error of a layer that is asked although it has no rule, as the chain does with the last one.
#[cfg(any(feature = "lua", feature = "webhook-client"))]
pub(crate) fn no_rule_error(operation: Operation, kind: &Gvk) -> LayerError {
    ChainError::RuleMissing { operation, kind: kind.clone() }.into()
}

/// An object in a message: `apps/v1 Deployment default/web`.
fn describe_object(kind: &Gvk, name: &str) -> String {
    let space = if name.is_empty() { "" } else { " " };
    format!("{} {}{space}{name}", kind.api_version(), kind.kind)
}

/// Layers in the order of [`LayerKind`]. A clone is cheap and shares them.
///
/// The default chain has no layer, so every operation fails with [`ChainError::RuleMissing`].
#[derive(Clone, Default)]
pub struct Chain {
    layers: [Option<Arc<dyn Layer>>; LayerKind::ALL.len()],
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain").field("n_layers", &self.layers.iter().flatten().count()).finish_non_exhaustive()
    }
}

impl Chain {
    /// Creates a chain with the rules for the built-in kinds at [`LayerKind::Native`].
    ///
    /// ```
    /// use kctl_interpreter::{chain::{Chain, LayerKind}, kind::Gvk, operation::Operation};
    ///
    /// let pod = Gvk { group: String::new(), version: "v1".into(), kind: "Pod".into() };
    /// assert_eq!(Chain::native().layer_kind(Operation::InterpretHealth, &pod), Some(LayerKind::Native));
    /// assert_eq!(Chain::default().layer_kind(Operation::InterpretHealth, &pod), None);
    /// ```
    pub fn native() -> Self {
        Self::default().with(LayerKind::Native, Native)
    }

    /// Returns the chain with `layer` as its layer of this kind, in place of an earlier one.
    #[must_use]
    pub fn with(mut self, layer_kind: LayerKind, layer: impl Layer + 'static) -> Self {
        self.layers[layer_kind as usize] = Some(Arc::new(layer));
        self
    }

    /// Sets the layer of a kind, or removes it if `layer` is `None`.
    pub fn set(&mut self, layer_kind: LayerKind, layer: Option<Arc<dyn Layer>>) {
        self.layers[layer_kind as usize] = layer;
    }

    /// Returns the kind of the layer that answers an operation on a kind of object; `None` if no layer has a rule.
    pub fn layer_kind(&self, operation: Operation, kind: &Gvk) -> Option<LayerKind> {
        let layer = |layer_kind: &LayerKind| self.layers[*layer_kind as usize].as_ref();
        LayerKind::ALL
            .into_iter()
            .find(|layer_kind| layer(layer_kind).is_some_and(|layer| layer.handles(operation, kind)))
    }

    #[cfg(feature = "registry")]
    pub(crate) fn has_layer(&self, layer_kind: LayerKind) -> bool {
        self.layers[layer_kind as usize].is_some()
    }

    #[cfg(feature = "registry")]
    pub(crate) fn is_slow(&self, layer_kind: Option<LayerKind>, operation: Operation, kind: &Gvk) -> bool {
        layer_kind
            .and_then(|layer_kind| self.layers[layer_kind as usize].as_ref())
            .is_some_and(|layer| layer.is_slow(operation, kind))
    }

    /// Returns `true` if any layer has a rule for an operation on a kind.
    ///
    /// The name follows `HookEnabled` in Karmada's `ResourceInterpreter` interface.
    pub fn hook_enabled(&self, operation: Operation, kind: &Gvk) -> bool {
        self.layer_kind(operation, kind).is_some()
    }

    /// Runs an operation that is known when the program is compiled.
    ///
    /// The type parameter gives the input and the output their types, such as [`Object`](crate::operation::Object) and `bool` for
    /// [`InterpretHealth`](crate::operation::InterpretHealth). Use [`Chain::interpret_dynamic`] if the operation is a value.
    ///
    /// ```
    /// use kctl_interpreter::{chain::Chain, operation::{ReviseReplica, Revision}};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let object = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 3 } });
    /// let revised = Chain::native().interpret::<ReviseReplica>(Revision { object, replicas: 5 }).await?;
    /// assert_eq!(revised["spec"]["replicas"], 5);
    /// # Ok::<_, kctl_interpreter::chain::ChainError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ChainError::RuleMissing`]: the chain has no layer with a rule, and no native layer either. A native layer without a
    ///   rule fails with [`ChainError::LayerFailed`] instead, in Karmada's words.
    /// - [`ChainError::LayerFailed`]: the layer with the rule failed. No other layer is tried.
    /// - [`ChainError::ResultMalformed`]: the result does not have the type of the output.
    ///
    /// # Cancel safety
    /// Dropping the future drops the future of the layer. A webhook may have received the request by then.
    pub async fn interpret<O: Op>(&self, input: O::Input) -> Result<O::Output, ChainError> {
        let inputs: Inputs = input.into();
        self.interpret_inputs::<O>(inputs.kind(), inputs).await
    }

    /// Runs an operation on inputs of a kind that is known.
    pub(crate) async fn interpret_inputs<O: Op>(&self, kind: Gvk, inputs: Inputs) -> Result<O::Output, ChainError> {
        let operation = O::OPERATION;
        let (layer_kind, layer) = self.layer(operation, &kind)?;
        let name = inputs.name();
        match layer.interpret_owned(operation, inputs).await {
            Ok(result) => O::decode(result).map_err(|source| ChainError::ResultMalformed {
                layer_kind,
                operation,
                kind,
                name,
                source,
            }),
            Err(source) => Err(ChainError::LayerFailed { layer_kind, operation, kind, name, source }),
        }
    }

    /// Runs an operation that is known only at run time, and returns the result in the JSON form of [`Op::encode`].
    ///
    /// ```
    /// use kctl_interpreter::{chain::Chain, operation::{Inputs, Operation}};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "spec": { "parallelism": 4 } });
    /// let inputs = Inputs { desired: Some(job), ..Inputs::default() };
    /// let answer = Chain::native().interpret_dynamic(Operation::InterpretReplica, &inputs).await?;
    /// assert_eq!(answer["replica"], 4);
    /// # Ok::<_, kctl_interpreter::chain::ChainError>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Chain::interpret`], except that the type of the result is not checked.
    pub async fn interpret_dynamic(&self, operation: Operation, inputs: &Inputs) -> Result<Value, ChainError> {
        let kind = inputs.kind();
        let (layer_kind, layer) = self.layer(operation, &kind)?;
        let answer = layer.interpret(operation, inputs).await;
        answer.map_err(|source| ChainError::LayerFailed { layer_kind, operation, kind, name: inputs.name(), source })
    }

    fn layer(&self, operation: Operation, kind: &Gvk) -> Result<(LayerKind, &dyn Layer), ChainError> {
        // If no layer has a rule, the native layer returns the error: the built-in kinds in the words that users of Karmada
        // know, any other layer in its words.
        let layer_kind = self.layer_kind(operation, kind).unwrap_or(LayerKind::Native);
        let missing = || ChainError::RuleMissing { operation, kind: kind.clone() };
        Ok((layer_kind, self.layers[layer_kind as usize].as_deref().ok_or_else(missing)?))
    }
}

/// The built-in kinds as a layer.
struct Native;

impl Layer for Native {
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool {
        native::handles(operation, kind)
    }

    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a> {
        Box::pin(ready(native::interpret(operation, inputs).map_err(LayerError::from)))
    }

    fn interpret_owned(&self, operation: Operation, inputs: Inputs) -> LayerFuture<'_> {
        Box::pin(ready(native::interpret_owned(operation, inputs).map_err(LayerError::from)))
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use serde_json::json;

    use super::*;
    use crate::operation::{InterpretHealth, InterpretReplica, Object, ReviseReplica, Revision};

    /// Has rules for Deployments, and answers all of them the same.
    struct Fixed(Result<Value, &'static str>);

    impl Layer for Fixed {
        fn handles(&self, _operation: Operation, kind: &Gvk) -> bool {
            kind.kind == "Deployment"
        }

        fn interpret<'a>(&'a self, _operation: Operation, _inputs: &'a Inputs) -> LayerFuture<'a> {
            Box::pin(async { self.0.clone().map_err(LayerError::from) })
        }
    }

    fn now<T>(future: impl Future<Output = T>) -> T {
        match Box::pin(future).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the layers of these tests never wait"),
        }
    }

    fn object(kind: &str) -> Object {
        Object(json!({ "apiVersion": "apps/v1", "kind": kind, "spec": { "replicas": 2 } }))
    }

    #[test]
    fn layer_precedence_ignores_registration_order() {
        let chain = Chain::native()
            .with(LayerKind::ThirdParty, Fixed(Ok(json!({ "replica": 3, "requires": null }))))
            .with(LayerKind::Webhook, Fixed(Ok(json!({ "replica": 4, "requires": null }))));
        for (kind, replicas) in [("Deployment", 4), ("ReplicaSet", 2)] {
            let answer = now(chain.interpret::<InterpretReplica>(object(kind)));
            assert_eq!(answer.map(|answer| answer.replicas).ok(), Some(replicas), "{kind}");
        }
    }

    #[test]
    fn layer_error_is_final_and_names_the_layer() {
        let chain = Chain::native().with(LayerKind::Configurable, Fixed(Err("script broken")));
        let error = now(chain.interpret::<InterpretHealth>(object("Deployment"))).unwrap_err();
        assert_eq!(error.to_string(), "configurable interpreter, InterpretHealth of apps/v1 Deployment");
        assert_eq!(error.source().unwrap().to_string(), "script broken");
        let mut named = object("Deployment");
        named.0["metadata"] = json!({ "namespace": "shop", "name": "web" });
        let error = now(chain.interpret::<InterpretHealth>(named)).unwrap_err();
        assert_eq!(error.to_string(), "configurable interpreter, InterpretHealth of apps/v1 Deployment shop/web");
    }

    #[test]
    fn answer_of_another_form_is_a_layer_error() {
        for answer in [json!({ "healthy": "yes" }), json!({}), json!([]), json!(true)] {
            let chain = Chain::native().with(LayerKind::Webhook, Fixed(Ok(answer)));
            let error = now(chain.interpret::<InterpretHealth>(object("Deployment"))).unwrap_err();
            assert!(matches!(error, ChainError::ResultMalformed { layer_kind: LayerKind::Webhook, .. }), "{error}");
        }
    }

    #[test]
    fn built_in_layer_reports_a_missing_rule() {
        let error = now(Chain::native().interpret::<InterpretHealth>(object("Widget"))).unwrap_err();
        let text = error.source().unwrap().to_string();
        assert_eq!(text, "default InterpretHealth interpreter for \"apps/v1, Kind=Widget\" not found");
        let error = now(Chain::default().interpret::<InterpretHealth>(object("Widget"))).unwrap_err();
        assert!(matches!(error, ChainError::RuleMissing { .. }), "{error}");
    }

    #[test]
    fn hook_is_enabled_if_any_layer_has_rule() {
        let (deployment, widget) = (Gvk::from_object(&object("Deployment").0), Gvk::from_object(&object("Widget").0));
        let chain = Chain::native().with(LayerKind::Webhook, Fixed(Ok(Value::Null)));
        let cases = [
            (Operation::InterpretComponent, &deployment, true),
            (Operation::InterpretStatus, &widget, true),
            (Operation::InterpretHealth, &widget, false),
        ];
        for (operation, kind, enabled) in cases {
            assert_eq!(chain.hook_enabled(operation, kind), enabled, "{operation} of {kind}");
        }
    }

    #[test]
    fn answer_is_equal_by_type_and_by_name() {
        // `interpret` takes the input by value, and `interpret_dynamic` borrows it.
        let input = Revision { object: object("Deployment").0, replicas: 5 };
        let typed = now(Chain::native().interpret::<ReviseReplica>(input.clone())).unwrap();
        let named = now(Chain::native().interpret_dynamic(Operation::ReviseReplica, &input.into())).unwrap();
        assert_eq!(typed["spec"]["replicas"], 5);
        assert_eq!(named, ReviseReplica::encode(&typed).unwrap());
    }
}
