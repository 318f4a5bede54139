//! The chain of layers: who answers an operation on a kind.

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

/// The place of a layer in the chain; the first place with a rule answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Scripts that the users of the control plane install.
    Configurable,
    /// Programs that they run.
    Webhook,
    /// Scripts for well-known kinds that come with the control plane.
    ThirdParty,
    /// The built-in kinds.
    Native,
}

impl Place {
    /// Every place, the first to be asked first.
    pub const ALL: [Self; 4] = [Self::Configurable, Self::Webhook, Self::ThirdParty, Self::Native];

    /// Returns the name that errors give the layer.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configurable => "configurable",
            Self::Webhook => "webhook",
            Self::ThirdParty => "third-party",
            Self::Native => "native",
        }
    }
}

/// Why a layer has no answer.
pub type LayerError = Box<dyn Error + Send + Sync>;
/// The answer of a layer, once it is there.
pub type LayerFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, LayerError>> + Send + 'a>>;

/// A source of interpreter rules. One method handles every operation; the types of [`Op`] convert inputs to [`Inputs`] and results to
/// outputs.
pub trait Layer: Send + Sync {
    /// Tells whether the layer has a rule for an operation on a kind.
    fn handles(&self, operation: Operation, kind: &Gvk) -> bool;

    /// Tells whether an answer is known to block its thread for so long that others should go on elsewhere meanwhile.
    fn is_slow(&self, _operation: Operation, _kind: &Gvk) -> bool {
        false
    }

    /// Answers an operation that the layer handles, in the form of [`Op::answer`].
    fn interpret<'a>(&'a self, operation: Operation, inputs: &'a Inputs) -> LayerFuture<'a>;

    /// As [`Layer::interpret`], for inputs that nobody needs any more: a layer that changes objects need not copy them then.
    fn interpret_owned(&self, operation: Operation, inputs: Inputs) -> LayerFuture<'_> {
        Box::pin(async move { self.interpret(operation, &inputs).await })
    }
}

/// Why an operation has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// No layer has a rule: install a customization or a webhook for the kind.
    #[error("interpreter for {operation} of {kind:?} not found: install a customization or a webhook for it", kind = kind.to_string())]
    RuleMissing {
        /// What was asked.
        operation: Operation,
        /// Of what.
        kind: Gvk,
    },
    /// The customizations or webhooks of the control plane are not known yet: try again.
    #[error("not yet ready to handle request: the {} rules were not read yet", place.name())]
    NotReady {
        /// The layer that is waited for.
        place: Place,
    },
    /// The layer that has the rule failed. No other layer is asked: it would know less.
    #[error("{} interpreter, {operation} of {}", place.name(), shown(kind, name))]
    LayerFailed {
        /// The layer.
        place: Place,
        /// What was asked.
        operation: Operation,
        /// Of what.
        kind: Gvk,
        /// `namespace/name` of the object, or its name; empty where it has none.
        name: String,
        /// Why the layer failed.
        source: LayerError,
    },
    /// A layer answered in a form that the operation does not have.
    #[error("{} interpreter, {operation} of {}: the answer has the wrong form", place.name(), shown(kind, name))]
    AnswerMalformed {
        /// The layer.
        place: Place,
        /// What was asked.
        operation: Operation,
        /// Of what.
        kind: Gvk,
        /// `namespace/name` of the object, or its name; empty where it has none.
        name: String,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
}

/// An object in a message: `apps/v1 Deployment default/web`.
fn shown(kind: &Gvk, name: &str) -> String {
    let space = if name.is_empty() { "" } else { " " };
    format!("{} {}{space}{name}", kind.api_version(), kind.kind)
}

/// The layers in the order of their places. A clone shares them.
#[derive(Clone, Default)]
pub struct Chain {
    layers: [Option<Arc<dyn Layer>>; Place::ALL.len()],
}

impl Chain {
    /// Makes a chain that knows the built-in kinds.
    pub fn native() -> Self {
        Self::default().with(Place::Native, Native)
    }

    /// Returns the chain with a layer at a place, instead of the one that was there.
    #[must_use]
    pub fn with(mut self, place: Place, layer: impl Layer + 'static) -> Self {
        self.layers[place as usize] = Some(Arc::new(layer));
        self
    }

    /// Puts a layer at a place, or takes it away.
    pub fn set(&mut self, place: Place, layer: Option<Arc<dyn Layer>>) {
        self.layers[place as usize] = layer;
    }

    /// Returns the place whose layer answers an operation on a kind; `None` where no layer has a rule.
    pub fn place(&self, operation: Operation, kind: &Gvk) -> Option<Place> {
        let layer = |place: &Place| self.layers[*place as usize].as_ref();
        Place::ALL.into_iter().find(|place| layer(place).is_some_and(|layer| layer.handles(operation, kind)))
    }

    #[cfg(feature = "registry")]
    pub(crate) fn is_slow(&self, place: Option<Place>, operation: Operation, kind: &Gvk) -> bool {
        place.and_then(|place| self.layers[place as usize].as_ref()).is_some_and(|layer| layer.is_slow(operation, kind))
    }

    /// Tells whether any layer has a rule for an operation on a kind.
    pub fn hook_enabled(&self, operation: Operation, kind: &Gvk) -> bool {
        self.place(operation, kind).is_some()
    }

