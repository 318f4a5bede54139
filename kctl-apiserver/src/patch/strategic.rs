//! Strategic merge patch of built-in kinds.
//!
//! The schema defines how each list is merged (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`). Keys
//! with a `$` are directives. Lists keep the order that `$setElementOrder` gives; see `order.rs`.
//!
//! Upstream: `StrategicMergeMapPatchUsingLookupPatchMeta` in `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`.

use std::{collections::HashSet, mem};

use serde_json::{Map, Value};

use super::order::{self, Identity, Positions};
use crate::{decode::type_error, schema::Schema};

/// Fields of a JSON object.
type Fields = Map<String, Value>;

/// The key of a directive: `replace` or `delete`. In an object it applies to the object. In an item of a list, `delete`
/// applies to that item, and `replace` to the list.
const DIRECTIVE: &str = "$patch";
/// The key that lists the fields to keep.
pub(super) const RETAIN_KEYS: &str = "$retainKeys";
/// The prefix of keys that set the order of a list.
pub(super) const SET_ORDER: &str = "$setElementOrder/";
/// The prefix of keys that delete items from a list of scalars.
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";

/// The reason why a strategic merge patch was not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StrategicMergeError {
    /// `$retainKeys` is not a list, or does not list a field of the patch. kube-apiserver responds with 400 to it.
    #[error("$retainKeys: must list all other fields of the patch")]
    BadRetainKeys,
    /// A directive or a list does not fit. kube-apiserver responds with 500 to it.
    #[error("{0}")]
    Rejected(String),
}

impl From<String> for StrategicMergeError {
    fn from(why: String) -> Self {
        Self::Rejected(why)
    }
}

/// The result of a step of a strategic merge.
type Merge<T> = Result<T, StrategicMergeError>;

/// Merges a strategic merge patch into an object. Without a schema, maps are merged and lists are replaced. A null in
/// the patch deletes the field, and is dropped if the object does not have it. Where kube-apiserver visits a Go map in
/// random order, deletions from a list come before additions to it.
///
/// # Errors
/// Returns a [`StrategicMergeError`]. The object may be patched in part, so discard it.
pub(crate) fn strategic_merge(schema: Option<Schema<'_>>, original: &mut Value, patch: &Value) -> Merge<()> {
    let Value::Object(patch) = patch else { return Err(type_error("patch", "an object", patch).into()) };
    let fields = match original.take() {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    };
    *original = Value::Object(merge_map(schema, fields, patch)?);
    Ok(())
}

/// Merges a patch into an object. A `$patch` directive decides about the whole object. Otherwise `$retainKeys` is
/// applied first, then lists with an order, then all other fields.
fn merge_map(schema: Option<Schema<'_>>, mut original: Fields, patch: &Fields) -> Merge<Fields> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return Ok(follow_directive(directive, patch)?);
    }
    retain_keys(&mut original, patch)?;
    for (key, order) in patch {
        if let Some(name) = key.strip_prefix(SET_ORDER) {
            merge_ordered_list(schema, &mut original, name, order, patch.get(name))?;
        }
    }
    for (key, value) in patch {
        let is_done = patch.contains_key(&format!("{SET_ORDER}{key}"));
        if is_done || key == RETAIN_KEYS || key.starts_with(SET_ORDER) {
            continue;
        }
        match key.strip_prefix(DELETE_FROM_LIST) {
            Some(name) => delete_from_list(&mut original, name, value)?,
            None => merge_field(schema, &mut original, key, value)?,
        }
    }
    Ok(original)
}

