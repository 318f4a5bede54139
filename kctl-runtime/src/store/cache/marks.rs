//! How far the scopes of a cache have come. Most caches have one scope, which a tree would keep in a node for eleven.

use super::Scope;

/// How far list and watch of a scope have come.
#[derive(Default)]
pub(super) struct Mark {
    /// The API server has said what there is: a list, or that it does not serve an optional kind.
    pub(super) listed: bool,
    /// It does not serve the kind, which is optional.
    pub(super) absent: bool,
    /// Everything up to here has been reported. An object that is unknown at or below it is gone.
    pub(super) revision: u64,
}

/// The scopes that are listed and watched, sorted.
pub(super) struct Marks(Vec<(Scope, Mark)>);

impl Marks {
    pub(super) fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        let mut marks: Vec<_> = scopes.into_iter().map(|scope| (scope, Mark::default())).collect();
        marks.sort_by(|(one, _), (other, _)| one.cmp(other));
        marks.dedup_by(|(one, _), (other, _)| one == other);
        Self(marks)
    }

    fn find(&self, scope: &Scope) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(scope))
    }

    pub(super) fn has(&self, scope: &Scope) -> bool {
        self.find(scope).is_ok()
    }

    pub(super) fn get(&self, scope: &Scope) -> Option<&Mark> {
        Some(&self.0[self.find(scope).ok()?].1)
    }

    pub(super) fn get_mut(&mut self, scope: &Scope) -> Option<&mut Mark> {
        let place = self.find(scope).ok()?;
        Some(&mut self.0[place].1)
    }

    /// The mark of a scope, which is among them from now on.
    pub(super) fn entry(&mut self, scope: &Scope) -> &mut Mark {
        let place = self.find(scope).unwrap_or_else(|place| {
            self.0.insert(place, (scope.clone(), Mark::default()));
            place
        });
        &mut self.0[place].1
    }

    pub(super) fn remove(&mut self, scope: &Scope) {
        if let Ok(place) = self.find(scope) {
            self.0.remove(place);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter().map(|(_, mark)| mark)
    }
}
