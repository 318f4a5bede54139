//! The typed view of a store, which user code reads.

use std::{
    any::type_name_of_val,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{IndexFn, Part, Primaries, writer::SharedStore};
use crate::{
    key::{Key, ObjectKey},
    object::{Meta, Readable, Stored},
    panic::NotListedYet,
};

/// The cached objects of the kind `K`. It is cheap to clone; reads are local, never wait and send no request.
///
/// A reconcile function gets it from `cx.store::<K>()`; mappers get the store of the primary. Objects are shared as
/// [`Arc`]s and decoded on access. Each read sees the newest state at that moment, so two reads can differ.
///
/// The cache may be behind the API server by the delay of its watch. It contains this process's own writes, apart from
/// the [exceptions](crate::writer#outcomes-of-a-write). Use [`cx.live()`](crate::reconcile::Context::live) where an
/// outdated answer would be wrong.
///
/// In a sharded program the store of `cx.store` may have only this replica's share of the kind. A read that is not
/// limited to the share panics, rather than show the objects of other replicas as absent. `App::cache_whole` caches all
/// of them.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kctl_runtime::{key::Key, reconcile::{Context, Reads}, store::Store};
///
/// /// Returns the number of ConfigMaps beside `settings`.
/// fn others<C: Reads<ConfigMap>>(cx: &Context<C>) -> usize {
///     let configs: Store<ConfigMap> = cx.store();
///     let settings = configs.get(&Key::namespaced("default", "settings"));
///     configs.in_namespace("default").count() - usize::from(settings.is_some())
/// }
/// ```
pub struct Store<K> {
    shared: Arc<SharedStore>,
    /// The part of the kind that is cached, for the check of each read. `None` if all objects are cached, and for
    /// mappers, which need only the primaries of this replica.
    part: Option<Part>,
    kind: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), part: self.part.clone(), kind: PhantomData }
    }
}

impl<K: Readable> IntoIterator for &Store<K> {
    type Item = Arc<K>;
    type IntoIter = std::vec::IntoIter<Arc<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().collect::<Vec<_>>().into_iter()
    }
}

/// A key of an object of kind `K`: the argument of [`Store::get`].
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a store of `{K}` is read by key, not by `{Self}`",
    label = "not a `Key`",
    note = "help: write `&Key::namespaced(namespace, name)`, or `&Key::cluster_scoped(name)` for a kind without namespaces",
    note = "code: K0120"
)]
pub trait KeyOf<K> {
    /// Returns the key itself.
    fn key(&self) -> &Key<K>;
}

impl<K> KeyOf<K> for Key<K> {
    fn key(&self) -> &Self {
        self
    }
}

/// An index function: any function from an object to its values. Its path names the index, so use a named function and
/// no closure.
pub trait IndexFnPath<K>: Fn(&K) -> Vec<String> {}
impl<K, F: Fn(&K) -> Vec<String>> IndexFnPath<K> for F {}

impl<K: Readable> Store<K> {
    /// Returns a typed view of a shared store, whose objects must have been accepted as `K`.
    /// [`Source::view`](crate::source::Source::view) also makes sure of that.
    pub fn new(shared: Arc<SharedStore>) -> Self {
        Self { shared, part: None, kind: PhantomData }
    }

    /// Returns a view that panics at a read beyond this part, rather than show objects of other replicas as absent.
    pub(crate) fn of_part(self, part: Option<Part>) -> Self {
        Self { part, ..self }
    }

    /// Panics unless the cache has all objects of the kind.
    fn check_whole(&self, what: impl fmt::Display) {
        if !self.covers(|_| false) {
            Self::panic_beyond(what, "");
        }
    }

    /// Does the same for a read of one object.
    fn check_key(&self, key: &ObjectKey) {
        if !self.covers(|primaries| primaries.has(key)) {
            self.check_just_gained(|primaries| primaries.owns(key), key);
            Self::panic_beyond(key, "");
        }
    }

