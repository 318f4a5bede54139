//! Objects that a reader of the source cannot decode. The API server has them; the cache has their last readable state,
//! or nothing.
//!
//! Such an object comes from a field that changed its type, a CRD without validation, or a newer API server. With
//! a typed list of client-go or kube it fails the list of all objects. Here the rest of the kind works on, and the
//! object gets a `Warning` event, so that its owner learns why the controller ignores it.
//!
//! The controllers need the list for one more reason: an object that is being deleted and cannot be decoded still has a
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

use crate::{key::ObjectKey, object::Stored, store::Scope};

/// Maximum number of unreadable objects that a source remembers. Further ones are counted and logged, and get no event;
/// their finalizers stay until other objects become readable or are deleted.
pub const UNREADABLE_MAX: usize = 1_000;

/// The state of an object that cannot be decoded.
pub(crate) struct Unreadable {
    /// Its metadata and JSON. Metadata is always readable, or the object would have no key.
    pub(crate) stored: Arc<Stored>,
    /// The message of the decoder.
    pub(crate) error: String,
}

/// The unreadable objects of one source.
pub(super) struct Unreadables {
    /// By key; the newest state of each.
    objects: Mutex<BTreeMap<ObjectKey, Arc<Unreadable>>>,
    /// The number of objects, read without the lock for each readable object.
    len: AtomicUsize,
    /// Notifies readers. It carries no value, because they read the whole set.
    changes: watch::Sender<()>,
}

impl Default for Unreadables {
    fn default() -> Self {
        Self { objects: Mutex::default(), len: AtomicUsize::new(0), changes: watch::Sender::new(()) }
    }
}

impl Unreadables {
    /// Remembers the newest unreadable state of an object. At [`UNREADABLE_MAX`] a further object is not remembered.
    pub(super) fn add(&self, stored: Stored, error: String) {
        let mut objects = self.objects.lock();
        let key = stored.key().clone();
        if objects.len() >= UNREADABLE_MAX && !objects.contains_key(&key) {
            return;
        }
        objects.insert(key, Arc::new(Unreadable { stored: Arc::new(stored), error }));
        self.len.store(objects.len(), Ordering::Relaxed);
        self.changes.send_replace(());
    }

    /// Removes an object that is readable again, or deleted.
    pub(super) fn remove(&self, key: &ObjectKey) {
        if self.len() > 0 {
            let mut objects = self.objects.lock();
            objects.remove(key);
            self.len.store(objects.len(), Ordering::Relaxed);
        }
    }

    /// Forgets the objects of a scope that is about to be listed.
    ///
    /// The list adds those that are still unreadable, so objects that were deleted meanwhile do not stay for ever.
    pub(super) fn clear(&self, scope: &Scope) {
        if self.len() > 0 {
            let mut objects = self.objects.lock();
            let is_in = |one: &Unreadable| scope.is_none() || scope.as_deref() == one.stored.meta().namespace();
            objects.retain(|_, one| !is_in(one));
            self.len.store(objects.len(), Ordering::Relaxed);
        }
    }

    /// Returns an object's unreadable state. Without any, which is usual, no lock is taken.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Arc<Unreadable>> {
        if self.len() == 0 { None } else { self.objects.lock().get(key).cloned() }
    }

    pub(super) fn all(&self) -> Vec<Arc<Unreadable>> {
        self.objects.lock().values().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
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
        for index in 0..=UNREADABLE_MAX {
            all.add(pod("a", &format!("pod-{index}")), String::new());
        }
        assert_eq!(all.len(), UNREADABLE_MAX);
        all.add(pod("a", "pod-0"), "again".into());
        assert_eq!(all.get(pod("a", "pod-0").key()).unwrap().error, "again");
    }

    #[test]
    fn list_forgets_unreadable_objects_of_its_namespace() {
        let all = Unreadables::default();
        all.add(pod("a", "pod"), String::new());
        all.add(pod("b", "pod"), String::new());
        all.clear(&Some("a".into()));
        assert!(all.get(pod("a", "pod").key()).is_none() && all.get(pod("b", "pod").key()).is_some());
        all.remove(pod("b", "pod").key());
        assert_eq!(all.len(), 0);
    }
}
