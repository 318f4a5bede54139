//! Messages for a store: the changes that its source reports, and the results of own writes.

use std::sync::Arc;

use crate::{
    key::ObjectKey,
    object::{Stored, Uid},
};

/// The scope of one list and one watch: a namespace, or `None` for all namespaces and for cluster-scoped kinds.
pub type NamespaceScope = Option<Arc<str>>;

/// An input of a store: a message of its source, or the result of an own write or of a read concurrent with the watch.
///
/// Versions decide which of two states is newer, never the order of arrival. With some aggregated API servers,
/// `resourceVersion`s cannot be compared as numbers. The deltas of the source are then applied in the order of their
/// arrival, and own writes are left to the watch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Delta {
    /// The complete state of a scope at a `resourceVersion`, from a list. Objects that are not in it were deleted. An object
    /// that is older than the cached one was restored from a backup, if the list is not older.
    Replace(NamespaceScope, Vec<Arc<Stored>>, String),
    /// The complete state of a scope from an API server whose state went back, for example after the restore of a
    /// backup of etcd. It replaces everything, even newer versions.
    Restore(NamespaceScope, Vec<Arc<Stored>>, String),
    /// The scope is about to be listed. Until then the store is not complete, and nothing is written there.
    Incomplete(NamespaceScope),
    /// The API server no longer serves the kind, so its objects are gone. The kind may come back.
    Clear(NamespaceScope),
    /// The API server does not serve a kind that is optional: the store is empty and complete. Nothing is written there
    /// before it is listed.
    Absent(NamespaceScope),
    /// The scope is no longer followed: its objects leave the store as deletions, and nothing is written there.
    Close(NamespaceScope),
    /// A watch event `ADDED` or `MODIFIED`.
    Apply(Arc<Stored>),
    /// A watch event `DELETED`, with the last state.
    Delete(Arc<Stored>),
    /// The source no longer selects this object, whatever its version is. Unlike [`Delete`](Self::Delete) it does not come
    /// from the watch, so it does not prove that the watch is past the version.
    Drop(Arc<Stored>),
    /// The watch reported this `resourceVersion` of an object that the source no longer selects, or cannot read in its last
    /// state, by its key and uid. A cached state that is not later leaves the store as a deletion.
    Leave(ObjectKey, Uid, String),
    /// Everything of a scope up to this `resourceVersion` has been reported.
    Bookmark(NamespaceScope, String),
    /// The objects of a namespace at a `resourceVersion`, from a list concurrent with the watch.
    ListDuringWatch(NamespaceScope, Vec<Arc<Stored>>, String),
    /// The whole scope is about to be listed concurrently with the watch. Until [`Join`](Self::Join), the store
    /// remembers which objects the watch reports as deleted.
    Listing(NamespaceScope),
    /// The complete state of a scope at a `resourceVersion`, from a concurrent list that began after
    /// [`Listing`](Self::Listing). It is applied even if the watch is past it, because the source may select more
    /// objects than when the watch passed them. Objects whose end the watch has reported during the list do not come
    /// back.
    Join(NamespaceScope, Vec<Arc<Stored>>, String),
    /// The watch reported this `resourceVersion` of an object that the source does not select, by its uid. An older
    /// state in a concurrent list does not come back, and an own delete before it is forgotten.
    Unselected(NamespaceScope, Uid, String),
    /// The state of one object in the response to an own write, or to a read concurrent with the watch.
    Written(Arc<Stored>),
    /// A response or a read shows that the object with this uid is gone.
    Gone(ObjectKey, Uid),
}

impl Delta {
    /// Returns `true` if the delta may add, list or remove a scope. Other deltas leave a complete store complete, and
    /// an incomplete one incomplete.
    pub(in crate::store) fn affects_scopes(&self) -> bool {
        match self {
            Self::Replace(..)
            | Self::Restore(..)
            | Self::Incomplete(_)
            | Self::Clear(_)
            | Self::Absent(_)
            | Self::Close(_)
            | Self::ListDuringWatch(..)
            | Self::Listing(_)
            | Self::Join(..) => true,
            Self::Apply(_)
            | Self::Delete(_)
            | Self::Drop(_)
            | Self::Leave(..)
            | Self::Bookmark(..)
            | Self::Unselected(..)
            | Self::Written(_)
            | Self::Gone(..) => false,
        }
    }
}