/// Returns the object that a `$patch` directive demands. Any other directive than `replace` and `delete` is an error.
fn follow_directive(directive: &Value, patch: &Fields) -> Result<Fields, String> {
    match directive.as_str() {
        // The fields are taken as they are: other directives become fields that the type does not have.
        Some("replace") => {
            let fields = patch.iter().filter(|(name, _)| *name != DIRECTIVE);
            Ok(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Some("delete") => Ok(Fields::new()),
        _ => Err(unknown_directive(directive)),
    }
}

/// Returns the error of an unknown directive.
fn unknown_directive(directive: &Value) -> String {
    format!("{DIRECTIVE}: must be replace or delete, found {directive}")
}

/// Removes the fields that `$retainKeys` does not list. Every field of the patch must be listed, or the patch is
/// malformed. Fields of the object that are not listed are removed.
fn retain_keys(original: &mut Fields, patch: &Fields) -> Merge<()> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or(StrategicMergeError::BadRetainKeys)?;
    let kept: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    for (name, value) in patch {
        if !value.is_null() && !is_directive(name) && !kept.contains(name.as_str()) {
            return Err(StrategicMergeError::BadRetainKeys);
        }
    }
    original.retain(|name, _| kept.contains(name.as_str()));
    Ok(())
}

/// Returns `true` for a key that is not a field.
fn is_directive(name: &str) -> bool {
    name == DIRECTIVE || name == RETAIN_KEYS || name.starts_with(SET_ORDER) || name.starts_with(DELETE_FROM_LIST)
}

/// Merges one field. A field without a schema is merged like a map and replaced like a list.
fn merge_field(schema: Option<Schema<'_>>, original: &mut Fields, name: &str, patch: &Value) -> Merge<()> {
    let schema = schema.and_then(|schema| schema.field(name));
    match (original.get_mut(name), patch) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Object(old)), Value::Object(new)) => {
            let is_replaced = schema.is_some_and(|schema| schema.has_patch_strategy("replace"));
            *old = if is_replaced { new.clone() } else { merge_map(schema, mem::take(old), new)? };
        }
        (Some(Value::Array(old)), Value::Array(new)) => *old = merge_list(schema, mem::take(old), new)?.0,
        (Some(Value::Null) | None, _) => original.extend(additions(patch).map(|value| (name.to_owned(), value))),
        // A patch of only a directive does not change a value of another type.
        (Some(old), _) => additions(patch).into_iter().for_each(|value| *old = value),
    }
    Ok(())
}

/// Returns the value that a patch adds where the object had none. An object with `$patch` is never added. All other
/// directives are kept, as fields that the type does not have (`removeDirectives`).
fn additions(patch: &Value) -> Option<Value> {
    match patch {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let remaining = fields.iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(remaining.filter_map(|(name, value)| Some((name.clone(), additions(value)?))).collect()))
        }
        Value::Array(items) => Some(items.iter().filter_map(additions).collect()),
        scalar => Some(scalar.clone()),
    }
}

/// Returns the merged list, and the list that upstream then takes for the old order: it modifies that list while it
/// merges.
fn merge_list(schema: Option<Schema<'_>>, old: Vec<Value>, new: &[Value]) -> Merge<(Vec<Value>, Vec<Value>)> {
    let Some(list) = schema.filter(|schema| schema.has_patch_strategy("merge")) else {
        return Ok((new.to_vec(), old));
    };
    let Some(first) = old.first().or(new.first()) else { return Ok((old, Vec::new())) };
    check_types(&old, new)?;
    if first.is_object() {
        let key = list.patch_merge_key().ok_or_else(|| "cannot merge lists without merge key".to_owned())?;
        return merge_objects(list.items(), key, old, new);
    }
    let mut seen = HashSet::new();
    let united: Vec<Value> = old.iter().chain(new).filter(|item| seen.insert(item.to_string())).cloned().collect();
    Ok((order::order_items(united, new, &old, Identity::Itself)?, old))
}

/// Checks that the items of a list and of its patch are of one type (`sliceElementType`).
fn check_types(old: &[Value], new: &[Value]) -> Result<(), String> {
    let mut types = old.iter().chain(new).map(|item| (std::mem::discriminant(item), item.is_f64()));
    let first = types.next();
    if types.all(|other| Some(other) == first) {
        return Ok(());
    }
    Err("items of a merged list must be of one type".to_owned())
}

