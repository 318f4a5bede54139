//! The scopes that an informer lists and watches: the namespaces of its identity, until they are changed at run time.
//!
//! A [`Scope`] is one list and one watch: a namespace, or `None` for all. controller-runtime fixes the set when the
//! cache is built; here [`watches`](crate::watches) may add and remove namespaces while the program runs.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::Scope;

/// A set of scopes that notifies the source of changes.
pub(crate) struct Scopes {
    /// Sorted and without duplicates. `None` is the only element if all namespaces are followed.
    all: Mutex<Vec<Scope>>,
    /// One permit for the one source that waits in [`change`](Self::change).
    changes: Notify,
}

impl Scopes {
    /// Creates the scopes of these namespaces; an empty slice means all.
    pub(super) fn of_namespaces(namespaces: &[String]) -> Self {
        let mut all: Vec<Scope> = namespaces.iter().map(|namespace| Some(namespace.as_str().into())).collect();
        all.sort();
        all.dedup();
        if all.is_empty() {
            all.push(None);
        }
        Self { all: Mutex::new(all), changes: Notify::new() }
    }

    /// Returns the present scopes, sorted.
    pub(crate) fn all(&self) -> Vec<Scope> {
        self.all.lock().clone()
    }

    /// Returns `true` if the scope is followed now.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.all.lock().binary_search(scope).is_ok()
    }

    /// Lists and watches a scope from now on.
    pub(crate) fn add(&self, scope: Scope) {
        let mut all = self.all.lock();
        if let Err(idx) = all.binary_search(&scope) {
            all.insert(idx, scope);
            self.changes.notify_one();
        }
    }

    /// Ends list and watch of a scope; its objects leave the store.
    pub(crate) fn remove(&self, scope: &Scope) {
        let mut all = self.all.lock();
        if let Ok(idx) = all.binary_search(scope) {
            all.remove(idx);
            self.changes.notify_one();
        }
    }

    /// Returns once the scopes have changed since its last return, possibly back to the same ones. For one caller.
    pub(super) async fn change(&self) {
        self.changes.notified().await;
    }
}
