//! Equality of CEL values. Lists that a schema declares as sets or maps are equal in any order, and
//! concatenation merges duplicates.
//!
//! Upstream: `pkg/cel/common/valuesunstructured.go` of apiserver. There, an item that a rule adds to a set is still in
//! it for the rules that follow. Here each rule sees the original list.
//!
//! A list literal in an expression has no type, so the side that comes from the object decides:
//! `self.set == [1, 2]` ignores the order, `[2, 1] == self.set` does not.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use kube_cel::cel::{Value as Cel, objects::Key};

/// The `x-kubernetes-list-type` of a list that is not atomic.
#[derive(Clone, Debug)]
pub(crate) enum ListKind {
    /// Items are unique by value.
    Set,
    /// Items are identified by these fields (`x-kubernetes-list-map-keys`), whose names are escaped as in expressions.
    Map(Vec<String>),
}

/// The list types of the lists in variables, by the address of the list. Valid only while the variables live.
///
/// Values do not carry their schema. The address is a key without extra storage; the `Arc` in the
/// variable keeps the list alive and in place.
#[derive(Debug, Default)]
pub(crate) struct Kinds(HashMap<usize, ListKind>);

impl Kinds {
    /// Records the type of a list.
    pub(crate) fn add(&mut self, items: &Arc<Vec<Cel>>, kind: &ListKind) {
        self.0.insert(Arc::as_ptr(items).addr(), kind.clone());
    }

    /// Forgets all lists. Called before the next value is created: a freed list's address may be reused by an unrelated
    /// one.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the type of a list; `None` for atomic lists and lists that expressions create.
    fn list_kind(&self, items: &Arc<Vec<Cel>>) -> Option<&ListKind> {
        self.0.get(&Arc::as_ptr(items).addr())
    }

    /// Returns `true` if two values are equal, by the list types of the lists within them.
    ///
    /// Numbers of different types are equal if their values are. Maps are equal without regard to the order.
    pub(super) fn equal(&self, left: &Cel, right: &Cel) -> bool {
        match (left, right) {
            (Cel::List(left), Cel::List(right)) => left.len() == right.len() && self.equal_items(left, right),
            (Cel::Map(left), Cel::Map(right)) => {
                let same =
                    |(key, value): (&Key, &Cel)| right.map.get(key).is_some_and(|right| self.equal(value, right));
                left.map.len() == right.map.len() && left.map.iter().all(same)
            }
            _ => left == right,
        }
    }

    /// Compares two lists of equal length, by the type of the left one. It suffices that each right item is in the left
    /// list: items of a set are unique.
    fn equal_items(&self, left: &Arc<Vec<Cel>>, right: &[Cel]) -> bool {
        match self.list_kind(left) {
            None => left.iter().zip(right).all(|(left, right)| self.equal(left, right)),
            Some(ListKind::Set) => {
                let texts: HashSet<String> = left.iter().map(text).collect();
                right.iter().all(|item| texts.contains(&text(item)))
            }
            Some(ListKind::Map(fields)) => {
                let by_key: HashMap<String, &Cel> = left.iter().map(|item| (key(item, fields), item)).collect();
                right.iter().all(|item| by_key.get(&key(item, fields)).is_some_and(|own| self.equal(own, item)))
            }
        }
    }

    /// Returns the concatenation of two lists. If the left one is a set or a map, an item of the right one replaces the
    /// item with the same key.
    ///
    /// Replaced items keep their position, new ones are appended. If the left list has no type, the lists are just
    /// joined.
    pub(super) fn concat(&self, left: &Arc<Vec<Cel>>, right: &[Cel]) -> Vec<Cel> {
        let mut items = left.as_ref().clone();
        let Some(kind) = self.list_kind(left) else {
            items.extend_from_slice(right);
            return items;
        };
        let key = |item: &Cel| match kind {
            ListKind::Set => text(item),
            ListKind::Map(fields) => key(item, fields),
        };
        let mut places: HashMap<String, usize> =
            items.iter().enumerate().map(|(index, item)| (key(item), index)).collect();
        for item in right {
            if let Some(&index) = places.get(&key(item)) {
                items[index] = item.clone();
                continue;
            }
            // Only sets record new items. A key that occurs twice in the right list of a map is kept twice:
            // `unstructuredMapList.Add` (`k8s.io/apiserver/pkg/cel/common/valuesunstructured.go`) looks up keys of the
            // left list only.
            if matches!(kind, ListKind::Set) {
                places.insert(key(item), items.len());
            }
            items.push(item.clone());
        }
        items
    }
}

/// Returns the identity of a map-list item: the values of its key fields. Absent ones are empty, and so is the identity
/// of an item that is not a map.
fn key(item: &Cel, fields: &[String]) -> String {
    let Cel::Map(item) = item else { return String::new() };
    let field = |name: &String| item.map.get(&Key::String(Arc::new(name.clone()))).map_or_else(String::new, text);
    fields.iter().map(field).collect::<Vec<_>>().join(",")
}

/// Returns a canonical string that is the same for equal values. Map entries are sorted, because maps have no order.
fn text(value: &Cel) -> String {
    match value {
        Cel::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Cel::Map(map) => {
            let entries: BTreeSet<String> =
                map.map.iter().map(|(key, value)| format!("{key:?}:{}", text(value))).collect();
            format!("{{{}}}", entries.into_iter().collect::<Vec<_>>().join(","))
        }
        _ => format!("{value:?}"),
    }
}