    /// Runs an operation.
    ///
    /// # Errors
    /// No layer has a rule, or the one that has it failed; the error names it.
    pub async fn interpret<O: Op>(&self, input: O::Input) -> Result<O::Output, ChainError> {
        let inputs: Inputs = input.into();
        self.interpret_inputs::<O>(inputs.kind(), inputs).await
    }

    /// Runs an operation on inputs of a kind that is known.
    pub(crate) async fn interpret_inputs<O: Op>(&self, kind: Gvk, inputs: Inputs) -> Result<O::Output, ChainError> {
        let operation = O::OPERATION;
        let (place, layer) = self.layer(operation, &kind)?;
        let name = inputs.name();
        match layer.interpret_owned(operation, inputs).await {
            Ok(answer) => {
                O::output(answer).map_err(|source| ChainError::AnswerMalformed { place, operation, kind, name, source })
            }
            Err(source) => Err(ChainError::LayerFailed { place, operation, kind, name, source }),
        }
    }

    /// Runs an operation that is known only at run time, and returns the answer in its form in JSON.
    ///
    /// # Errors
    /// As [`Chain::interpret`].
    pub async fn answer(&self, operation: Operation, inputs: &Inputs) -> Result<Value, ChainError> {
        let kind = inputs.kind();
        let (place, layer) = self.layer(operation, &kind)?;
        let answer = layer.interpret(operation, inputs).await;
        answer.map_err(|source| ChainError::LayerFailed { place, operation, kind, name: inputs.name(), source })
    }

    fn layer(&self, operation: Operation, kind: &Gvk) -> Result<(Place, &dyn Layer), ChainError> {
        // Without a rule anywhere the built-in layer says so, in the words that users of Karmada know.
        let place = self.place(operation, kind).unwrap_or(Place::Native);
        let missing = || ChainError::RuleMissing { operation, kind: kind.clone() };
        Ok((place, self.layers[place as usize].as_deref().ok_or_else(missing)?))
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
    fn the_first_place_with_a_rule_answers_whatever_the_order_of_registration() {
        let chain = Chain::native()
            .with(Place::ThirdParty, Fixed(Ok(json!({ "replica": 3, "requires": null }))))
            .with(Place::Webhook, Fixed(Ok(json!({ "replica": 4, "requires": null }))));
        for (kind, replicas) in [("Deployment", 4), ("ReplicaSet", 2)] {
            let answer = now(chain.interpret::<InterpretReplica>(object(kind)));
            assert_eq!(answer.map(|answer| answer.replicas).ok(), Some(replicas), "{kind}");
        }
    }

    #[test]
    fn an_error_of_a_layer_is_final_and_names_it() {
        let chain = Chain::native().with(Place::Configurable, Fixed(Err("script broken")));
        let error = now(chain.interpret::<InterpretHealth>(object("Deployment"))).unwrap_err();
        assert_eq!(error.to_string(), "configurable interpreter, InterpretHealth of apps/v1 Deployment");
        assert_eq!(error.source().unwrap().to_string(), "script broken");
        let mut named = object("Deployment");
        named.0["metadata"] = json!({ "namespace": "shop", "name": "web" });
        let error = now(chain.interpret::<InterpretHealth>(named)).unwrap_err();
        assert_eq!(error.to_string(), "configurable interpreter, InterpretHealth of apps/v1 Deployment shop/web");
    }

    #[test]
    fn an_answer_of_another_form_is_an_error_of_its_layer() {
        let chain = Chain::native().with(Place::Webhook, Fixed(Ok(json!({ "healthy": "yes" }))));
        let error = now(chain.interpret::<InterpretHealth>(object("Deployment"))).unwrap_err();
        assert!(matches!(error, ChainError::AnswerMalformed { place: Place::Webhook, .. }), "{error}");
    }

    #[test]
    fn without_a_rule_the_built_in_layer_says_what_is_not_found() {
        let error = now(Chain::native().interpret::<InterpretHealth>(object("Widget"))).unwrap_err();
        let text = error.source().unwrap().to_string();
        assert_eq!(text, "default InterpretHealth interpreter for \"apps/v1, Kind=Widget\" not found");
        let error = now(Chain::default().interpret::<InterpretHealth>(object("Widget"))).unwrap_err();
        assert!(matches!(error, ChainError::RuleMissing { .. }), "{error}");
    }

    #[test]
    fn a_hook_is_enabled_when_any_layer_has_a_rule() {
        let (deployment, widget) = (Gvk::of(&object("Deployment").0), Gvk::of(&object("Widget").0));
        let chain = Chain::native().with(Place::Webhook, Fixed(Ok(Value::Null)));
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
    fn an_answer_is_the_same_by_type_and_by_name() {
        // The one is given its object, the other borrows it.
        let input = Revision { object: object("Deployment").0, replicas: 5 };
        let typed = now(Chain::native().interpret::<ReviseReplica>(input.clone())).unwrap();
        let named = now(Chain::native().answer(Operation::ReviseReplica, &input.into())).unwrap();
        assert_eq!(typed["spec"]["replicas"], 5);
        assert_eq!(named, ReviseReplica::answer(&typed).unwrap());
    }
}
