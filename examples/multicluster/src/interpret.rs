//! The chain of resource interpreters: customizations and webhooks of the control plane, bundled scripts, and built-in
//! rules.

use futures::{Stream, stream};
use kctl::{
    App,
    karmada::{
        chain::{Chain, ChainError, LayerKind},
        lua::{Limits, Pool},
        operation::Op,
        registry::Registry,
        thirdparty,
    },
    prelude::*,
};

/// Longest wait for the control plane's rules after the start. It is longer than the time after which a missing kind
/// counts as not installed.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// The interpreters. Clones share them and their compiled scripts.
///
/// After the start, [`interpret`](Self::interpret) waits for the control plane's rules, so that no decision is made without them.
///
/// `ResourceInterpreterCustomization`s and `ResourceInterpreterWebhookConfiguration`s on the control plane take
/// precedence over compiled-in rules.
#[derive(Clone)]
pub(crate) struct Rules(Arc<Registry>);

impl Rules {
    /// Creates the chain without the control plane's rules. [`follow`](Self::follow) adds them.
    pub(crate) fn new() -> Self {
        let bundled = thirdparty::bundled_customizations(Pool::new(Limits::default()));
        Self(Arc::new(Registry::new(Chain::native().with(LayerKind::ThirdParty, bundled))))
    }

    /// Makes the app watch the rules of its control plane. The app also prints the CRDs of these rules, because Karmada
    /// is not installed there.
    pub(crate) fn follow(&self, app: App) -> App {
        app.interpreter_chain(&self.0).interpreter_kinds()
    }

    /// Runs an operation. Returns `None` if no layer implements it for the kind.
    ///
    /// # Errors
    /// A script or webhook fails, or the control plane's rules are not read within [`READ_TIMEOUT`].
    pub(crate) async fn interpret<O: Op>(&self, input: O::Input) -> Result<Option<O::Output>, ChainError> {
        // Before the rules are read, a lower layer could answer. After the timeout, the chain's error names the missing
        // rules.
        let _read = tokio::time::timeout(READ_TIMEOUT, self.0.ready()).await;
        self.0.interpret_if_supported::<O>(input).await
    }

    /// Returns a stream with an item for each change of the rules. After a change, all decisions have to be made again.
    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + use<> {
        stream::unfold(self.0.changes(), async |mut changes| changes.changed().await.ok().map(|()| ((), changes)))
    }
}
