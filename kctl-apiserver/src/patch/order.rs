//! The order of a list after a strategic merge patch, from the order of the patch and that of the stored list.
//!
//! Upstream: `normalizeElementOrder` in `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`.

use serde_json::{Map, Value};

use crate::decode::misfit;

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
    fn handle(&self, item: &Value) -> Value {
        match (self, item) {
            (Self::Key(key), Value::Object(fields)) => {
                let part = fields.get_key_value(*key).map(|(name, value)| (name.clone(), value.clone()));
                Value::Object(part.into_iter().collect())
            }
            _ => item.clone(),
        }
    }

    /// Returns the index of an item in a list. `None` also for an item without an identity.
    pub(super) fn position(&self, item: &Value, list: &[Value]) -> Option<usize> {
        let identity = self.identify(item)?;
        list.iter().position(|other| self.identify(other) == Some(identity))
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

    /// Returns `true` if an item is in a list. Items after the first match are not checked
    /// (`findMapInSliceBasedOnKeyValue`).
    fn is_in(&self, item: &Value, list: &[Value]) -> Result<bool, String> {
        let Self::Key(key) = self else { return Ok(list.contains(item)) };
        let own_fields = fields(item)?;
        let value = own_fields.get(*key).ok_or_else(|| no_merge_key(own_fields, key))?;
        for (index, other) in list.iter().enumerate() {
            let Value::Object(other) = other else { return Err(format!("value for key {index} is not a map")) };
            if other.get(*key) == Some(value) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the fields of an item that must be an object.
pub(super) fn fields(item: &Value) -> Result<&Map<String, Value>, String> {
    item.as_object().ok_or_else(|| misfit("item of a list that is merged by key", "an object", item))
}

/// Returns the error of an item without its merge key.
pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> String {
    format!("item of a merged list lacks its merge key {key}: {}", Value::Object(item.clone()))
}

/// The identities of the stored list, in its order. Upstream deletes and appends in the backing array of the list, and
/// later reads it with its old length: an item that is appended after a delete takes the place of a later one. This
/// type imitates that.
pub(super) struct ServerOrder {
    /// The backing array; its length does not change.
    items: Vec<Value>,
    /// The length of the list within `items`. Invariant: at most the length of `items`.
    n_left: usize,
}

impl ServerOrder {
    /// Copies the order of a list.
    pub(super) fn copy(list: &[Value], by: Identity) -> Self {
        let items: Vec<Value> = list.iter().map(|item| by.handle(item)).collect();
        Self { n_left: items.len(), items }
    }

    /// Returns the present list.
    pub(super) fn left(&self) -> &[Value] {
        &self.items[..self.n_left]
    }

    /// Returns the list with its old length.
    pub(super) fn whole(self) -> Vec<Value> {
        self.items
    }

    /// Deletes an item. Later items move forward.
    pub(super) fn remove(&mut self, index: usize) {
        debug_assert!(index < self.n_left, "an item that was deleted is not deleted again");
        self.items[index..self.n_left].rotate_left(1);
        self.n_left -= 1;
        // The backing array has the last item twice then.
        if index < self.n_left {
            self.items[self.n_left] = self.items[self.n_left - 1].clone();
        }
    }

    /// Appends an item, if the backing array has room for it. A full array means that upstream would allocate a new
    /// one, which it does not read later.
    pub(super) fn push(&mut self, item: &Value, by: Identity) {
        if let Some(slot) = self.items.get_mut(self.n_left) {
            *slot = by.handle(item);
            self.n_left += 1;
        }
        debug_assert!(self.n_left <= self.items.len(), "a list is a part of its backing array");
    }
}

/// Orders the items of a list. Items of the patch keep the order of the patch, and items that only the server has keep
/// the order of the server. An item of the server goes before the first item of the patch that followed it in the
/// stored list. New items of the patch go first. `items` is the merged list, `server` the order before the patch.
///
/// # Errors
/// Fails if an item has no identity.
pub(super) fn arrange(
    items: Vec<Value>,
    patch: &[Value],
    server: &[Value],
    by: Identity,
) -> Result<Vec<Value>, String> {
    let (mut of_patch, mut of_server) = (Vec::new(), Vec::new());
    for item in items {
        if by.is_in(&item, patch)? { &mut of_patch } else { &mut of_server }.push(item);
    }
    let of_patch = sort_by_identity(of_patch, patch, by)?;
    let of_server = sort_by_identity(of_server, server, by)?;

    let mut arranged = Vec::with_capacity(of_patch.len() + of_server.len());
    let mut of_patch = of_patch.into_iter().peekable();
    let mut of_server = of_server.into_iter().peekable();
    while let (Some((_, ours)), Some((theirs, _))) = (of_server.peek(), of_patch.peek()) {
        let server_first = match (ours, by.position(theirs, server)) {
            (Some(ours), Some(theirs)) => *ours < theirs,
            _ => false,
        };
        arranged.extend(if server_first { of_server.next() } else { of_patch.next() });
    }
    arranged.extend(of_server);
    arranged.extend(of_patch);
    Ok(arranged.into_iter().map(|(item, _)| item).collect())
}

/// Returns items with their positions in a list, in the order of that list (`normalizeSliceOrder`). Upstream's
/// comparison puts an item that is not in the list before every other one, and also after it. The insertion here gives
/// the same order as upstream's sort.
fn sort_by_identity(items: Vec<Value>, order: &[Value], by: Identity) -> Result<Vec<(Value, Option<usize>)>, String> {
    by.check(&items)?;
    by.check(order)?;
    let with_position = |item: Value| {
        let position = by.position(&item, order);
        (item, position)
    };
    let mut placed: Vec<_> = items.into_iter().map(with_position).collect();
    if placed.iter().all(|(_, position)| position.is_some()) {
        placed.sort_by_key(|(_, position)| *position);
        return Ok(placed);
    }
    let is_less = |left: Option<usize>, right: Option<usize>| left.zip(right).is_none_or(|(left, right)| left < right);
    for end in 1..placed.len() {
        let mut index = end;
        while index > 0 && is_less(placed[index].1, placed[index - 1].1) {
            placed.swap(index, index - 1);
            index -= 1;
        }
    }
    Ok(placed)
}
