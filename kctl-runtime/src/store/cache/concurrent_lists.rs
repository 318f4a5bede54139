//! Lists concurrent with a running watch, and the ends that the watch reports during such a list: an object was deleted, or
//! belongs to another replica now.
//!
//! The list is often older than the watch when it arrives. A cache with all objects can ignore it then. A replica that
//! has gained slots can't: the watch was past the objects of those slots before its filter selected them. So the list
//! is applied, except for the objects whose end the watch has reported during the list.

use std::{collections::HashMap, hash::BuildHasher, sync::Arc};

use foldhash::fast::FixedState;

use super::NamespaceScope;
use crate::object::{Stored, Uid};

/// Maximum number of objects whose end is remembered during one list. With more of them, the list is not applied, and has
/// to be requested again.
///
/// Changes of other replicas' objects count too. So the bound is the number of objects of a kind that may change while the
/// kind is listed. The map then has 2²⁰ places of 17 bytes, which are freed with the end of the list.
const DELETES_DURING_LIST_MAX: usize = 900_000;

/// Version of an end whose version is not a number: no listed state is later.
const UNKNOWN: u64 = u64::MAX;

/// The deletes during one list.
#[derive(Default)]
struct Deletes {
    /// The last version of each object, by the hash of its uid. Invariant: at most [`DELETES_DURING_LIST_MAX`].
    ///
    /// A uid would take more than twice the memory. If a listed object has the same hash as an object that ended, it
    /// may be missing until the next list. With a million listed objects that has a probability of 2⁻²⁴.
    by_uid: HashMap<u64, u64, FixedState>,
    /// `true` if there were more.
    is_incomplete: bool,
}

impl Deletes {
    fn add(&mut self, uid: &Uid, revision: Option<u64>) {
        if self.is_incomplete {
            return;
        }
        self.by_uid.insert(hash_of(uid), revision.unwrap_or(UNKNOWN));
        if self.by_uid.len() > DELETES_DURING_LIST_MAX {
            self.by_uid = HashMap::default();
            self.is_incomplete = true;
        }
        debug_assert!(self.by_uid.len() <= DELETES_DURING_LIST_MAX, "more deletes make the list useless");
    }

    /// Returns `true` if this state of the object is not later than its end.
    fn has(&self, object: &Stored) -> bool {
        let last = self.by_uid.get(&hash_of(&object.meta().uid));
        last.is_some_and(|last| object.meta().revision().is_none_or(|listed| *last >= listed))
    }
}

fn hash_of(uid: &Uid) -> u64 {
    FixedState::default().hash_one(uid)
}

/// The lists that are under way.
#[derive(Default)]
pub(super) struct ConcurrentLists {
    /// By scope. A cache has at most one for each scope, and rarely any.
    open: Vec<(NamespaceScope, Deletes)>,
    /// `true` if the last list was applied.
    pub(super) is_applied: bool,
}

impl ConcurrentLists {
    /// Records deletes from now on. An earlier list of the scope was given up.
    pub(super) fn begin(&mut self, scope: NamespaceScope) {
        self.end(&scope);
        self.open.push((scope, Deletes::default()));
    }

    /// Stops recording: another list of the whole scope was applied, or the scope is empty.
    pub(super) fn end(&mut self, scope: &NamespaceScope) {
        self.open.retain(|(listed, _)| listed != scope);
    }

    /// Iterates over the scopes whose lists are under way.
    pub(super) fn scopes(&self) -> impl Iterator<Item = &NamespaceScope> {
        self.open.iter().map(|(scope, _)| scope)
    }

    fn get(&self, scope: &NamespaceScope) -> Option<&Deletes> {
        self.open.iter().find_map(|(listed, deletes)| (listed == scope).then_some(deletes))
    }

    /// Returns `true` if a list of the scope is under way.
    pub(super) fn has(&self, scope: &NamespaceScope) -> bool {
        self.get(scope).is_some()
    }

    /// Records that the watch has reported the end of an object, with the version of that event.
    pub(super) fn record_delete(&mut self, scope: &NamespaceScope, uid: &Uid, revision: Option<u64>) {
        if let Some((_, deletes)) = self.open.iter_mut().find(|(listed, _)| listed == scope) {
            deletes.add(uid, revision);
        }
    }

    /// Records that an object exists. It may have left the selector before.
    pub(super) fn forget_delete(&mut self, object: &Stored) {
        for (_, deletes) in &mut self.open {
            deletes.by_uid.remove(&hash_of(&object.meta().uid));
        }
    }

    /// Returns `true` if the watch has reported the end of this state of an object.
    pub(super) fn has_deleted(&self, scope: &NamespaceScope, object: &Stored) -> bool {
        self.get(scope).is_some_and(|deletes| deletes.has(object))
    }

    /// Ends the list of a scope, and returns its objects that still exist.
    ///
    /// Returns `None` if the list proves too little and has to be requested again. There were too many deletes, or
    /// another list of the scope was applied in between.
    pub(super) fn finish(&mut self, scope: &NamespaceScope, mut objects: Vec<Arc<Stored>>) -> Option<Vec<Arc<Stored>>> {
        let deletes = self.get(scope).filter(|deletes| !deletes.is_incomplete);
        let remaining = deletes.map(|deletes| {
            objects.retain(|object| !deletes.has(object));
            objects
        });
        self.end(scope);
        self.is_applied = remaining.is_some();
        remaining
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{check, list, pod},
        *,
    };
    use crate::store::Delta;

    fn bookmark(version: &str) -> Delta {
        Delta::Bookmark(None, version.into())
    }

