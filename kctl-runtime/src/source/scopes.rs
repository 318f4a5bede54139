//! The scopes that an informer lists and watches: the namespaces of its watch config, until they are changed at run time.
//!
//! A [`NamespaceScope`] is one list and one watch: a namespace, or `None` for all. controller-runtime fixes the set when the
//! cache is built. Here [`watches`](crate::watches) may add and remove namespaces while the program runs.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::NamespaceScope;

/// A set of scopes that notifies the source of changes.
pub(crate) struct Scopes {
    state: Mutex<ScopeSet>,
    /// One permit for the one source that waits in [`change`](Self::change).
    changes: Notify,
}

/// The scopes, and the removals that the source has not performed yet.
struct ScopeSet {
    /// Sorted and without duplicates. `None` is the only element if all namespaces are followed.
    all: Vec<NamespaceScope>,
    /// The scopes that were removed since the last [`Scopes::take_removed`]. One of them may have been added again: its
    /// list and watch still have to restart.
    removed: BTreeSet<NamespaceScope>,
}

impl ScopeSet {
    /// Checks the invariant of `all` after a change.
    fn check(&self) {
        debug_assert!(self.all.is_sorted_by(|one, next| one < next), "scopes are found by binary search");
        debug_assert!(
            self.all.len() < 2 || self.all.first().is_some_and(Option::is_some),
            "objects of a namespace would be listed twice"
        );
    }
}

impl Scopes {
    /// Creates the scopes of these namespaces; an empty slice means all.
    pub(super) fn new(namespaces: &[String]) -> Self {
        let mut all: Vec<NamespaceScope> = namespaces.iter().map(|namespace| Some(namespace.as_str().into())).collect();
        all.sort();
        all.dedup();
        if all.is_empty() {
            all.push(None);
        }
        let set = ScopeSet { all, removed: BTreeSet::new() };
        set.check();
        Self { state: Mutex::new(set), changes: Notify::new() }
    }

    /// Returns the present scopes, sorted.
    pub(crate) fn all(&self) -> Vec<NamespaceScope> {
        self.state.lock().all.clone()
    }

    /// Returns the scopes that were removed since the last call, and the present ones.
    pub(super) fn take_removed(&self) -> (BTreeSet<NamespaceScope>, Vec<NamespaceScope>) {
        let mut state = self.state.lock();
        (std::mem::take(&mut state.removed), state.all.clone())
    }

    /// Returns `true` if the scope is followed now.
    pub(crate) fn has(&self, scope: &NamespaceScope) -> bool {
        self.state.lock().all.binary_search(scope).is_ok()
    }

    /// Lists and watches a scope from now on.
    pub(crate) fn add(&self, scope: NamespaceScope) {
        let mut state = self.state.lock();
        if let Err(idx) = state.all.binary_search(&scope) {
            state.all.insert(idx, scope);
            state.check();
            self.changes.notify_one();
        }
    }

    /// Ends list and watch of a scope; its objects leave the store.
    pub(crate) fn remove(&self, scope: &NamespaceScope) {
        let mut state = self.state.lock();
        if let Ok(idx) = state.all.binary_search(scope) {
            let removed = state.all.remove(idx);
            state.removed.insert(removed);
            self.changes.notify_one();
        }
    }

    /// Returns once the scopes have changed since its last return, possibly back to the same ones. For one caller.
    pub(super) async fn change(&self) {
        self.changes.notified().await;
    }
}
