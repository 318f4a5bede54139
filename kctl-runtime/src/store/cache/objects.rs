//! The objects of a cache with the indexes over them.

use std::sync::Arc;

use super::{
    Cache,
    delta::NamespaceScope,
    index::{ByKey, UserIndex, take},
};
use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
    store::IndexFn,
};

impl Cache {
    /// Returns the present state of an object.
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.objects.get(key).map(|ByKey(object)| object)
    }

    /// Iterates over all objects, sorted by key.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.sorted.iter().map(|ByKey(object)| object)
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the size of the JSON of all objects in bytes, after compression.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns the objects of one namespace, sorted by name. `None` selects cluster-scoped objects.
    pub(crate) fn in_namespace(&self, namespace: Option<&str>) -> Vec<Arc<Stored>> {
        self.iter_namespace(namespace).cloned().collect()
    }

    /// Iterates over one namespace, at a cost of its objects and not of all.
    fn iter_namespace(&self, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Stored>> {
        // The empty name sorts before all names of the namespace.
        let first = ObjectKey::new(namespace, "");
        let is_in_namespace = move |object: &&Arc<Stored>| object.meta().namespace() == namespace;
        self.sorted.range(first..).map(|ByKey(object)| object).take_while(is_in_namespace)
    }

    /// Iterates over the objects that a list of this scope may have, sorted by key. A cache of many namespaces is not
    /// searched as a whole for one of them.
    pub(super) fn iter_listable(&self, scope: &NamespaceScope) -> impl Iterator<Item = &Arc<Stored>> {
        let namespace = scope.as_deref();
        let whole = namespace.is_none().then(|| self.all()).into_iter().flatten();
        whole.chain(namespace.is_some().then(|| self.iter_namespace(namespace)).into_iter().flatten())
    }

    /// Returns the objects whose controller has this uid.
    pub(crate) fn owned_by(&self, uid: &Uid) -> Vec<Arc<Stored>> {
        self.owners.get(uid).into_iter().flatten().map(|ByKey(object)| object.clone()).collect()
    }

    /// Returns the objects with this value in an index, or `None` if there is no such index.
    pub(crate) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<Stored>>> {
        let index = self.user.iter().find(|index| index.name == name)?;
        Some(index.get(value).into_iter().flatten().filter_map(|key| self.get(key).cloned()).collect())
    }

    /// Adds an index and fills it with the present objects. An existing index of this name is kept.
    pub(crate) fn add_index(&mut self, name: &'static str, values_of: IndexFn) {
        if self.user.iter().any(|index| index.name == name) {
            return;
        }
        self.user.push(UserIndex::build(name, values_of, self.all()));
    }

    /// Adds an object to the cache and all indexes. Its name is free.
    pub(super) fn insert(&mut self, object: Arc<Stored>) {
        debug_assert!(!self.objects.contains(object.key()), "an object of this name leaves all indexes first");
        debug_assert!(!self.tombstones.has(&object.meta().uid), "an object that this process deleted does not return");
        for index in &mut self.user {
            index.put(&object);
        }
        self.n_bytes += object.n_bytes();
        let entry = ByKey(object);
        if let Some(owner) = entry.0.meta().controller() {
            self.owners.entry(owner.uid.clone()).or_default().insert(entry.clone());
        }
        self.sorted.insert(entry.clone());
        self.objects.insert(entry);
        debug_assert_eq!(self.objects.len(), self.sorted.len(), "both hold the same objects");
    }

    /// Replaces the state of an object by a newer one of the same object.
    pub(super) fn change(&mut self, old: &Stored, new: Arc<Stored>) {
        for index in &mut self.user {
            index.put(&new);
        }
        debug_assert_eq!(old.meta().uid, new.meta().uid, "a successor is a deletion and an addition for handlers");
        self.n_bytes = self.n_bytes + new.n_bytes() - old.n_bytes();
        let entry = ByKey(new);
        let (before, after) = (old.meta().controller(), entry.0.meta().controller());
        let is_moved = before.map(|owner| &owner.uid) != after.map(|owner| &owner.uid);
        if let Some(before) = before.filter(|_| is_moved) {
            take(&mut self.owners, &before.uid, old.key());
        }
        if let Some(after) = after {
            self.owners.entry(after.uid.clone()).or_default().replace(entry.clone());
        }
        self.sorted.replace(entry.clone());
        self.objects.replace(entry);
        self.forget_write(old);
    }

    /// Forgets that a version has to be reported, because it is no longer the present one.
    fn forget_write(&mut self, old: &Stored) {
        if let Some(revision) = old.meta().revision() {
            self.unreported.remove(&revision);
        }
    }

    /// Removes an object from the cache and all indexes.
    pub(super) fn remove(&mut self, object: &Arc<Stored>) {
        let key = object.key();
        if let Some(ByKey(removed)) = self.objects.take(key) {
            self.n_bytes -= removed.n_bytes();
        }
        self.forget_write(object);
        self.sorted.remove(key);
        if let Some(owner) = object.meta().controller() {
            take(&mut self.owners, &owner.uid, key);
        }
        for index in &mut self.user {
            index.take(key);
        }
        debug_assert_eq!(self.objects.len(), self.sorted.len(), "both hold the same objects");
        debug_assert!(!self.objects.is_empty() || self.n_bytes == 0, "the sizes of all objects were subtracted again");
        debug_assert!(!self.objects.is_empty() || self.owners.is_empty(), "no removed object keeps its controller");
    }
}
