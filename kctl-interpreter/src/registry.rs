//! A chain whose layers change while it is used: each operation runs on a snapshot of the layers.
//!
//! `App::interpreter_chain` of the crate `kctl` fills a registry from the customizations and webhook configurations of a control
//! plane. It can also be filled by hand:
//!
//! ```
//! use kctl_interpreter::{chain::{Chain, ChainError, LayerKind}, kind::Gvk, operation::{self, InterpretReplica}, registry::Registry};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let registry = Registry::waiting_for(Chain::native(), [LayerKind::Configurable]);
//! let deployment = || operation::Object(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 2 } }));
//! let early = registry.interpret::<InterpretReplica>(deployment()).await;
//! assert!(matches!(early, Err(ChainError::NotReady { layer_kind: LayerKind::Configurable, .. })));
//!
//! // The customizations were read, and there are none:
//! registry.set(LayerKind::Configurable, None);
//! assert_eq!(registry.interpret::<InterpretReplica>(deployment()).await?.replicas, 2);
//! # Ok::<_, ChainError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use kctl_webhook::blocking::allow_blocking;
use parking_lot::RwLock;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry as Metrics, Unit},
};
use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use crate::{
    chain::{Chain, ChainError, Layer, LayerKind},
    kind::Gvk,
    operation::{Inputs, Op, Operation},
};

/// Seconds that a call takes: from a native one to the longest timeout of a webhook.
const SECONDS: [f64; 12] = [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0, 30.0];

/// The result of an operation whose caller dropped it, for example after a timeout.
const GIVEN_UP: &str = "given-up";

type Labels = [(&'static str, &'static str); 3];
type Durations = Family<[(&'static str, &'static str); 2], Histogram, fn() -> Histogram>;

/// The current layers, with metrics of their calls. See the [module](self) for an example.
pub struct Registry {
    current: RwLock<Current>,
    /// Number of calls that set a layer.
    n_set: watch::Sender<u64>,
    calls: Family<Labels, Counter>,
    durations: Durations,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

struct Current {
    chain: Chain,
    /// Layers whose rules were not read yet. Until then it is unknown which layer has the first rule.
    missing: Vec<LayerKind>,
    /// Kinds of the layers that the program set, as opposed to layers that follow a control plane.
    own: Vec<LayerKind>,
}

/// An operation with the layer that answers it.
struct ChainCall {
    /// The name of the layer, or `none`.
    layer: &'static str,
    operation: Operation,
    may_block: MayBlock,
}

/// Tells if an answer may block its thread for long.
enum MayBlock {
    Yes,
    No,
}

impl ChainCall {
    fn new(chain: &Chain, layer_kind: Option<LayerKind>, operation: Operation, kind: &Gvk) -> Self {
        let may_block = if chain.is_slow(layer_kind, operation, kind) { MayBlock::Yes } else { MayBlock::No };
        Self { layer: layer_kind.map_or("none", LayerKind::name), operation, may_block }
    }
}

impl Registry {
    /// Creates a registry that is ready at once.
    pub fn new(chain: Chain) -> Self {
        Self::waiting_for(chain, [])
    }

    /// Creates a registry that answers after [`Registry::set`] was called for each of these kinds of layers.
    ///
    /// Until then operations fail with [`ChainError::NotReady`]: a later layer could give another answer.
    pub fn waiting_for(chain: Chain, layer_kinds: impl IntoIterator<Item = LayerKind>) -> Self {
        let own = LayerKind::ALL.into_iter().filter(|layer_kind| chain.has_layer(*layer_kind)).collect();
        let current = Current { chain, missing: layer_kinds.into_iter().collect(), own };
        let durations = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let n_set = watch::Sender::new(0);
        Self { current: RwLock::new(current), n_set, calls: Family::default(), durations }
    }

    /// Sets the layer of a kind, or removes it if `layer` is `None`. Running operations keep their snapshot.
    ///
    /// `App::interpreter_chain` of the crate `kctl` sets [`LayerKind::Configurable`] and [`LayerKind::Webhook`] from the control plane. The
    /// app does not start if the program has set one of them.
    pub fn set(&self, layer_kind: LayerKind, layer: Option<Arc<dyn Layer>>) {
        let mut current = self.current.write();
        current.own.retain(|own| *own != layer_kind);
        if layer.is_some() {
            current.own.push(layer_kind);
        }
        drop(current);
        self.set_followed(layer_kind, layer);
    }

