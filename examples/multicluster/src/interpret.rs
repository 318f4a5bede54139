//! The chain of resource interpreters: customizations and webhooks of the control plane, bundled scripts, and built-in kinds.

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

/// Longest wait for the rules of the control plane after the start. It is longer than the time after which a missing kind counts as
/// not installed.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// The interpreters. Clones share them, with their compiled scripts.
///
/// `ask` waits for the rules of the control plane at the start, so that no decision is made without them.
///
/// `ResourceInterpreterCustomization`s and `ResourceInterpreterWebhookConfiguration`s that are applied to the control plane go
/// before all that is compiled in.
#[derive(Clone)]
pub(crate) struct Rules(Arc<Registry>);

impl Rules {
    /// Creates the chain without rules of the control plane; [`follow`](Self::follow) adds them.
    pub(crate) fn new() -> Self {
        let bundled = thirdparty::bundled(Pool::new(Limits::default()));
        Self(Arc::new(Registry::new(Chain::native().with(LayerKind::ThirdParty, bundled))))
    }

    /// Makes the app follow the rules of its control plane, and print the CRDs for them: Karmada does not run there.
    pub(crate) fn follow(&self, app: App) -> App {
        app.interpreter_chain(&self.0).interpreter_kinds()
    }

    /// Runs an operation; returns `None` if no layer implements it for the kind.
    ///
    /// # Errors
    /// A script or webhook fails, or the rules of the control plane are not read within [`READ_WITHIN`].
    pub(crate) async fn ask<O: Op>(&self, input: O::Input) -> Result<Option<O::Output>, ChainError> {
        // An earlier answer could come from a lower layer. After the timeout, the chain's error says which rules are missing.
        let _read = tokio::time::timeout(READ_WITHIN, self.0.ready()).await;
        self.0.interpret_where_known::<O>(input).await
    }

    /// Returns a stream with an item for each change of the rules, after which all decisions have to be made again.
    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + use<> {
        stream::unfold(self.0.changes(), async |mut changes| changes.changed().await.ok().map(|()| ((), changes)))
    }
}
