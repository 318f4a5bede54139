//! The order of a list after a strategic merge patch, from the orders of the patch and the stored list.
//!
//! Upstream: `normalizeElementOrder` in `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::decode::type_error;

/// The identity of list items.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity<'a> {
    /// Scalars: the item itself.
    Itself,
    /// Objects: the value of the merge key.
    Key(&'a str),
}

impl Identity<'_> {
    /// Returns the part of an item that identifies it: its merge key, or the item itself. `None` for an object without
    /// the merge key.
    pub(super) fn identify<'v>(&self, item: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Itself => Some(item),
            Self::Key(key) => item.get(key),
        }
    }

    /// Returns the item with only its identity. The order needs identities only, so the rest of the item is not copied.
    pub(super) fn handle(&self, item: &Value) -> Value {
        match (self, item) {
            (Self::Key(key), Value::Object(fields)) => {
                let part = fields.get_key_value(*key).map(|(name, value)| (name.clone(), value.clone()));
                Value::Object(part.into_iter().collect())
            }
            _ => item.clone(),
        }
    }

    /// Returns `true` if two items have the same identity (`mergeKeyValueEqual`).
    pub(super) fn is_same(&self, left: &Value, right: &Value) -> Result<bool, String> {
        let Self::Key(key) = self else { return Ok(left == right) };
        let (left, right) = (fields(left)?, fields(right)?);
        let key_of =
            |fields: &'_ Map<String, Value>| fields.get(*key).cloned().ok_or_else(|| no_merge_key(fields, key));
        Ok(key_of(left)? == key_of(right)?)
    }

    /// Checks that each item of a list has an identity (`validateMergeKeyInLists`).
    pub(super) fn check(&self, list: &[Value]) -> Result<(), String> {
        let Self::Key(key) = self else { return Ok(()) };
        for item in list {
            let fields = fields(item)?;
            if !fields.contains_key(*key) {
                return Err(no_merge_key(fields, key));
            }
        }
        Ok(())
    }
}

/// The first position of each identity in a list. An index, because a search for each item of a long list would take
/// quadratic time under the lock of the server.
pub(super) struct Positions<'a> {
    by: Identity<'a>,
    /// The positions by the JSON of the identity.
    first: HashMap<String, usize>,
}

impl<'a> Positions<'a> {
    /// Creates the index of a list. Items without an identity are left out.
    pub(super) fn of(list: &[Value], by: Identity<'a>) -> Self {
        let mut positions = Self { by, first: HashMap::with_capacity(list.len()) };
        for (position, item) in list.iter().enumerate() {
            positions.add(item, position);
        }
        positions
    }

    /// Adds an item at a position, unless its identity occurs before.
    pub(super) fn add(&mut self, item: &Value, position: usize) {
        if let Some(identity) = self.by.identify(item) {
            self.first.entry(identity.to_string()).or_insert(position);
        }
    }

    /// Returns the position of an item. `None` also for an item without an identity.
    pub(super) fn get(&self, item: &Value) -> Option<usize> {
        self.first.get(&self.by.identify(item)?.to_string()).copied()
    }
}

/// Returns the fields of an item that must be an object.
pub(super) fn fields(item: &Value) -> Result<&Map<String, Value>, String> {
    item.as_object().ok_or_else(|| type_error("item of a list that is merged by key", "an object", item))
}

/// Returns the error of an item without its merge key.
pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> String {
    format!("item of a merged list lacks its merge key {key}: {}", Value::Object(item.clone()))
}

/// Orders the items of a list. Items of the patch keep the order of the patch, and items that only the server has keep
/// the order of the server. An item of the server goes before the first item of the patch that followed it in the
/// stored list. New items of the patch go first. `items` is the merged list, `server` the order before the patch.
///
/// # Errors
/// Fails if an item has no identity.
pub(super) fn order_items(
    items: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    by: Identity,
) -> Result<Vec<Value>, String> {
    for list in [&items[..], patch, server] {
        by.check(list)?;
    }
    let (in_patch, in_server) = (Positions::of(patch, by), Positions::of(server, by));
    let (patch_items, server_items): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| in_patch.get(item).is_some());
    let patch_items = sort_by_identity(patch_items, &in_patch);
    let server_items = sort_by_identity(server_items, &in_server);

    let mut arranged = Vec::with_capacity(patch_items.len() + server_items.len());
    let mut patch_items = patch_items.into_iter().peekable();
    let mut server_items = server_items.into_iter().peekable();
    while let (Some((ours, _)), Some((_, theirs))) = (server_items.peek(), patch_items.peek()) {
        let places = ours.zip(in_server.get(theirs));
        let server_first = places.is_some_and(|(ours, theirs)| ours < theirs);
        arranged.extend(if server_first { server_items.next() } else { patch_items.next() });
    }
    arranged.extend(server_items);
    arranged.extend(patch_items);
    Ok(arranged.into_iter().map(|(_, item)| item).collect())
}

/// Returns items with their positions in a list, in the order of that list. Each item is inserted behind the last one
/// that the list has at the same or an earlier position. An item that is not in the list goes to the front. If all are
/// in the list, that is a stable sort.
///
/// The insertion gives the order of upstream's `normalizeSliceOrder`, whose comparison puts an item that is not in the
/// list before every other one, and also after it. Such items exist only if `$setElementOrder` is empty or leaves out an
/// item with a directive.
fn sort_by_identity(items: Vec<Value>, order: &Positions<'_>) -> Vec<(Option<usize>, Value)> {
    let placed: Vec<(Option<usize>, Value)> = items.into_iter().map(|item| (order.get(&item), item)).collect();
    // Indexes of the items that are inserted directly behind each item, and in `left`, at the front. Of several, the
    // last one comes first.
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); placed.len()];
    let mut left: Vec<usize> = Vec::new();
    let mut last_at: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, (position, _)) in placed.iter().enumerate() {
        match position.and_then(|position| last_at.range(..=position).next_back()) {
            Some((_, before)) => behind[*before].push(index),
            None => left.push(index),
        }
        last_at.extend(position.map(|position| (position, index)));
    }
    let mut placed: Vec<_> = placed.into_iter().map(Some).collect();
    let mut sorted = Vec::with_capacity(placed.len());
    while let Some(index) = left.pop() {
        sorted.extend(placed[index].take());
        left.append(&mut behind[index]);
    }
    sorted
}
