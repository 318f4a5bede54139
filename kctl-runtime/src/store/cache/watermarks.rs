//! The progress of list and watch in each scope of a cache. Most caches have one scope, so a sorted vector is smaller
//! than a tree.

use super::NamespaceScope;

/// The progress of list and watch in one scope.
#[derive(Default)]
pub(super) struct Watermark {
    /// Is `true` once a list was applied, or the API server answered that it does not serve an optional kind.
    pub(super) listed: bool,
    /// Is `true` once a list was applied, even during another list. It remains `true` until the objects leave.
    pub(super) was_listed: bool,
    /// Is `true` if the API server does not serve the kind, which is optional.
    pub(super) absent: bool,
    /// Everything up to this revision has been reported. An unknown object at or below it was deleted.
    pub(super) revision: u64,
}

/// The scopes that are listed and watched. Invariant: sorted, and each once.
pub(super) struct Watermarks(Vec<(NamespaceScope, Watermark)>);

impl Watermarks {
    /// Creates the watermarks of these scopes, none of them listed.
    pub(super) fn new(scopes: impl IntoIterator<Item = NamespaceScope>) -> Self {
        let mut watermarks: Vec<_> = scopes.into_iter().map(|scope| (scope, Watermark::default())).collect();
        watermarks.sort_by(|(one, _), (other, _)| one.cmp(other));
        watermarks.dedup_by(|(one, _), (other, _)| one == other);
        Self(watermarks)
    }

    /// Returns the index of a scope, or the index at which to insert it.
    fn find(&self, scope: &NamespaceScope) -> Result<usize, usize> {
        self.0.binary_search_by(|(marked, _)| marked.cmp(scope))
    }

    /// Returns `true` for a scope that is listed and watched.
    pub(super) fn has(&self, scope: &NamespaceScope) -> bool {
        self.find(scope).is_ok()
    }

    /// Returns the progress of a scope, or `None` if it is not followed.
    pub(super) fn get(&self, scope: &NamespaceScope) -> Option<&Watermark> {
        Some(&self.0[self.find(scope).ok()?].1)
    }

    pub(super) fn get_mut(&mut self, scope: &NamespaceScope) -> Option<&mut Watermark> {
        let idx = self.find(scope).ok()?;
        Some(&mut self.0[idx].1)
    }

    /// Returns the watermark of a scope, and adds the scope if it is missing.
    pub(super) fn entry(&mut self, scope: &NamespaceScope) -> &mut Watermark {
        let idx = self.find(scope).unwrap_or_else(|idx| {
            self.0.insert(idx, (scope.clone(), Watermark::default()));
            debug_assert!(self.0.is_sorted_by(|(one, _), (next, _)| one < next), "`find` needs the order");
            idx
        });
        &mut self.0[idx].1
    }

    pub(super) fn remove(&mut self, scope: &NamespaceScope) {
        if let Ok(idx) = self.find(scope) {
            self.0.remove(idx);
        }
    }

    /// Returns the progress of all scopes.
    pub(super) fn all(&self) -> impl Iterator<Item = &Watermark> {
        self.0.iter().map(|(_, watermark)| watermark)
    }
}
