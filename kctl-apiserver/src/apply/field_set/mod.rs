//! Sets of field paths, in the `FieldsV1` form of `metadata.managedFields`.
//!
//! Upstream: `fieldpath/set.go` and `fieldpath/serialize.go` of structured-merge-diff.

mod element;
mod entries;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use serde_json::{Map, Value};

pub(crate) use self::element::{Path, PathElement, path_text};
use self::entries::{Entries, Entry};

/// A path element, `true` if the path that ends here is in the set, and the paths of the set below it.
pub(crate) type Step = (PathElement, bool, FieldSet);

/// A set of field paths, stored as a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Invariant: ordered by element, each element once, so that two sets are compared and combined in one pass. No
    /// entry is empty once a path was added or removed.
    entries: Entries,
}

impl FieldSet {
    /// Parses the `FieldsV1` form. Invalid path elements are skipped.
    pub(crate) fn decode(fields: &Value) -> Self {
        let steps = fields.as_object().into_iter().flatten().filter_map(|(text, fields)| {
            let element = PathElement::decode(text)?;
            let below = Self::decode(fields);
            let is_member = below.is_empty() || fields.get(".").is_some();
            Some((element, is_member, below))
        });
        steps.collect()
    }

    /// Returns the `FieldsV1` form.
    pub(crate) fn encode(&self) -> Value {
        self.encode_into(Map::new())
    }

    /// Adds the entries to the fields of a `FieldsV1` object, and returns the object.
    fn encode_into(&self, mut fields: Map<String, Value>) -> Value {
        fields.extend(self.entries.iter().map(|entry| (entry.element.as_str().to_owned(), entry.encode())));
        Value::Object(fields)
    }

    /// Returns `true` if the set has no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entry of an element.
    fn find(&self, element: &PathElement) -> Option<&Entry> {
        let index = self.entries.binary_search_by(|entry| entry.element.cmp(element)).ok()?;
        Some(&self.entries[index])
    }

    /// Returns the entry of an element, which is created if it is missing.
    fn entry(&mut self, element: &PathElement) -> &mut Entry {
        // Usually the steps arrive in order, so the last entry is compared first.
        let index = match self.entries.last() {
            Some(last) if last.element >= *element => self.entries.binary_search_by(|entry| entry.element.cmp(element)),
            _ => Err(self.entries.len()),
        };
        let entries = self.entries.make_mut();
        let index = index.unwrap_or_else(|index| {
            entries.insert(index, Entry::new(element.clone()));
            index
        });
        &mut entries[index]
    }

