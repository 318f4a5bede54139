//! The local cache: a store applies deltas in order, answers reads without requests, and reports each change to its
//! handlers.
//!
//! - [`SharedStore`] holds the objects of one informer. One task, [`SharedStore::write`], applies all [`Delta`]s that change
//!   an object; any number of tasks read.
//! - [`Store<K>`](Store) is the typed view that user code reads. `cx.store::<K>()` returns it.
//! - [`Change`] is what handlers see: an object was added, updated or deleted.
//!
//! The store is client-go's `Store`, `Indexer` and `sharedProcessor` in one (`tools/cache/store.go`,
//! `shared_informer.go`), with one addition: own writes. The response to a write is applied at once as
//! [`Delta::Written`] or [`Delta::Gone`], so that a reconcile that follows a write sees it. A watch event that is older
//! than an own write changes nothing.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! use std::sync::Arc;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kctl_runtime::{key::Key, object::{Kind, Stored}, store::{Delta, SharedStore, Store}};
//!
//! let shared = Arc::new(SharedStore::default());
//! tokio::spawn(shared.clone().write());
//! let configs = Store::<ConfigMap>::new(shared.clone());
//!
//! let at = |version: u64| {
//!     let json = format!(r#"{{"metadata":{{"namespace":"a","name":"x","uid":"1","resourceVersion":"{version}"}}}}"#);
//!     Stored::accept(&Kind::of::<ConfigMap>(), &json).map(Arc::new)
//! };
//! let version = || configs.get(&Key::namespaced("a", "x")).and_then(|x| x.metadata.resource_version.clone());
//!
//! shared.push_and_wait(Delta::Replace(None, vec![at(5)?], "5".into())).await; // the initial list
//! shared.push_and_wait(Delta::Written(at(9)?)).await; // the response to an own write
//! shared.push_and_wait(Delta::Apply(at(7)?)).await; // an older event, which comes late
//! assert_eq!(version().as_deref(), Some("9"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod all_slots;
mod cache;
mod durations;
mod inbox;
#[cfg(test)]
mod schedule_tests;
mod share;
#[cfg(test)]
mod subscriber_tests;
mod tombstones;
mod view;
mod writer;

use std::sync::Arc;

#[cfg(test)]
pub(crate) use all_slots::AllSlots;
#[cfg(test)]
pub(crate) use cache::Cache;
pub(crate) use cache::ListedVersions;
pub use cache::{Delta, NamespaceScope};
pub(crate) use share::{Part, Primaries, Share};
pub use tombstones::TOMBSTONES_MAX;
#[doc(hidden)]
pub use view::KeyOf;
pub use view::{IndexFnPath, Store};
pub(crate) use view::{decode_checked, index_values};
pub use writer::{DELTAS_MAX, Handler, Origin, SharedStore, Subscription};

use crate::object::Stored;

/// A function that returns the values under which an index finds an object. [`Store::add_index`] takes the typed form.
pub type IndexFn = Arc<dyn Fn(&Stored) -> Vec<String> + Send + Sync>;

/// A change of one object in a store: the input of handlers, predicates and mappers.
///
/// An object that was deleted and created again under the same name is reported as a deletion and an addition. That
/// holds even if both happened while a watch was interrupted. Updates that no reader can see, such as a heartbeat
/// outside of a [view](crate::object), are not reported.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kctl_runtime::store::Change;
///
/// fn is_new(change: &Change<Pod>) -> bool {
///     matches!(change, Change::Added(_))
/// }
/// let pod = Arc::new(Pod::default());
/// assert!(is_new(&Change::Added(pod.clone())));
/// assert!(!is_new(&Change::Updated { old: pod.clone(), new: pod }));
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// The object is new to this cache.
    Added(Arc<K>),
    /// The object has another state.
    Updated {
        /// The state before.
        old: Arc<K>,
        /// The state now.
        new: Arc<K>,
    },
    /// The object is gone, or no longer matches the selector.
    Deleted {
        /// The last known state.
        last: Arc<K>,
    },
}

impl<K> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added(new) => Self::Added(new.clone()),
            Self::Updated { old, new } => Self::Updated { old: old.clone(), new: new.clone() },
            Self::Deleted { last } => Self::Deleted { last: last.clone() },
        }
    }
}

impl<K> Change<K> {
    /// Returns the newest state; for a deleted object its last one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kctl_runtime::{key::Key, store::Change};
    ///
    /// /// A mapper that does not care about the kind of change.
    /// fn name(change: &Change<Pod>) -> Option<&str> {
    ///     change.latest().metadata.name.as_deref()
    /// }
    /// assert_eq!(name(&Change::Added(Arc::new(Pod::default()))), None);
    /// ```
    pub fn latest(&self) -> &Arc<K> {
        match self {
            Self::Added(new) | Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// Iterates over the states that the change is about, the older one first: one state, or two for an update.
    ///
    /// Handlers map both: if a reference moves from one object to another, both ends are reconciled.
    pub fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        let (first, second) = match self {
            Self::Added(one) | Self::Deleted { last: one } => (one, None),
            Self::Updated { old, new } => (old, Some(new)),
        };
        std::iter::once(first).chain(second)
    }

    /// Converts all states of the change, or returns the first error.
    pub(crate) fn try_map<T, E>(&self, view: impl Fn(&Arc<K>) -> Result<Arc<T>, E>) -> Result<Change<T>, E> {
        Ok(match self {
            Self::Added(new) => Change::Added(view(new)?),
            Self::Updated { old, new } => Change::Updated { old: view(old)?, new: view(new)? },
            Self::Deleted { last } => Change::Deleted { last: view(last)? },
        })
    }
}
