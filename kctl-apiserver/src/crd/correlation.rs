//! Correlation of values across an update. Pairs the values of an object with those of the old one and finds the
//! unchanged ones: their errors are ratcheted (dropped), so that a schema may become stricter than its stored objects.
//!
//! Upstream: `pkg/cel/common/equality.go` of apiserver.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// A value and its correlated old value.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    schema: Schema<'a>,
    pub(super) value: &'a Value,
    old: &'a Value,
}

impl<'a> Past<'a> {
    /// Pairs a value with its old value; both belong to the schema.
    pub(super) fn new(schema: Schema<'a>, value: &'a Value, old: &'a Value) -> Self {
        Self { schema, value, old }
    }

    /// Returns a field that both objects have, if the schema declares it.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let schema = self.schema.property(name).or_else(|| self.schema.additional_properties())?;
        Some(Self::new(schema, self.value.as_object()?.get(name)?, self.old.as_object()?.get(name)?))
    }

    /// Correlates the items of the list. Only items of map lists (`x-kubernetes-list-type: map`) have an old value, by
    /// their keys.
    pub(super) fn items(self) -> Vec<Option<Self>> {
        let (Some(items), Some(old)) = (self.value.as_array(), self.old.as_array()) else { return Vec::new() };
        let (Some(schema), ListType::Map(names)) = (self.schema.items(), self.schema.list_type()) else {
            return vec![None; items.len()];
        };
        let mut known = HashMap::with_capacity(old.len());
        for one in old {
            known.entry(keys(one, names)).or_insert(one);
        }
        let past = |item| known.get(&keys(item, names)).map(|old| Self::new(schema, item, old));
        items.iter().map(past).collect()
    }

    /// Returns `true` if the value equals its old value. The order of map lists does not matter; fields that the schema
    /// does not declare count as changed.
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

/// Returns the key fields of a map-list item as a string to look it up by.
fn keys(item: &Value, names: &[Value]) -> String {
    let keys = names.iter().filter_map(Value::as_str).map(|name| &item[name]);
    keys.map(Value::to_string).collect::<Vec<_>>().join(",")
}

/// The correlated values that decide whether the CEL rules at a place are ratcheted.
#[derive(Clone, Copy, Default)]
pub(super) struct Lineage<'a> {
    /// The value itself, if it could be correlated.
    here: Option<Past<'a>>,
    /// The nearest correlated ancestor. If it is unchanged, so is everything below it.
    above: Option<Past<'a>>,
}

impl<'a> Lineage<'a> {
    /// Creates the lineage of the root object.
    pub(super) fn root(past: Option<Past<'a>>) -> Self {
        Self { here: past, above: None }
    }

    /// Returns the lineage of a field. A new field has the object as its ancestor.
    pub(super) fn field(self, name: &str) -> Self {
        let Some(here) = self.here else { return self };
        // Both objects are converted to one version, so these fields cannot show whether they changed.
        if self.above.is_none() && ["apiVersion", "kind"].contains(&name) {
            return Self::default();
        }
        Self { here: here.field(name), above: Some(here) }
    }

    /// Returns the lineages of `n` items.
    pub(super) fn items(self, n: usize) -> Vec<Self> {
        let Some(here) = self.here else { return vec![self; n] };
        let mut items = here.items();
        items.resize(n, None);
        items.into_iter().map(|item| Self { here: item, above: Some(here) }).collect()
    }

    /// Returns `true` if the value, or if it could not be correlated its ancestor, is unchanged.
    pub(super) fn is_unchanged(self) -> bool {
        self.here.or(self.above).is_some_and(Past::is_unchanged)
    }
}
