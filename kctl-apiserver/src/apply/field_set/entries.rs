//! The entries of a set, shared by its copies until one of them changes.

use std::{ops::Deref, sync::Arc};

use serde_json::{Map, Value};

use super::{FieldSet, PathElement};

/// An element that ends a path of the set, or leads to paths below it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The element that leads here. Entries of a set are sorted by it.
    pub(super) element: PathElement,
    /// `true` if the path that ends here is in the set. In `FieldsV1` a member with paths below it has the extra key
    /// `.`.
    pub(super) is_member: bool,
    /// The paths below the element.
    pub(super) below: FieldSet,
}

impl Entry {
    /// Creates an entry without paths.
    pub(super) fn new(element: PathElement) -> Self {
        Self { element, is_member: false, below: FieldSet::default() }
    }

    /// Returns `true` if no path ends or leads here. Entries like this are never kept in a set.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }

    /// Returns the `FieldsV1` value of the element: the paths below it, after `.` if the path that ends here is in the
    /// set as well.
    pub(super) fn encode(&self) -> Value {
        let mut fields = Map::new();
        if self.is_member && !self.below.is_empty() {
            fields.insert(".".to_owned(), Map::new().into());
        }
        self.below.encode_into(fields)
    }
}

/// Shared, because sets are copied and combined often and most of their parts are unchanged.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Option<Arc<Vec<Entry>>>);

impl Entries {
    /// Returns the entries for a change, which copies them if they are shared.
    pub(super) fn make_mut(&mut self) -> &mut Vec<Entry> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Returns `true` if both are the same allocation. Equal entries may still be two allocations.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(mine), Some(other)) => Arc::ptr_eq(mine, other),
            _ => false,
        }
    }
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl PartialEq for Entries {
    fn eq(&self, other: &Self) -> bool {
        self.is_shared_with(other) || **self == **other
    }
}

impl Eq for Entries {}

impl From<Vec<Entry>> for Entries {
    /// Empty entries take no memory: most sets end with an element that has nothing below.
    fn from(entries: Vec<Entry>) -> Self {
        Self((!entries.is_empty()).then(|| Arc::new(entries)))
    }
}
