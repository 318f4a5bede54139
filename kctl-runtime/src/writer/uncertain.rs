//! Writes of unknown outcome, by the key whose reconcile sent them.
//!
//! A reconcile that runs on a cache without its own last write would repeat it. So a key with such a write
//! waits until the cache has listed the namespace of the write.
//!
//! client-go's controllers solve the same problem with *expectations* (`pkg/controller/controller_utils.go` in
//! Kubernetes): they count the creates and deletes that the watch has not shown, and stop waiting after five minutes.
//! Here there is nothing to count. The list is of the newest state, so it contains each write that was executed before it.
//!
//! It lacks a write that the API server still processes after the client has given up, for example a create that waits
//! for a slow webhook. If the key then creates the object again, one of the two requests fails with 409 `AlreadyExists`.
//! With `generateName` there may be two objects, and a later reconcile sees both.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use super::{ApiError, Target};
use crate::{key::ObjectKey, source::Source, store::NamespaceScope};

/// Caches and namespaces that have to be listed before a key is reconciled again. Invariant: not empty, and each once.
///
/// A key rarely has more than one, so a linear search is enough.
type ListsNeeded = Vec<(Arc<Source>, NamespaceScope)>;

/// The uncertain writes of one controller. Clones share the state.
#[derive(Clone, Default)]
pub(crate) struct UncertainWrites(Arc<Mutex<HashMap<ObjectKey, ListsNeeded>>>);

/// A write that is under way.
///
/// Dropping it leaves the write marked as uncertain: that covers a lost answer, a cancelled reconcile and
/// a panic alike. [`mark_resolved`](Self::mark_resolved) removes the mark.
pub(super) struct UncertainWrite {
    all: UncertainWrites,
    /// The key that is held back.
    key: ObjectKey,
    /// The cache and namespace of the write. `None` once the outcome is known.
    scope: Option<(Arc<Source>, NamespaceScope)>,
}

impl UncertainWrites {
    /// Marks a write before it is sent.
    ///
    /// The mark is active when the value is dropped, not before. While the write is under way its key is busy, and no
    /// other worker takes it.
    pub(super) fn mark(&self, target: &Target<'_>) -> UncertainWrite {
        let scope = (target.source.clone(), target.namespace.map(Arc::from));
        UncertainWrite { all: self.clone(), key: target.by.clone(), scope: Some(scope) }
    }

    /// Adds marks of a key, each cache and namespace once.
    fn add(&self, key: ObjectKey, scopes: impl IntoIterator<Item = (Arc<Source>, NamespaceScope)>) {
        let mut uncertain = self.0.lock();
        let sources = uncertain.entry(key).or_default();
        for (source, scope) in scopes {
            if !sources.iter().any(|(other, there)| Arc::ptr_eq(other, &source) && *there == scope) {
                sources.push((source, scope));
            }
        }
        debug_assert!(!sources.is_empty(), "a key that waits for nothing has no entry");
    }

    /// Lists each namespace in which this key has an uncertain write.
    ///
    /// A key without uncertain writes, which is nearly every one, costs one map lookup.
    ///
    /// # Errors
    /// The first list that failed. Its mark and the remaining ones are kept, so the next attempt continues there.
    ///
    /// # Cancel safety
    /// Safe: a mark is removed only after its list was applied.
    pub(crate) async fn resolve(&self, key: &ObjectKey) -> Result<(), ApiError> {
        while let Some((source, scope)) = self.take(key) {
            // Puts the mark back if the list fails or this future is dropped.
            let uncertain =
                UncertainWrite { all: self.clone(), key: key.clone(), scope: Some((source.clone(), scope.clone())) };
            // Boxed, because each idle worker would hold the memory of a list that is rarely needed.
            Box::pin(source.refresh(&scope)).await?;
            uncertain.mark_resolved();
        }
        Ok(())
    }

    /// Forgets the writes of keys for which `stays` returns `false`, which this replica no longer reconciles. A replica
    /// that gets such a key back lists its caches first.
    pub(crate) fn retain(&self, stays: impl Fn(&ObjectKey) -> bool) {
        self.0.lock().retain(|key, _scopes| stays(key));
    }

    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Records a write to any namespace, as if its response had been lost.
    #[cfg(test)]
    pub(crate) fn add_lost(&self, key: &ObjectKey, source: &Arc<Source>) {
        self.add(key.clone(), [(source.clone(), None)]);
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        self.0.lock().keys().cloned().collect()
    }

    /// Removes and returns one mark of a key.
    fn take(&self, key: &ObjectKey) -> Option<(Arc<Source>, NamespaceScope)> {
        let mut uncertain = self.0.lock();
        let sources = uncertain.get_mut(key)?;
        let scope = sources.pop();
        debug_assert!(scope.is_some(), "a key that waits for nothing has no entry");
        if sources.is_empty() {
            uncertain.remove(key);
        }
        scope
    }
}

impl UncertainWrite {
    /// Removes the mark: the outcome is known and the cache has it.
    pub(super) fn mark_resolved(mut self) {
        self.scope = None;
    }
}

impl Drop for UncertainWrite {
    fn drop(&mut self) {
        if let Some(scope) = self.scope.take() {
            self.all.add(self.key.clone(), [scope]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use futures::FutureExt;
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;

    use super::*;
    use crate::{object::Kind, source::WatchConfig};

    #[tokio::test]
    async fn cancelled_list_leaves_the_write_uncertain() {
        let silent =
            tower::service_fn(|_request: http::Request<Body>| pending::<Result<http::Response<Body>, Infallible>>());
        let client = kube::Client::new(silent, "default");
        let source = |namespace: &str| {
            let config = WatchConfig::new(Kind::of::<Pod>());
            (Arc::new(Source::new(client.clone(), config, Arc::default())), Some(Arc::from(namespace)))
        };
        let (uncertain_writes, key) = (UncertainWrites::default(), ObjectKey::new(Some("default"), "web"));
        uncertain_writes.add(key.clone(), [source("a"), source("b")]);
        for _ in 0..3 {
            assert!(uncertain_writes.resolve(&key).now_or_never().is_none(), "the list is not answered");
            assert_eq!(uncertain_writes.0.lock()[&key].len(), 2);
        }
    }
}
