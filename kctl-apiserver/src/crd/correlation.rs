//! What a value was before an update. Pairs the values of an object with those of the old one and tells which of them
//! are unchanged: errors at these are forgiven, so that a schema may become stricter than the objects that it has.
//!
//! Upstream: `pkg/cel/common/equality.go` of apiserver.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::{ListType, Schema};

/// A value and what it was, where one can tell.
#[derive(Clone, Copy)]
pub(super) struct Past<'a> {
    schema: Schema<'a>,
    pub(super) value: &'a Value,
    old: &'a Value,
}

impl<'a> Past<'a> {
    pub(super) fn new(schema: Schema<'a>, value: &'a Value, old: &'a Value) -> Self {
        Self { schema, value, old }
    }

    /// A field that both have, if the schema knows it.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let schema = self.schema.property(name).or_else(|| self.schema.additional_properties())?;
        Some(Self::new(schema, self.value.as_object()?.get(name)?, self.old.as_object()?.get(name)?))
    }

    /// The items. Only those of lists with keys have a past of their own.
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

    /// Whether it is what it was. The order of lists with keys is no matter; fields that the schema does not know are
    /// taken for changed.
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

/// What tells an item from the others, as text.
fn keys(item: &Value, names: &[Value]) -> String {
    let keys = names.iter().filter_map(Value::as_str).map(|name| &item[name]);
    keys.map(Value::to_string).collect::<Vec<_>>().join(",")
}

/// The pasts that decide whether the rules at a place are forgiven.
#[derive(Clone, Copy, Default)]
pub(super) struct Lineage<'a> {
    here: Option<Past<'a>>,
    /// Of the nearest value above that has one.
    above: Option<Past<'a>>,
}

impl<'a> Lineage<'a> {
    pub(super) fn root(past: Option<Past<'a>>) -> Self {
        Self { here: past, above: None }
    }

    pub(super) fn field(self, name: &str) -> Self {
        let Some(here) = self.here else { return self };
        // Both are converted to one version, and so nothing can be told of these.
        if self.above.is_none() && ["apiVersion", "kind"].contains(&name) {
            return Self::default();
        }
        Self { here: here.field(name), above: Some(here) }
    }

    pub(super) fn items(self, n: usize) -> Vec<Self> {
        let Some(here) = self.here else { return vec![self; n] };
        let mut items = here.items();
        items.resize(n, None);
        items.into_iter().map(|item| Self { here: item, above: Some(here) }).collect()
    }

    pub(super) fn is_unchanged(self) -> bool {
        self.here.or(self.above).is_some_and(Past::is_unchanged)
    }
}