    /// Returns `true` if the cache has every object that a read may return.
    fn covers(&self, is_cached: impl FnOnce(&Primaries) -> bool) -> bool {
        match &self.part {
            None => true,
            Some(Part::Primaries(primaries)) => is_cached(primaries),
            Some(Part::Children) => false,
        }
    }

    /// Unwinds if this replica owns what is read, but has gained it so recently that it is not in the cache yet. The
    /// worker reconciles the key again, without counting a failure.
    fn check_just_gained(&self, is_owned: impl FnOnce(&Primaries) -> bool, what: impl fmt::Display) {
        if self.covers(is_owned) {
            NotListedYet::unwind(format!(
                "this replica has just gained the slot of {what}, and its cache is not complete yet"
            ));
        }
    }

    /// Panics because of a read beyond the share. `remedy` is a further hint for this read.
    fn panic_beyond(what: impl fmt::Display, remedy: &str) -> ! {
        let kind = K::kind(&());
        panic!(
            "this replica caches only its share of {kind}, which {what} is not limited to: {remedy}call \
             `App::cache_whole::<{kind}>()`, or read `cx.owned` or `cx.live` instead of `cx.store`"
        )
    }

    /// Adds an index, which [`by_index`](Self::by_index) reads. The path of the function names it: an existing index of
    /// the same name is kept.
    ///
    /// The function runs once for each state of each object. An object for which it panics is in no index.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::store::{SharedStore, Store};
    ///
    /// fn by_node(pod: &Pod) -> Vec<String> {
    ///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
    /// }
    ///
    /// let pods = Store::<Pod>::new(Arc::new(SharedStore::default()));
    /// pods.add_index(by_node);
    /// assert_eq!(pods.by_index(by_node, "node-1").count(), 0);
    /// ```
    pub fn add_index<F: IndexFnPath<K> + Send + Sync + 'static>(&self, index: F) {
        self.shared.add_index(type_name_of_val(&index), index_values(index));
    }

    /// Returns the object of that key, or `None`. Keys are `Key::namespaced(namespace, name)` and `Key::cluster_scoped(name)`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// assert!(pods.get(&Key::namespaced("a", "web-0")).is_some());
    /// assert!(pods.get(&Key::namespaced("b", "web-0")).is_none());
    /// ```
    pub fn get<Q: KeyOf<K> + ?Sized>(&self, key: &Q) -> Option<Arc<K>> {
        let key = key.key().object();
        self.check_key(key);
        self.shared.get(key).and_then(|object| decode_checked(&object))
    }

    /// Iterates over a snapshot of all objects, sorted by namespace and name.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    /// assert_eq!(names, ["db-0", "web-0", "web-1"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Arc<K>> + use<K> {
        self.check_whole("a list of all objects");
        let mut objects = self.shared.all();
        objects.sort_by(|a, b| a.key().cmp(b.key()));
        objects.into_iter().filter_map(|object| decode_checked(&object))
    }

    /// Iterates over a snapshot of the objects of one namespace, sorted by name.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// assert_eq!(pods.in_namespace("a").count(), 2);
    /// ```
    pub fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = Arc<K>> + use<K> {
        if !self.covers(|primaries| primaries.has_namespace(namespace)) {
            self.check_just_gained(
                |primaries| primaries.owns_namespace(namespace),
                format_args!("namespace {namespace}"),
            );
            let is_primary = matches!(self.part, Some(Part::Primaries(_)));
            let remedy = if is_primary { "shard by `ShardBy::Namespace` with `App::sharded`, " } else { "" };
            Self::panic_beyond(format_args!("a list of namespace {namespace}"), remedy);
        }
        let objects = self.shared.in_namespace(Some(namespace));
        objects.into_iter().filter_map(|object| decode_checked(&object))
    }

    /// Iterates over the objects for which an index function returns this value, sorted by key.
    ///
    /// The controller declares the index by `index = f`, or [`add_index`](Self::add_index) adds it. The lookup does not
    /// scan the store.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// fn by_node(pod: &Pod) -> Vec<String> {
    ///     pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
    /// }
    /// pods.add_index(by_node);
    /// assert_eq!(pods.by_index(by_node, "node-1").count(), 3);
    /// ```
    ///
    /// # Panics
    /// If the kind has no such index, or if a sharded program caches only a share of the kind.
    pub fn by_index<F: IndexFnPath<K>>(&self, index: F, value: &str) -> impl Iterator<Item = Arc<K>> + use<K, F> {
        let name = type_name_of_val(&index);
        self.check_whole("an index");
        let objects = self.shared.by_index(name, value);
        let objects = objects.unwrap_or_else(|| {
            panic!("no index `{name}` on {}: declare it with `index = …` in the controller", K::kind(&()))
        });
        objects.into_iter().filter_map(|object| decode_checked(&object))
    }

    /// Returns the keys of all objects, sorted. No object is decoded.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// assert_eq!(pods.keys().last(), Some(&Key::namespaced("b", "web-1")));
    /// ```
    pub fn keys(&self) -> Vec<Key<K>> {
        self.check_whole("a list of all keys");
        self.shared.all().iter().map(|object| object.key().clone().into()).collect()
    }

    /// Returns the metadata of an object without decoding the rest of it: cheaper than [`get`](Self::get) if only
    /// labels or owners matter.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
    /// # fn filled() -> Store<Pod> {
    /// #     let pod = |(namespace, name): (&str, &str)| {
    /// #         let metadata = format!(r#""namespace":"{namespace}","name":"{name}","uid":"{name}","resourceVersion":"7""#);
    /// #         let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{"containers":[],"nodeName":"node-1"}}}}"#);
    /// #         Arc::new(Stored::accept(&Kind::of::<Pod>(), &json).unwrap())
    /// #     };
    /// #     let shared = Arc::new(SharedStore::default());
    /// #     let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// #     runtime.block_on(async {
    /// #         tokio::spawn(shared.clone().write());
    /// #         let pods = [("b", "web-1"), ("a", "web-0"), ("a", "db-0")].map(pod).into();
    /// #         shared.push_and_wait(Delta::Replace(None, pods, "7".into())).await;
    /// #     });
    /// #     Store::new(shared)
    /// # }
    /// # let pods = filled();
    /// let meta = pods.meta(&Key::namespaced("a", "db-0")).ok_or("no such pod")?;
    /// assert_eq!(meta.revision(), Some(7));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn meta(&self, key: &Key<K>) -> Option<Meta> {
        self.check_key(key.object());
        self.shared.get(key.object()).map(|object| object.meta().clone())
    }

    /// Returns `true` if the API server serves the kind.
    ///
    /// `false` is possible only for a kind that the controller declares as `optional`; its store is empty then. The
    /// controller reconciles all its objects when that changes.
    pub fn is_served(&self) -> bool {
        self.shared.is_served()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.check_whole("a number of objects");
        self.shared.len()
    }

    /// Returns `true` if the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Converts a typed index function. An object that does not fit the type, or for which the function panics, has no
/// values.
pub(crate) fn index_values<K: Readable>(index: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> IndexFn {
    Arc::new(move |object| {
        let Ok(typed) = object.decode::<K>() else { return Vec::new() };
        catch_unwind(AssertUnwindSafe(|| index(&typed))).unwrap_or_else(|_panic| {
            let (object, index) = (object.key(), type_name_of_val(&index));
            tracing::error!(%object, index, "an index function panicked: the object is not found by that index");
            Vec::new()
        })
    })
}

/// Decodes an object that was checked at the source. This never fails in practice: objects are checked against every
/// type that reads them before they are stored.
pub(crate) fn decode_checked<K: Readable>(object: &Arc<Stored>) -> Option<Arc<K>> {
    let decoded = object.decode();
    debug_assert!(decoded.is_ok(), "an object in the store fits its type: it was checked at the source");
    decoded.ok()
}
