//! The order of merged lists: reads the items of a patched list, the order of the patch and the order of the stored
//! list, and hands on the items in the order of the real server.
//!
//! Behaviour: `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, `normalizeElementOrder`.

use serde_json::{Map, Value};

use crate::decode::misfit;

/// What tells the items of a list apart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity<'a> {
    /// Scalars: the item itself.
    Itself,
    /// Objects: the value of the merge key.
    Key(&'a str),
}

impl Identity<'_> {
    /// The part of an item that tells it apart.
    pub(super) fn of<'v>(&self, item: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Itself => Some(item),
            Self::Key(key) => item.get(key),
        }
    }

    /// An item with nothing but what tells it apart.
    fn handle(&self, item: &Value) -> Value {
        match (self, item) {
            (Self::Key(key), Value::Object(fields)) => {
                let part = fields.get_key_value(*key).map(|(name, value)| (name.clone(), value.clone()));
                Value::Object(part.into_iter().collect())
            }
            _ => item.clone(),
        }
    }

    /// Where an item stands in a list.
    pub(super) fn position(&self, item: &Value, list: &[Value]) -> Option<usize> {
        let wanted = self.of(item)?;
        list.iter().position(|other| self.of(other) == Some(wanted))
    }

    /// Whether two items are the same one (`mergeKeyValueEqual`).
    pub(super) fn is_same(&self, left: &Value, right: &Value) -> Result<bool, String> {
        let Self::Key(key) = self else { return Ok(left == right) };
        let (left, right) = (fields(left)?, fields(right)?);
        let of = |fields: &'_ Map<String, Value>| fields.get(*key).cloned().ok_or_else(|| no_merge_key(fields, key));
        Ok(of(left)? == of(right)?)
    }

    /// Checks that every item of a list can be told apart (`validateMergeKeyInLists`).
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

    /// Whether an item is in a list; items behind it are not looked at (`findMapInSliceBasedOnKeyValue`).
    fn is_in(&self, item: &Value, list: &[Value]) -> Result<bool, String> {
        let Self::Key(key) = self else { return Ok(list.contains(item)) };
        let known = fields(item)?;
        let wanted = known.get(*key).ok_or_else(|| no_merge_key(known, key))?;
        for (index, other) in list.iter().enumerate() {
            let Value::Object(other) = other else { return Err(format!("value for key {index} is not a map")) };
            if other.get(*key) == Some(wanted) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The fields of an item that has to have some.
pub(super) fn fields(item: &Value) -> Result<&Map<String, Value>, String> {
    item.as_object().ok_or_else(|| misfit("item of a list that is merged by key", "an object", item))
}

/// The text for an item that cannot be told apart.
pub(super) fn no_merge_key(item: &Map<String, Value>, key: &str) -> String {
    format!("item of a merged list lacks its merge key {key}: {}", Value::Object(item.clone()))
}

/// What tells the items of the stored list apart, in their order.
///
/// The real server deletes and appends in the list itself, and has its old length in mind: what is appended after a delete is
/// in the place of what was behind.
pub(super) struct ServerOrder {
    items: Vec<Value>,
    n_left: usize,
}

impl ServerOrder {
    pub(super) fn of(list: &[Value], by: Identity) -> Self {
        let items: Vec<Value> = list.iter().map(|item| by.handle(item)).collect();
        Self { n_left: items.len(), items }
    }

    /// Those that are left.
    pub(super) fn left(&self) -> &[Value] {
        &self.items[..self.n_left]
    }

    /// As many as there were.
    pub(super) fn whole(self) -> Vec<Value> {
        self.items
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.items[index..self.n_left].rotate_left(1);
        self.n_left -= 1;
        // The last one is there twice then.
        if index < self.n_left {
            self.items[self.n_left] = self.items[self.n_left - 1].clone();
        }
    }

    pub(super) fn push(&mut self, item: &Value, by: Identity) {
        if let Some(place) = self.items.get_mut(self.n_left) {
            *place = by.handle(item);
            self.n_left += 1;
        }
    }
}

/// Puts the items of a list in order.
///
/// Items of the patch keep the order of the patch, items that only the server has keep the order of the server. An item
/// of the server goes before the first item of the patch that stood after it; new items of the patch go first.
///
/// # Errors
/// An item that cannot be told apart.
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
    let of_patch = sorted(of_patch, patch, by)?;
    let of_server = sorted(of_server, server, by)?;

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

/// Items with their positions in a list, in its order (`normalizeSliceOrder`).
///
/// To the real server an item that is not in the list is less than every other one, and greater too: what its sort makes of that is
/// what insertion makes of it.
fn sorted(items: Vec<Value>, order: &[Value], by: Identity) -> Result<Vec<(Value, Option<usize>)>, String> {
    by.check(&items)?;
    by.check(order)?;
    let place = |item: Value| {
        let at = by.position(&item, order);
        (item, at)
    };
    let mut placed: Vec<_> = items.into_iter().map(place).collect();
    if placed.iter().all(|(_, at)| at.is_some()) {
        placed.sort_by_key(|(_, at)| *at);
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
