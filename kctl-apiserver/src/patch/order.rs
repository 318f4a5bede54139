//! The order of merged lists: reads the items of a patched list, the order of the patch and the order of the stored
//! list, and hands on the items in the order of the real server.
//!
//! Behaviour: `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, `normalizeElementOrder`.

use serde_json::Value;

use crate::go;

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

    /// Where an item stands in a list.
    pub(super) fn position(&self, item: &Value, list: &[Value]) -> Option<usize> {
        let wanted = self.of(item)?;
        list.iter().position(|other| self.of(other) == Some(wanted))
    }

    /// Checks that every item of a list can be told apart.
    pub(super) fn check(&self, list: &[Value]) -> Result<(), String> {
        let Self::Key(key) = self else { return Ok(()) };
        for (idx, item) in list.iter().enumerate() {
            let Value::Object(fields) = item else { return Err(format!("value for key {idx} is not a map")) };
            if !fields.contains_key(*key) {
                return Err(no_merge_key(fields, key));
            }
        }
        Ok(())
    }
}

/// The text for an item that cannot be told apart.
pub(super) fn no_merge_key(item: &serde_json::Map<String, Value>, key: &str) -> String {
    format!("map: {} does not contain declared merge key: {key}", go::map(item))
}

/// Puts the items of a list in order.
///
/// Items of the patch keep the order of the patch, items that only the server has keep the order of the server. An item
/// of the server goes before the first item of the patch that stood after it; new items of the patch go first.
pub(super) fn arrange(items: Vec<Value>, patch: &[Value], server: &[Value], by: Identity) -> Vec<Value> {
    let (mut of_patch, mut of_server): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| by.position(item, patch).is_some());
    of_patch.sort_by_key(|item| by.position(item, patch));
    of_server.sort_by_key(|item| by.position(item, server).unwrap_or(usize::MAX));

    let mut arranged = Vec::with_capacity(of_patch.len() + of_server.len());
    let mut of_patch = of_patch.into_iter().peekable();
    let mut of_server = of_server.into_iter().peekable();
    while let (Some(ours), Some(theirs)) = (of_server.peek(), of_patch.peek()) {
        let server_first = match (by.position(ours, server), by.position(theirs, server)) {
            (Some(ours), Some(theirs)) => ours < theirs,
            _ => false,
        };
        arranged.extend(if server_first { of_server.next() } else { of_patch.next() });
    }
    arranged.extend(of_server);
    arranged.extend(of_patch);
    arranged
}