    /// Adds a path. The empty path, which is the root, is ignored.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.entry(last).is_member = true,
            [first, rest @ ..] => self.entry(first).below.insert(rest),
        }
    }

    /// Returns `true` if exactly this path is in the set.
    pub(crate) fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.find(last).is_some_and(|entry| entry.is_member),
            [first, rest @ ..] => self.find(first).is_some_and(|entry| entry.below.contains(rest)),
        }
    }

    /// Returns the paths of the set below an element.
    pub(crate) fn with_prefix(&self, element: &PathElement) -> Option<&FieldSet> {
        self.find(element).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Replaces the paths below an element.
    pub(crate) fn replace_below(&mut self, element: &PathElement, below: FieldSet) {
        let entry = self.entry(element);
        entry.below = below;
        // Only then, because a caller may replace what is below each of many elements.
        if entry.is_empty() {
            self.entries.make_mut().retain(|entry| !entry.is_empty());
        }
    }

    /// Iterates over the elements that have paths below them.
    pub(crate) fn children(&self) -> impl Iterator<Item = (&PathElement, &FieldSet)> {
        self.entries.iter().filter(|entry| !entry.below.is_empty()).map(|entry| (&entry.element, &entry.below))
    }

    /// Iterates over the entries of this set, with the other set's entries for the same elements.
    fn zip_entries<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Entry, Option<&'a Entry>)> {
        let mut rest = &*other.entries;
        self.entries.iter().map(move |entry| {
            while let Some((first, later)) = rest.split_first() {
                match first.element.cmp(&entry.element) {
                    Ordering::Less => rest = later,
                    Ordering::Equal => return (entry, Some(first)),
                    Ordering::Greater => break,
                }
            }
            (entry, None)
        })
    }

    /// Returns the paths that are in either set.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self.entries.is_shared_with(&other.entries) {
            return self.clone();
        }
        let (mut mine, mut theirs) = (&*self.entries, &*other.entries);
        let mut entries = Vec::with_capacity(mine.len().max(theirs.len()));
        while let ([own, mine_later @ ..], [their, theirs_later @ ..]) = (mine, theirs) {
            match own.element.cmp(&their.element) {
                Ordering::Less => {
                    entries.push(own.clone());
                    mine = mine_later;
                }
                Ordering::Greater => {
                    entries.push(their.clone());
                    theirs = theirs_later;
                }
                Ordering::Equal => {
                    let below = own.below.union(&their.below);
                    entries.push(Entry {
                        element: own.element.clone(),
                        is_member: own.is_member || their.is_member,
                        below,
                    });
                    (mine, theirs) = (mine_later, theirs_later);
                }
            }
        }
        entries.extend(mine.iter().chain(theirs).cloned());
        let set = Self { entries: entries.into() };
        set.check();
        set
    }

    /// Returns the paths that are not in the other set. Removing a path keeps the paths below it.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let rest = self.zip_entries(other).map(|(mine, theirs)| match theirs {
            None => mine.clone(),
            Some(theirs) => Entry {
                element: mine.element.clone(),
                is_member: mine.is_member && !theirs.is_member,
                below: mine.below.difference(&theirs.below),
            },
        });
        let set = Self { entries: rest.filter(|entry| !entry.is_empty()).collect::<Vec<_>>().into() };
        set.check();
        set
    }

    /// Checks the invariants of this level; those below were checked when they were made.
    fn check(&self) {
        let is_sorted = self.entries.is_sorted_by(|previous, next| previous.element < next.element);
        debug_assert!(is_sorted, "sets are combined in one pass over both");
        debug_assert!(self.entries.iter().all(|entry| !entry.is_empty()), "an entry without paths owns nothing");
    }

    /// Returns the set without a path and without all paths below it.
    #[must_use]
    pub(crate) fn without(mut self, path: &[&str]) -> Self {
        self.remove(path);
        self
    }

    /// Removes a path and all paths below it.
    fn remove(&mut self, path: &[&str]) {
        let [first, rest @ ..] = path else { return };
        let Some(index) = self.entries.iter().position(|entry| entry.element.field_name() == Some(first)) else {
            return;
        };
        if rest.is_empty() {
            self.entries.make_mut().remove(index);
        } else {
            self.entries.make_mut()[index].below.remove(rest);
            self.entries.make_mut().retain(|entry| !entry.is_empty());
        }
    }

    /// Returns `true` if the other set has all paths of this set.
    #[must_use]
    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.entries.is_shared_with(&other.entries)
            || self.zip_entries(other).all(|(mine, theirs)| {
                theirs.is_some_and(|theirs| mine.is_member <= theirs.is_member && mine.below.is_subset(&theirs.below))
            })
    }

    /// Returns `true` if the sets have no path in common.
    #[must_use]
    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        self.zip_entries(other).all(|(mine, theirs)| {
            theirs.is_none_or(|theirs| !(mine.is_member && theirs.is_member) && mine.below.is_disjoint(&theirs.below))
        })
    }

    /// Returns the paths that are in both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let both = self.zip_entries(other).filter_map(|(mine, theirs)| {
            let theirs = theirs?;
            let (element, below) = (mine.element.clone(), mine.below.intersection(&theirs.below));
            Some(Entry { element, is_member: mine.is_member && theirs.is_member, below })
        });
        let set = Self { entries: both.filter(|entry| !entry.is_empty()).collect::<Vec<_>>().into() };
        set.check();
        set
    }

    /// Returns all paths: those that end here first, then those below, each in order.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    /// Collects all paths below a prefix.
    fn collect(&self, prefix: &mut Path, found: &mut Vec<Path>) {
        for Entry { element, .. } in self.entries.iter().filter(|entry| entry.is_member) {
            found.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, below) in self.children() {
            prefix.push(element.clone());
            below.collect(prefix, found);
            prefix.pop();
        }
    }
}

impl FromIterator<Step> for FieldSet {
    /// Returns a set of elements. Empty ones are left out. Of an element that occurs again, the paths below replace
    /// those before unless they are empty.
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let steps = steps.into_iter().filter(|(_, is_member, below)| *is_member || !below.is_empty());
        let mut entries: Vec<Entry> =
            steps.map(|(element, is_member, below)| Entry { element, is_member, below }).collect();
        // Usually the steps arrive in order. `managedFields` of a client may have any order after the elements became
        // canonical; inserting each one would take quadratic time under the lock of the server.
        if !entries.is_sorted_by(|previous, next| previous.element < next.element) {
            entries.sort_by(|left, right| left.element.cmp(&right.element));
            entries.dedup_by(|again, kept| {
                let is_same = again.element == kept.element;
                if is_same {
                    kept.is_member |= again.is_member;
                    if !again.below.is_empty() {
                        kept.below = std::mem::take(&mut again.below);
                    }
                }
                is_same
            });
        }
        let set = Self { entries: entries.into() };
        set.check();
        set
    }
}
