//! What an informer lists and watches: the namespaces that it began with, until somebody changes them.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::store::Scope;

pub(crate) struct Scopes {
    /// Sorted.
    all: Mutex<Vec<Scope>>,
    changes: Notify,
}

impl Scopes {
    /// None is all.
    pub(super) fn of_namespaces(namespaces: &[String]) -> Self {
        let mut all: Vec<Scope> = namespaces.iter().map(|namespace| Some(namespace.as_str().into())).collect();
        all.sort();
        all.dedup();
        if all.is_empty() {
            all.push(None);
        }
        Self { all: Mutex::new(all), changes: Notify::new() }
    }

    /// What is listed and watched now.
    pub(crate) fn all(&self) -> Vec<Scope> {
        self.all.lock().clone()
    }

    /// Whether a scope is among them now.
    pub(crate) fn has(&self, scope: &Scope) -> bool {
        self.all.lock().binary_search(scope).is_ok()
    }

    /// Lists and watches a scope from now on.
    pub(crate) fn add(&self, scope: Scope) {
        let mut all = self.all.lock();
        if let Err(place) = all.binary_search(&scope) {
            all.insert(place, scope);
            self.changes.notify_one();
        }
    }

    /// Lists and watches a scope no longer; its objects leave the store.
    pub(crate) fn remove(&self, scope: &Scope) {
        let mut all = self.all.lock();
        if let Ok(place) = all.binary_search(scope) {
            all.remove(place);
            self.changes.notify_one();
        }
    }

    /// Returns when they have changed since the last time that it did, perhaps to what they were. For one caller.
    pub(super) async fn change(&self) {
        self.changes.notified().await;
    }
}
