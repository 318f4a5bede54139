//! Deltas become the local cache: reads deltas of the source and of own writes, hands changes on to the handlers.

mod cache;
mod durations;
mod inbox;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod subscribers;
mod tombstones;
mod view;
mod writer;

use std::sync::Arc;

#[cfg(test)]
pub(crate) use cache::Cache;
pub use cache::{Delta, Scope};
pub use tombstones::TOMBSTONES_MAX;
#[doc(hidden)]
pub use view::KeyOf;
pub use view::{IndexFnPath, Store};
pub(crate) use view::{index_values, view};
pub use writer::{DELTAS_MAX, Handler, SharedStore, Subscription};

use crate::object::Stored;

/// Values under which an object is found in an index.
pub type IndexFn = Arc<dyn Fn(&Stored) -> Vec<String> + Send + Sync>;

/// A change of one object in a store.
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
    /// The object is gone.
    Deleted {
        /// The last state that is known.
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
    /// The newest state: of a deleted object its last one.
    pub fn latest(&self) -> &Arc<K> {
        match self {
            Self::Added(new) | Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// The states that the change is about, the older first.
    pub fn states(&self) -> impl Iterator<Item = &Arc<K>> {
        let (first, second) = match self {
            Self::Added(one) | Self::Deleted { last: one } => (one, None),
            Self::Updated { old, new } => (old, Some(new)),
        };
        std::iter::once(first).chain(second)
    }

    /// The same change of another view of the object, or the first error.
    pub(crate) fn try_map<T, E>(&self, view: impl Fn(&Arc<K>) -> Result<Arc<T>, E>) -> Result<Change<T>, E> {
        Ok(match self {
            Self::Added(new) => Change::Added(view(new)?),
            Self::Updated { old, new } => Change::Updated { old: view(old)?, new: view(new)? },
            Self::Deleted { last } => Change::Deleted { last: view(last)? },
        })
    }
}
