//! Deltas become the local cache: reads deltas of the source and of own writes, hands changes on to the handlers.

mod cache;
mod view;
mod writer;

use std::sync::Arc;

pub use cache::{Delta, Scope, TOMBSTONES_MAX};
pub use view::{IndexFnPath, Store};
pub(crate) use view::{index_values, view};
pub use writer::{DELTAS_MAX, Handler, SharedStore, Subscription};

use crate::object::Stored;

/// Values under which an object is found in an index.
pub type IndexFn = Arc<dyn Fn(&Stored) -> Vec<String> + Send + Sync>;

/// What happened to an object.
///
/// ```
/// use kctl_runtime::store::Change;
/// let change = Change::Updated { old: 1, new: 2 };
/// assert_eq!(*change.latest(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<K> {
    /// The object is new to this cache.
    Added(K),
    /// The object has another state.
    Updated {
        /// The state before.
        old: K,
        /// The state now.
        new: K,
    },
    /// The object is gone.
    Deleted {
        /// The last state that is known.
        last: K,
    },
}

impl<K> Change<K> {
    /// The newest state: of a deleted object its last one.
    pub fn latest(&self) -> &K {
        match self {
            Self::Added(new) | Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// The states that the change is about, the older first.
    pub fn states(&self) -> impl Iterator<Item = &K> {
        let (first, second) = match self {
            Self::Added(one) | Self::Deleted { last: one } => (one, None),
            Self::Updated { old, new } => (old, Some(new)),
        };
        std::iter::once(first).chain(second)
    }

    /// The same change of another view of the object, or the first error.
    pub(crate) fn try_map<T, E>(&self, view: impl Fn(&K) -> Result<T, E>) -> Result<Change<T>, E> {
        Ok(match self {
            Self::Added(new) => Change::Added(view(new)?),
            Self::Updated { old, new } => Change::Updated { old: view(old)?, new: view(new)? },
            Self::Deleted { last } => Change::Deleted { last: view(last)? },
        })
    }
}
