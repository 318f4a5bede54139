//! How kinds are understood: the rules of the control plane, those that come with kctl, and the built-in ones.

use futures::{Stream, stream};
use kctl::{
    App,
    karmada::{
        chain::{Chain, ChainError, Place},
        lua::{Limits, Pool},
        operation::Op,
        registry::Registry,
        thirdparty,
    },
    prelude::*,
};

/// Longest wait for the rules of the control plane after the start: longer than it takes to see that it has no kinds for them.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// The rules. Clones are the same.
///
/// `ResourceInterpreterCustomization`s and `ResourceInterpreterWebhookConfiguration`s that are applied to the control plane go
/// before all that is compiled in.
#[derive(Clone)]
pub(crate) struct Rules(Arc<Registry>);

impl Rules {
    pub(crate) fn new() -> Self {
        let bundled = thirdparty::bundled(Pool::new(Limits::default()));
        Self(Arc::new(Registry::new(Chain::native().with(Place::ThirdParty, bundled))))
    }

    /// Has the app read the rules of its control plane, which is none of Karmada's: it has no definitions for them.
    pub(crate) fn follow(&self, app: App) -> App {
        app.interpreter_chain(&self.0).interpreter_kinds()
    }

    /// The answer to an operation; nothing where no rule is about the kind.
    pub(crate) async fn ask<O: Op>(&self, input: O::Input) -> Result<Option<O::Output>, ChainError> {
        // Too early an answer would be one by other rules. Where the time is over, the error says what is waited for.
        let _read = tokio::time::timeout(READ_WITHIN, self.0.ready()).await;
        self.0.interpret_where_known::<O>(input).await
    }

    /// Says that rules have changed: whatever was decided by them is to be decided again.
    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + use<> {
        stream::unfold(self.0.changes(), async |mut changes| changes.changed().await.ok().map(|()| ((), changes)))
    }
}