    /// Sets a layer that follows a control plane. It does not count as a layer of the program.
    #[doc(hidden)]
    pub fn set_followed(&self, layer_kind: LayerKind, layer: Option<Arc<dyn Layer>>) {
        let mut current = self.current.write();
        current.chain.set(layer_kind, layer);
        current.missing.retain(|missing| *missing != layer_kind);
        drop(current);
        self.n_set.send_modify(|n_set| *n_set += 1);
    }

    /// Returns `true` if the program has set the layer of this kind.
    #[doc(hidden)]
    pub fn has_own_layer(&self, layer_kind: LayerKind) -> bool {
        self.current.read().own.contains(&layer_kind)
    }

    /// Returns a channel that changes after each [`Registry::set`], for callers that cache answers.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.n_set.subscribe()
    }

    /// Waits until the registry is ready.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time; it holds no state.
    pub async fn ready(&self) {
        // Subscribed before the first check: a layer that is set between the check and the wait ends the wait.
        let mut changes = self.changes();
        while !self.is_ready() {
            // The sender is a field of `self`, so it outlives this wait.
            let _changed = changes.changed().await;
        }
    }

    /// Makes the registry wait until [`Registry::set`] is called for each of these kinds of layers again. They replace the
    /// kinds that it waited for.
    pub fn wait_for(&self, layer_kinds: impl IntoIterator<Item = LayerKind>) {
        self.current.write().missing = layer_kinds.into_iter().collect();
    }

    /// Returns a snapshot of the layers.
    ///
    /// # Errors
    /// [`ChainError::NotReady`] until the registry is ready.
    pub fn chain(&self) -> Result<Chain, ChainError> {
        let current = self.current.read();
        match current.missing.first() {
            Some(layer_kind) => Err(ChainError::NotReady { layer_kind: *layer_kind }),
            None => Ok(current.chain.clone()),
        }
    }

    /// Returns `true` if operations are answered.
    pub fn is_ready(&self) -> bool {
        self.current.read().missing.is_empty()
    }

    /// Returns `true` if any layer has a rule for an operation on a kind; `false` until the registry is ready.
    pub fn hook_enabled(&self, operation: Operation, kind: &Gvk) -> bool {
        self.chain().is_ok_and(|chain| chain.hook_enabled(operation, kind))
    }

    /// Runs an operation on a snapshot of the layers, and counts its result and duration.
    ///
    /// # Errors
    /// The errors of [`Chain::interpret`], and [`ChainError::NotReady`] until the registry is ready.
    ///
    /// # Panics
    /// If a slow script answers in a `LocalSet` on a multi-thread runtime (see [`allow_blocking`]).
    ///
    /// # Cancel safety
    /// A dropped operation counts as `given-up`.
    pub async fn interpret<O: Op>(&self, input: O::Input) -> Result<O::Output, ChainError> {
        let chain = self.counted_chain(O::OPERATION)?;
        let inputs: Inputs = input.into();
        let kind = inputs.kind();
        let layer_kind = chain.layer_kind(O::OPERATION, &kind);
        let call = ChainCall::new(&chain, layer_kind, O::OPERATION, &kind);
        self.measure(call, chain.interpret_inputs::<O>(kind, inputs)).await
    }

    /// Runs an operation if a layer has a rule for it, and returns `None` otherwise. Both use the same snapshot.
    ///
    /// # Errors
    /// As [`Registry::interpret`].
    pub async fn interpret_if_supported<O: Op>(&self, input: O::Input) -> Result<Option<O::Output>, ChainError> {
        let chain = self.counted_chain(O::OPERATION)?;
        let inputs: Inputs = input.into();
        let kind = inputs.kind();
        let layer_kind @ Some(_) = chain.layer_kind(O::OPERATION, &kind) else { return Ok(None) };
        let call = ChainCall::new(&chain, layer_kind, O::OPERATION, &kind);
        self.measure(call, chain.interpret_inputs::<O>(kind, inputs)).await.map(Some)
    }

