//! Objects that a reader of the source cannot decode. The API server has them; the cache has their last readable state,
//! or nothing.
//!
//! Such an object comes from a field that changed its type, a CRD without validation, or a newer API server. With
//! a typed list of client-go or kube it fails the list of all objects. Here other objects of the kind are unaffected,
//! and the object gets a `Warning` event, so that its owner learns why the controller ignores it.
//!
//! The controllers need the list for one more reason. An object that is being deleted and cannot be decoded still has a
//! finalizer, which only its controller may remove.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    key::ObjectKey,
    object::{Meta, Stored},
    store::NamespaceScope,
};

/// Maximum number of unreadable objects that a source remembers. Further ones are counted and logged, and get no event.
/// Their finalizers remain, and a controller ring does not move them, until other objects become readable or are
/// deleted, and these arrive again. The source logs once that the maximum was reached.
pub const UNREADABLE_MAX: usize = 1_000;

/// The number of a list, in the order in which lists began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListNumber(u64);

/// The state of an object that cannot be decoded.
pub(crate) struct Unreadable {
    /// Its metadata and JSON. Metadata is always readable, or the object would have no key.
    pub(crate) stored: Arc<Stored>,
    /// The message of the decoder.
    pub(crate) error: String,
}

pub(super) struct Unreadables {
    /// The newest state of each object.
    objects: Mutex<Objects>,
    /// The number of objects, read without the lock for each readable object.
    len: AtomicUsize,
    /// Notifies readers. It carries no value, because they read the whole set.
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct Objects {
    /// By key, with the last list that had begun when the state was reported.
    by_key: BTreeMap<ObjectKey, (Arc<Unreadable>, ListNumber)>,
    last_list: ListNumber,
    /// `true` once an object was not remembered.
    is_overflow_reported: bool,
}

impl Default for Unreadables {
    fn default() -> Self {
        Self { objects: Mutex::default(), len: AtomicUsize::new(0), changes: watch::Sender::new(()) }
    }
}

impl Unreadables {
    /// Remembers the newest unreadable state of an object. At [`UNREADABLE_MAX`] a further object is not remembered.
    ///
    /// Returns `true` for the first object that is not remembered, so that the caller logs it once.
    pub(super) fn add(&self, stored: Stored, error: String) -> bool {
        let mut objects = self.objects.lock();
        let key = stored.key().clone();
        if objects.by_key.len() >= UNREADABLE_MAX && !objects.by_key.contains_key(&key) {
            return !std::mem::replace(&mut objects.is_overflow_reported, true);
        }
        let last_list = objects.last_list;
        objects.by_key.insert(key, (Arc::new(Unreadable { stored: Arc::new(stored), error }), last_list));
        self.len.store(objects.by_key.len(), Ordering::Relaxed);
        self.changes.send_replace(());
        false
    }

    /// Removes an object that is readable again, or deleted.
    pub(super) fn remove(&self, key: &ObjectKey) {
        if self.len() > 0 {
            let mut objects = self.objects.lock();
            objects.by_key.remove(key);
            self.len.store(objects.by_key.len(), Ordering::Relaxed);
        }
    }

    /// Begins a list. Objects that are reported from now on are kept at its end.
    pub(super) fn begin_list(&self) -> ListNumber {
        let mut objects = self.objects.lock();
        objects.last_list.0 += 1;
        objects.last_list
    }

    /// Forgets the objects of a scope that were not reported since this list of it began. Call it only for a complete
    /// list: an object that it does not report is readable again, or deleted.
    pub(super) fn end_list(&self, scope: &NamespaceScope, list: ListNumber) {
        self.retain(|one, reported| !is_in(scope, one) || reported >= list);
    }

    /// Forgets all objects of a scope, which is no longer listed or no longer served.
    pub(super) fn clear(&self, scope: &NamespaceScope) {
        self.retain(|one, _| !is_in(scope, one));
    }

    fn retain(&self, stays: impl Fn(&Unreadable, ListNumber) -> bool) {
        if self.len() > 0 {
            let mut objects = self.objects.lock();
            objects.by_key.retain(|_, (one, reported)| stays(one, *reported));
            self.len.store(objects.by_key.len(), Ordering::Relaxed);
        }
    }

    /// Returns an object's unreadable state. Without any, which is usual, no lock is taken.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Unreadable>> {
        if self.len() == 0 { None } else { self.objects.lock().by_key.get(key).map(|(one, _)| one.clone()) }
    }

    /// Returns `true` if this state of an object is remembered.
    pub(super) fn has(&self, state: &Meta) -> bool {
        let is_state = |known: &Meta| known.uid == state.uid && known.resource_version == state.resource_version;
        self.get(&state.key).is_some_and(|known| is_state(known.stored.meta()))
    }

    pub(super) fn all(&self) -> Vec<Arc<Unreadable>> {
        self.objects.lock().by_key.values().map(|(one, _)| one.clone()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

fn is_in(scope: &NamespaceScope, one: &Unreadable) -> bool {
    scope.is_none() || scope.as_deref() == one.stored.meta().namespace()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::Kind;

    fn pod(namespace: &str, name: &str) -> Stored {
        let json = format!(r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}"}}}}"#);
        Stored::accept(&Kind::of::<Pod>(), &json).unwrap()
    }

    #[test]
    fn unreadable_objects_are_remembered_up_to_the_bound() {
        let all = Unreadables::default();
        for index in 0..UNREADABLE_MAX {
            assert!(!all.add(pod("a", &format!("pod-{index}")), String::new()));
        }
        assert!(all.add(pod("a", "first-beyond"), String::new()));
        assert!(!all.add(pod("a", "second-beyond"), String::new()), "logged once");
        assert_eq!(all.len(), UNREADABLE_MAX);
        assert!(!all.add(pod("a", "pod-0"), "again".into()));
        assert_eq!(all.get(pod("a", "pod-0").key()).unwrap().error, "again");
    }

    #[test]
    fn only_the_present_unreadable_state_is_remembered() {
        let all = Unreadables::default();
        let state = |version: u64| {
            let json = format!(r#"{{"metadata":{{"name":"pod","uid":"1","resourceVersion":"{version}"}}}}"#);
            Stored::accept(&Kind::of::<Pod>(), &json).unwrap()
        };
        all.add(state(7), String::new());
        assert!(all.has(state(7).meta()) && !all.has(state(8).meta()));
        all.add(state(8), String::new());
        assert!(!all.has(state(7).meta()) && all.has(state(8).meta()));
    }

    #[test]
    fn complete_list_forgets_what_it_does_not_report() {
        let (all, a) = (Unreadables::default(), Some("a".into()));
        for (namespace, name) in [("a", "stays"), ("a", "gone"), ("b", "other")] {
            all.add(pod(namespace, name), String::new());
        }
        let cut = all.begin_list();
        let list = all.begin_list();
        all.add(pod("a", "stays"), String::new());
        assert_eq!(all.len(), 3, "until the list is complete");
        all.end_list(&a, list);
        all.end_list(&a, cut);
        let left: Vec<_> = all.all().iter().map(|one| one.stored.key().to_string()).collect();
        assert_eq!(left, ["a/stays", "b/other"]);
    }

    #[test]
    fn scope_that_ends_forgets_its_unreadable_objects() {
        let all = Unreadables::default();
        all.add(pod("a", "pod"), String::new());
        all.add(pod("b", "pod"), String::new());
        all.clear(&Some("a".into()));
        assert!(all.get(pod("a", "pod").key()).is_none() && all.get(pod("b", "pod").key()).is_some());
        all.remove(pod("b", "pod").key());
        assert_eq!(all.len(), 0);
    }
}