    fn join(objects: &[Arc<Stored>], version: &str) -> Delta {
        Delta::Join(None, objects.to_vec(), version.into())
    }

    #[test]
    fn list_older_than_the_watch_adds_objects() {
        let cache =
            check(vec![list(&[], "5"), Delta::Listing(None), bookmark("20"), join(&[pod("x", "1", 7)], "10")], "+x@7");
        assert!(cache.has_joined());
        assert_eq!(cache.revision(), 20, "the watch continues where it was");
        check(
            vec![list(&[], "5"), bookmark("20"), list(&[pod("x", "1", 7)], "10")],
            "", // a list of the reflector is of the same selection as its watch
        );
    }

    #[test]
    fn object_deleted_during_the_list_does_not_return() {
        check(
            vec![
                list(&[], "5"),
                Delta::Listing(None),
                Delta::Delete(pod("x", "1", 15)),
                Delta::Delete(pod("y", "2", 16)),
                Delta::Apply(pod("y", "3", 17)),
                join(&[pod("x", "1", 7), pod("y", "2", 8), pod("z", "4", 9)], "10"),
            ],
            "+y@17 +z@9",
        );
    }

    #[test]
    fn object_assigned_elsewhere_during_list_is_not_cached() {
        let unselected = |uid: &str, version: &str| Delta::Unselected(None, uid.into(), version.into());
        check(
            vec![
                list(&[], "5"),
                Delta::Listing(None),
                unselected("1", "12"),
                bookmark("12"),
                join(&[pod("x", "1", 9), pod("y", "2", 9)], "10"),
            ],
            "+y@9",
        );
        check(
            vec![
                list(&[], "5"),
                Delta::Listing(None),
                unselected("1", "12"),
                Delta::Apply(pod("x", "1", 15)),
                join(&[pod("x", "1", 9)], "10"),
            ],
            "+x@15", // it came back
        );
        check(
            vec![
                list(&[pod("x", "1", 7)], "8"),
                Delta::Listing(None),
                Delta::Delete(pod("x", "1", 7)),
                unselected("1", "12"),
                join(&[pod("x", "1", 9)], "10"),
            ],
            "+x@7 -x@7", // the list had a newer state than the cache
        );
    }

    #[test]
    fn object_that_returned_to_the_selector_is_added() {
        check(
            vec![
                list(&[], "5"),
                Delta::Listing(None),
                Delta::Delete(pod("x", "1", 7)),
                bookmark("20"),
                join(&[pod("x", "1", 8)], "10"),
            ],
            "+x@8",
        );
    }

    #[test]
    fn newer_states_survive_the_list() {
        check(
            vec![
                list(&[pod("w", "0", 3), pod("x", "1", 4)], "5"),
                Delta::Listing(None),
                Delta::Apply(pod("x", "1", 15)),
                join(&[pod("x", "1", 7)], "10"),
            ],
            "+w@3 +x@4 ~x@15 -w@3",
        );
    }

    #[test]
    fn list_of_the_reflector_supersedes_the_list() {
        let cache = check(
            vec![
                list(&[], "5"),
                Delta::Listing(None),
                list(&[pod("x", "1", 11)], "12"),
                join(&[pod("x", "1", 7), pod("y", "2", 8)], "10"),
            ],
            "+x@11",
        );
        assert!(!cache.has_joined(), "`y` was deleted between the two lists, or the first one did not select it");
    }

    #[test]
    fn list_with_too_many_deletes_is_not_applied() {
        for (more, is_applied) in [(0, true), (1, false)] {
            let mut joins = ConcurrentLists::default();
            joins.begin(None);
            for n in 0..DELETES_DURING_LIST_MAX + more {
                joins.record_delete(&None, &n.to_string().as_str().into(), Some(1));
            }
            // The second event of an object takes no further place.
            joins.record_delete(&None, &"0".into(), Some(2));
            let left = joins.finish(&None, vec![pod("x", "1", 7), pod("y", "y", 7)]);
            assert_eq!(left.map(|left| left.len()), is_applied.then_some(2), "{more} more than the bound");
            assert_eq!(joins.is_applied, is_applied);
        }
        let again = vec![list(&[], "5"), Delta::Listing(None), Delta::Listing(None), join(&[pod("x", "x", 7)], "10")];
        assert!(check(again, "+x@7").has_joined());
    }

    #[test]
    fn newer_namespace_read_supersedes_older_one() {
        let present = |objects: &[Arc<Stored>], version: &str| {
            Delta::ListDuringWatch(Some("a".into()), objects.to_vec(), version.into())
        };
        for version in [7, 21] {
            let x = pod("x", "1", version);
            let gained = vec![
                list(&[], "5"),
                bookmark("20"),
                present(&[], "22"),
                Delta::Listing(None),
                present(std::slice::from_ref(&x), "25"),
                join(&[x], "24"),
            ];
            check(gained, &format!("+x@{version}"));
        }
        // An older read that arrives later proves nothing.
        check(vec![list(&[], "5"), present(&[], "22"), present(&[pod("x", "1", 7)], "21")], "");
    }

    #[test]
    fn namespace_read_finds_objects_during_list() {
        let present = |version: &str| Delta::ListDuringWatch(Some("a".into()), vec![pod("x", "1", 7)], version.into());
        for read in ["18", "25"] {
            check(
                vec![
                    list(&[], "5"),
                    Delta::Listing(None),
                    bookmark("20"),
                    present(read),
                    bookmark("21"),
                    join(&[pod("x", "1", 7)], "10"),
                    bookmark("30"),
                ],
                "+x@7",
            );
        }
    }
}