    /// Runs an operation that is known only at run time.
    ///
    /// # Errors
    /// As [`Registry::interpret`].
    pub async fn interpret_dynamic(&self, operation: Operation, inputs: &Inputs) -> Result<Value, ChainError> {
        let chain = self.counted_chain(operation)?;
        let kind = inputs.kind();
        let layer_kind = chain.layer_kind(operation, &kind);
        let call = ChainCall::new(&chain, layer_kind, operation, &kind);
        self.measure(call, chain.interpret_dynamic(operation, inputs)).await
    }

    /// Returns the current layers. Before they are ready, the call counts as an error of the
    /// missing layer.
    fn counted_chain(&self, operation: Operation) -> Result<Chain, ChainError> {
        self.chain().inspect_err(|error| {
            let layer = if let ChainError::NotReady { layer_kind } = error { layer_kind.name() } else { "none" };
            self.count(layer, operation.name(), "error");
        })
    }

    fn count(&self, layer: &'static str, operation: &'static str, result: &'static str) {
        self.calls.get_or_create(&[("layer", layer), ("operation", operation), ("result", result)]).inc();
    }

    async fn measure<T>(
        &self,
        ChainCall { layer, operation, may_block }: ChainCall,
        answer: impl Future<Output = Result<T, ChainError>>,
    ) -> Result<T, ChainError> {
        let mut measurement =
            Measurement { registry: self, layer, operation: operation.name(), start: Instant::now(), result: GIVEN_UP };
        let answer = match may_block {
            MayBlock::Yes => allow_blocking(answer).await,
            MayBlock::No => answer.await,
        };
        measurement.result = if answer.is_ok() { "success" } else { "error" };
        answer
    }

    /// Adds its metrics: `kctl_interpreter_calls_total` and `kctl_interpreter_call_seconds`, by layer and operation.
    pub fn register(&self, metrics: &mut Metrics) {
        let calls = "Calls of resource interpreters, by layer, operation and result";
        metrics.register("kctl_interpreter_calls", calls, self.calls.clone());
        let durations = "Time that calls of resource interpreters took, by layer and operation";
        metrics.register_with_unit("kctl_interpreter_call", durations, Unit::Seconds, self.durations.clone());
    }
}

/// The measurement of one running operation. It is counted when this is dropped, also if the caller gave up.
struct Measurement<'a> {
    registry: &'a Registry,
    layer: &'static str,
    operation: &'static str,
    start: Instant,
    result: &'static str,
}

