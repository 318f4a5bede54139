//! The entries of a set, which its copies share until one of them changes.

use std::{ops::Deref, sync::Arc};

use super::{FieldSet, PathElement};

/// A step that leads to a path of the set, or to paths below it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) element: PathElement,
    pub(super) is_member: bool,
    pub(super) below: FieldSet,
}

impl Entry {
    pub(super) fn new(element: PathElement) -> Self {
        Self { element, is_member: false, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.below.is_empty()
    }
}

/// Sets are handed on, added and subtracted all the time, and most of their parts stay what they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Option<Arc<Vec<Entry>>>);

impl Entries {
    /// The entries to be changed, which are no longer those of a copy.
    pub(super) fn edit(&mut self) -> &mut Vec<Entry> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Whether these are the others, and not only equal.
    pub(super) fn is_shared_with(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
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
    /// Most sets end with a step: what is below has no entries, and takes no memory.
    fn from(entries: Vec<Entry>) -> Self {
        Self((!entries.is_empty()).then(|| Arc::new(entries)))
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        entries.into_iter().collect::<Vec<_>>().into()
    }
}