/// Merges a list of objects by their merge key. Returns the changed items, and the order of the server. Deletions come
/// first, then replacements of the whole list, then merges and additions.
///
/// The order of the server is the list of the remaining items and then of the first additions, up to the old length.
/// Upstream deletes and appends in the backing array of the stored list, and `$setElementOrder` reads that array with the
/// old length. Where upstream has more deletions than additions, the end of the array holds copies of older items. They
/// change nothing: an item counts at its first position, and a deleted item is not in the merged list.
fn merge_objects(
    schema: Option<Schema<'_>>,
    key: &str,
    mut old: Vec<Value>,
    new: &[Value],
) -> Merge<(Vec<Value>, Vec<Value>)> {
    let by = Identity::Key(key);
    let n_stored = old.len();
    let mut changes = Vec::new();
    let mut all_deleted = HashSet::new();
    let mut is_replaced = false;
    for item in new {
        let Value::Object(fields) = item else { continue };
        match fields.get(DIRECTIVE) {
            None => changes.push(item.clone()),
            Some(directive) if directive == "delete" => {
                let deleted = fields.get(key).ok_or_else(|| order::no_merge_key(fields, key))?;
                all_deleted.insert(deleted.to_string());
            }
            Some(directive) if directive == "replace" => is_replaced = true,
            Some(directive) => return Err(unknown_directive(directive).into()),
        }
    }
    if !all_deleted.is_empty() {
        old.retain(|item| by.identify(item).is_none_or(|identity| !all_deleted.contains(&identity.to_string())));
    }
    if is_replaced {
        // Upstream arranges the new list by itself: it moves items with the same key together.
        let order = changes.clone();
        return Ok((order::order_items(changes, &[], &order, by)?, old));
    }
    by.check(&changes)?;
    let n_kept = old.len();
    let mut positions = Positions::of(&old, by);
    for change in &changes {
        let Value::Object(fields) = change else { continue };
        if let Some(Value::Object(found)) = positions.get(change).and_then(|idx| old.get_mut(idx)) {
            *found = merge_map(schema, mem::take(found), fields)?;
        } else {
            positions.add(change, old.len());
            old.push(change.clone());
        }
    }
    let server: Vec<Value> = old.iter().take(n_stored).map(|item| by.handle(item)).collect();
    Ok((order::order_items(old, &changes, &server[..n_kept], by)?, server))
}

/// Merges a list with `$setElementOrder`. The order list may name items that the patch does not change. Without items
/// on both sides the order has no effect.
fn merge_ordered_list(
    schema: Option<Schema<'_>>,
    original: &mut Fields,
    name: &str,
    order: &Value,
    patch: Option<&Value>,
) -> Merge<()> {
    let order = as_list(order)?;
    let old = original.get(name).map(as_list).transpose()?;
    let new = patch.map(as_list).transpose()?;
    let Some(schema) = schema.and_then(|schema| schema.property(name)) else {
        return Err(format!("{SET_ORDER}{name}: the type has no field {name}").into());
    };
    let by = schema.patch_merge_key().map_or(Identity::Itself, Identity::Key);
    check_order(new.map_or(&[], Vec::as_slice), order, by)?;
    if old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty) && (old.is_some() || new.is_some()) {
        return Err(format!("{SET_ORDER}{name}: there are no items to order").into());
    }
    let (merged, server) = match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), None) => (old.clone(), old.clone()),
        (None, Some(new)) => (new.iter().filter_map(additions).collect(), Vec::new()),
        (Some(old), Some(new)) => merge_list(Some(schema), old.clone(), new)?,
    };
    let arranged = order::order_items(merged, order, &server, by)?;
    original.insert(name.to_owned(), Value::Array(arranged));
    Ok(())
}

/// Returns a list, or an error.
fn as_list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| type_error("value of a merged list", "a list", value))
}

/// Checks that the items of a patch are in the order of its `$setElementOrder` list (`validatePatchWithSetOrderList`).
/// An item with a directive other than `delete` may be at any position before the end of the order.
fn check_order(new: &[Value], order: &[Value], by: Identity) -> Result<(), String> {
    if new.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut left = Vec::new();
    for item in new {
        let directive = match by {
            Identity::Itself => None,
            Identity::Key(_) => order::fields(item)?.get(DIRECTIVE),
        };
        if directive.is_none_or(|directive| directive != "delete") {
            left.push((item, directive.is_some()));
        }
    }
    let mut left = left.into_iter().peekable();
    for other in order {
        while left.next_if(|(_, is_special)| *is_special).is_some() {}
        if let Some((item, _)) = left.peek()
            && by.is_same(item, other)?
        {
            left.next();
        }
    }
    if left.peek().is_some() {
        return Err("items of the patch must be in the order of their $setElementOrder list".to_owned());
    }
    Ok(())
}

/// Deletes scalars from a list. All equal scalars are deleted. A null deletes the whole list.
fn delete_from_list(original: &mut Fields, name: &str, patch: &Value) -> Result<(), String> {
    match (original.get_mut(name), patch) {
        (_, Value::Null) => {
            original.remove(name);
        }
        (Some(Value::Array(old)), Value::Array(deleted)) => {
            check_types(old, deleted)?;
            let deleted: HashSet<String> = deleted.iter().map(Value::to_string).collect();
            old.retain(|item| !deleted.contains(&item.to_string()));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