impl Drop for Measurement<'_> {
    fn drop(&mut self) {
        let Self { registry, layer, operation, start, result } = *self;
        let labels = [("layer", layer), ("operation", operation)];
        registry.durations.get_or_create(&labels).observe(start.elapsed().as_secs_f64());
        registry.count(layer, operation, result);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;
    use serde_json::json;

    use super::*;
    use crate::{
        chain::{LayerError, LayerFuture},
        operation::{InterpretHealth, InterpretReplica, Object},
    };

    /// Answers with a number of replicas after a while.
    struct Slow(Result<i32, &'static str>);

    impl Layer for Slow {
        fn handles(&self, operation: Operation, _kind: &Gvk) -> bool {
            operation == Operation::InterpretReplica
        }

        fn interpret<'a>(&'a self, _operation: Operation, _inputs: &'a Inputs) -> LayerFuture<'a> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let replicas = self.0.map_err(LayerError::from)?;
                Ok(json!({ "replica": replicas, "requires": null }))
            })
        }
    }

    fn object() -> Object {
        Object(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": 1 } }))
    }

    #[tokio::test(start_paused = true)]
    async fn operation_keeps_the_layers_with_which_it_began() {
        let registry = Registry::new(Chain::native());
        registry.set(LayerKind::Webhook, Some(Arc::new(Slow(Ok(7)))));
        let switched = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            registry.set(LayerKind::Webhook, Some(Arc::new(Slow(Ok(8)))));
            registry.interpret::<InterpretReplica>(object()).await
        };
        let (before, after) = tokio::join!(registry.interpret::<InterpretReplica>(object()), switched);
        assert_eq!((before.unwrap().replicas, after.unwrap().replicas), (7, 8));
        registry.set(LayerKind::Webhook, None);
        assert_eq!(registry.interpret::<InterpretReplica>(object()).await.unwrap().replicas, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_answered_before_all_rules_were_read() {
        let registry = Registry::waiting_for(Chain::native(), [LayerKind::Configurable, LayerKind::Webhook]);
        let kind = Gvk::from_object(&object().0);
        for layer_kind in [LayerKind::Webhook, LayerKind::Configurable] {
            assert!(!registry.is_ready() && !registry.hook_enabled(Operation::InterpretHealth, &kind));
            let error = registry.interpret::<InterpretHealth>(object()).await.unwrap_err();
            assert!(error.to_string().starts_with("not yet ready to handle request: the "), "{error}");
            registry.set(layer_kind, None);
        }
        assert!(registry.is_ready() && registry.hook_enabled(Operation::InterpretHealth, &kind));
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_woken_by_rules_and_each_change() {
        let registry = Registry::waiting_for(Chain::native(), [LayerKind::Configurable, LayerKind::Webhook]);
        let mut changes = registry.changes();
        let set_later = async {
            for layer_kind in [LayerKind::Webhook, LayerKind::Configurable] {
                tokio::time::sleep(Duration::from_secs(1)).await;
                registry.set(layer_kind, None);
            }
        };
        let start = Instant::now();
        let waited = async {
            registry.ready().await;
            start.elapsed()
        };
        assert_eq!(tokio::join!(set_later, waited).1, Duration::from_secs(2));
        assert_eq!(*changes.borrow_and_update(), 2);
        registry.set(LayerKind::Webhook, None);
        assert!(changes.has_changed().unwrap(), "the registry is there");
    }

    #[tokio::test(start_paused = true)]
    async fn kind_unknown_to_all_layers_has_no_answer() {
        let registry = Registry::new(Chain::native());
        let object = Object(json!({ "apiVersion": "example.com/v1", "kind": "Unknown" }));
        assert_eq!(registry.interpret_if_supported::<InterpretHealth>(object.clone()).await.unwrap(), None);
        registry.wait_for([LayerKind::Webhook]);
        let early = registry.interpret_if_supported::<InterpretHealth>(object).await;
        assert!(matches!(early, Err(ChainError::NotReady { layer_kind: LayerKind::Webhook })), "{early:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_answer_is_counted_for_its_layer() {
        let registry = Registry::new(Chain::native());
        registry.set(LayerKind::ThirdParty, Some(Arc::new(Slow(Err("broken")))));
        let _error = registry.interpret::<InterpretReplica>(object()).await.unwrap_err();
        let _answer = registry.interpret::<InterpretHealth>(object()).await;
        let _missing = registry.interpret_dynamic(Operation::InterpretComponent, &object().into()).await.unwrap_err();
        let hasty = tokio::time::timeout(Duration::from_millis(500), registry.interpret::<InterpretReplica>(object()));
        assert!(hasty.await.is_err(), "its answer takes a second");
        registry.wait_for([LayerKind::Webhook]);
        let _early = registry.interpret::<InterpretHealth>(object()).await.unwrap_err();
        let mut metrics = Metrics::default();
        registry.register(&mut metrics);
        let mut text = String::new();
        encode(&mut text, &metrics).unwrap();
        for line in [
            "kctl_interpreter_calls_total{layer=\"third-party\",operation=\"InterpretReplica\",result=\"error\"} 1",
            "kctl_interpreter_calls_total{layer=\"third-party\",operation=\"InterpretReplica\",result=\"given-up\"} 1",
            "kctl_interpreter_call_seconds_sum{layer=\"third-party\",operation=\"InterpretReplica\"} 1.5",
            "kctl_interpreter_calls_total{layer=\"none\",operation=\"InterpretComponent\",result=\"error\"} 1",
            "kctl_interpreter_call_seconds_count{layer=\"native\",operation=\"InterpretHealth\"} 1",
            "kctl_interpreter_calls_total{layer=\"webhook\",operation=\"InterpretHealth\",result=\"error\"} 1",
        ] {
            assert!(text.lines().any(|found| found.starts_with(line)), "{line}\n{text}");
        }
    }
}
