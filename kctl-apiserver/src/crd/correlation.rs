//! Correlation of values across an update. Pairs the values of an object with the values of the old one and finds the
//! unchanged ones. Their errors are ratcheted (dropped), so that a schema may become stricter than its stored objects.
//!
//! Upstream: `pkg/cel/common/equality.go` of apiserver.
//!
//! A value is correlated if its path leads to exactly one old value: fields by name, items of map
//! lists by their keys. Items of atomic lists and sets have no identity, so they are never correlated. Their errors are
//! never ratcheted unless the whole list is unchanged.

use std::{cell::OnceCell, collections::HashMap};

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// A value and its correlated old value.
#[derive(Clone, Copy)]
pub(super) struct CorrelatedValue<'a> {
    /// The schema of both values.
    schema: Schema<'a>,
    /// The new value.
    pub(super) value: &'a Value,
    /// The value at the same place in the stored object, converted to the version of the request.
    old: &'a Value,
}

impl<'a> CorrelatedValue<'a> {
    /// Pairs a value with its old value; both belong to the schema.
    ///
    /// The caller guarantees that both values come from the same path.
    pub(super) fn new(schema: Schema<'a>, value: &'a Value, old: &'a Value) -> Self {
        Self { schema, value, old }
    }

    /// Returns a field that both objects have, if the schema declares it.
    ///
    /// `None` if one of the objects lacks the field, or if the value is not an object. Values of a map are fields too.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let schema = self.schema.property(name).or_else(|| self.schema.additional_properties())?;
        Some(Self::new(schema, self.value.as_object()?.get(name)?, self.old.as_object()?.get(name)?))
    }

    /// Correlates the items of the list. Only items of map lists (`x-kubernetes-list-type: map`) have an old value, by
    /// their keys.
    ///
    /// The result has an entry per new item, or is empty if one of the two is not a list. If several old items have the
    /// same keys, the first one is used. The index costs one pass over the old list.
    pub(super) fn items(self) -> Vec<Option<Self>> {
        let (Some(items), Some(old)) = (self.value.as_array(), self.old.as_array()) else { return Vec::new() };
        let (Some(schema), ListType::Map(names)) = (self.schema.items(), self.schema.list_type()) else {
            return vec![None; items.len()];
        };
        let mut by_key = HashMap::with_capacity(old.len());
        for old_item in old {
            by_key.entry(keys(old_item, names)).or_insert(old_item);
        }
        let past = |item| by_key.get(&keys(item, names)).map(|old| Self::new(schema, item, old));
        items.iter().map(past).collect()
    }

    /// Returns `true` if the value equals its old value. The order of map lists does not matter; fields that the schema
    /// does not declare count as changed.
    ///
    /// The walk stops at the first difference. The cost of a call is bounded by the size of the new value.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.value, self.old) {
            (Value::Array(items), Value::Array(old)) => {
                let is_keyed = matches!(self.schema.list_type(), ListType::Map(_));
                let same = |past: &Option<Self>| past.is_some_and(Self::is_unchanged);
                items.len() == old.len() && if is_keyed { self.items().iter().all(same) } else { items == old }
            }
            (Value::Object(fields), Value::Object(old)) => {
                let same = |name: &String| self.field(name).is_some_and(Self::is_unchanged);
                fields.len() == old.len() && fields.keys().all(same)
            }
            (value, old) => value == old,
        }
    }
}

/// Returns the key fields of a map-list item as a string to look it up by. Absent ones become `null`.
fn keys(item: &Value, names: &[Value]) -> String {
    let keys = names.iter().filter_map(Value::as_str).map(|name| &item[name]);
    keys.map(Value::to_string).collect::<Vec<_>>().join(",")
}

/// The correlated values that decide whether the CEL rules at a place are ratcheted.
#[derive(Clone, Copy, Default)]
pub(super) struct Lineage<'a> {
    /// The value itself, if it could be correlated.
    here: Option<CorrelatedValue<'a>>,
    /// The nearest correlated ancestor. If it is unchanged, so is everything below it.
    above: Option<Ancestor<'a>>,
}

/// A correlated value that decides for values below it.
#[derive(Clone, Copy)]
struct Ancestor<'a> {
    /// The ancestor with its old value.
    past: CorrelatedValue<'a>,
    /// The result of the comparison, which is the same for all values below. A list may have hundreds of thousands of
    /// items that fail a rule; comparing the list for each of them would take quadratic time.
    is_unchanged: &'a OnceCell<bool>,
}

impl<'a> Lineage<'a> {
    /// Creates the lineage of the root object.
    ///
    /// `None` on creation, where nothing is ratcheted.
    pub(super) fn root(past: Option<CorrelatedValue<'a>>) -> Self {
        Self { here: past, above: None }
    }

    /// Returns the lineage of a field. A new field has the object as its ancestor. All fields of an object get the same
    /// `compared`, which starts empty.
    ///
    /// A field whose object could not be correlated keeps the lineage of that object: the ancestor decides.
    /// `apiVersion` and `kind` of the root get an empty lineage, so that their errors are always reported.
    pub(super) fn field(self, name: &str, compared: &'a OnceCell<bool>) -> Self {
        let Some(here) = self.here else { return self };
        // Both objects are converted to one version, so these fields cannot show whether they changed.
        if self.above.is_none() && ["apiVersion", "kind"].contains(&name) {
            return Self::default();
        }
        Self { here: here.field(name), above: Some(Ancestor { past: here, is_unchanged: compared }) }
    }

    /// Returns the lineages of `n` items. `compared` starts empty.
    ///
    /// The result always has `n` entries, also where the old value is not a list.
    pub(super) fn items(self, n: usize, compared: &'a OnceCell<bool>) -> Vec<Self> {
        let Some(here) = self.here else { return vec![self; n] };
        let mut items = here.items();
        items.resize(n, None);
        let above = Some(Ancestor { past: here, is_unchanged: compared });
        items.into_iter().map(|item| Self { here: item, above }).collect()
    }

    /// Returns `true` if the value, or if it could not be correlated its ancestor, is unchanged.
    ///
    /// `false` on creation. The comparison runs only for a rule that failed.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.here, self.above) {
            (Some(here), _) => here.is_unchanged(),
            (None, Some(above)) => *above.is_unchanged.get_or_init(|| above.past.is_unchanged()),
            (None, None) => false,
        }
    }
}
