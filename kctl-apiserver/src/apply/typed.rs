//! Objects as sets of fields: what is in one, what differs between two, and merging one into another.
//!
//! The rules are those of `sigs.k8s.io/structured-merge-diff` (`typed/`): lists are one value, sets or maps by keys, as
//! their schema says; where nothing is known, objects are merged and lists are one value.

use serde_json::{Map, Value};

use super::FieldSet;
use crate::schema::{ListType, Schema};

type Known<'a> = Option<Schema<'a>>;

/// The parts of a value that have names of their own.
enum Parts<'a> {
    /// One value.
    Atom,
    Fields(&'a Map<String, Value>),
    Items(Vec<(String, &'a Value)>),
}

fn parts<'a>(schema: Known<'_>, value: &'a Value) -> Parts<'a> {
    match value {
        Value::Object(map) if !schema.is_some_and(|schema| schema.is_atomic_map()) => Parts::Fields(map),
        Value::Array(items) => {
            let named: Option<Vec<_>> = items.iter().map(|item| Some((item_name(schema?, item)?, item))).collect();
            named.map_or(Parts::Atom, Parts::Items)
        }
        _ => Parts::Atom,
    }
}

/// The name of an item of a set or a map; nothing when the list is one value, or the item has no keys.
pub(super) fn item_name(list: Schema<'_>, item: &Value) -> Option<String> {
    match list.list_type() {
        ListType::Atomic => None,
        ListType::Set => (!item.is_object()).then(|| format!("v:{item}")),
        ListType::Map(keys) => {
            let mut named = Map::new();
            for key in keys.iter().filter_map(Value::as_str) {
                let default = || list.items()?.property(key)?.json_default().cloned();
                named.insert(key.into(), item.get(key).cloned().or_else(default).unwrap_or(Value::Null));
            }
            // A key that is not there and has no default is no part of the name.
            named.retain(|_, value| !value.is_null());
            (!named.is_empty()).then(|| format!("k:{}", Value::Object(named)))
        }
    }
}

/// The fields that a configuration sets.
pub(super) fn field_set(schema: Known<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    match parts(schema, value) {
        Parts::Atom => set.join(),
        Parts::Fields(map) => {
            for (name, value) in map {
                let field = schema.and_then(|schema| schema.field(name));
                let mut child = field_set(field, value);
                let named = schema.is_some_and(|schema| schema.property(name).is_some());
                if value.is_null() || value.as_object().is_some_and(Map::is_empty) || (!named && schema.is_some()) {
                    child.join();
                }
                set.insert(format!("f:{name}"), &child);
            }
        }
        Parts::Items(items) => {
            if items.is_empty() {
                set.join();
            }
            for (name, item) in items {
                let mut child = field_set(schema.and_then(|schema| schema.items()), item);
                child.join();
                set.insert(name, &child);
            }
        }
    }
    set
}

/// What differs between two states.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Added or modified.
    pub(super) set: FieldSet,
    pub(super) removed: FieldSet,
}

/// Everything in a value, the places of its parts included.
fn everything(schema: Known<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::leaf();
    match parts(schema, value) {
        Parts::Atom => {}
        Parts::Fields(map) => {
            for (name, value) in map {
                let field = schema.and_then(|schema| schema.field(name));
                let mut child = everything(field, value);
                if always_there(schema, name) && !is_leaf(field, value) {
                    child = child.difference(&FieldSet::leaf());
                }
                set.insert(format!("f:{name}"), &child);
            }
        }
        Parts::Items(items) => {
            for (name, item) in items {
                set.insert(name, &everything(schema.and_then(|schema| schema.items()), item));
            }
        }
    }
    set
}

fn is_leaf(schema: Known<'_>, value: &Value) -> bool {
    match parts(schema, value) {
        Parts::Atom => true,
        Parts::Fields(map) => map.is_empty(),
        Parts::Items(items) => items.is_empty(),
    }
}

/// Parts of built-in types that are written even when nothing is in them: nobody adds those.
fn always_there(schema: Known<'_>, name: &str) -> bool {
    let Some(schema) = schema else { return false };
    let Some(field) = schema.property(name) else { return false };
    let part = field.json_default().is_some_and(Value::is_object);
    let required = schema.json()["required"].as_array().is_some_and(|all| all.iter().any(|known| known == name));
    field.reference().is_some() && part || (required && field.type_name() == Some("array"))
}

/// Compares two states of an object.
pub(super) fn compare(schema: Known<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    match (parts(schema, old), parts(schema, new)) {
        (Parts::Fields(old), Parts::Fields(new)) if !(old.is_empty() && new.is_empty()) => {
            for (name, value) in new {
                let field = schema.and_then(|schema| schema.field(name));
                let place = format!("f:{name}");
                if let Some(before) = old.get(name) {
                    comparison.child(place, &compare(field, before, value));
                } else {
                    let mut added = everything(field, value);
                    if always_there(schema, name) && !is_leaf(field, value) {
                        added = added.difference(&FieldSet::leaf());
                    }
                    comparison.set.insert(place, &added);
                }
            }
            for (name, value) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
                let field = schema.and_then(|schema| schema.field(name));
                comparison.removed.insert(format!("f:{name}"), &everything(field, value));
            }
        }
        (Parts::Items(old), Parts::Items(new)) if !(old.is_empty() && new.is_empty()) => {
            let of_items = schema.and_then(|schema| schema.items());
            for (name, item) in &new {
                match old.iter().find(|(known, _)| known == name) {
                    Some((_, before)) => comparison.child(name.clone(), &compare(of_items, before, item)),
                    None => comparison.set.insert(name.clone(), &everything(of_items, item)),
                }
            }
            for (name, item) in old.iter().filter(|(name, _)| !new.iter().any(|(known, _)| known == name)) {
                comparison.removed.insert(name.clone(), &everything(of_items, item));
            }
        }
        _ if old != new => comparison.set.join(),
        _ => {}
    }
    comparison
}

impl Comparison {
    fn child(&mut self, name: String, child: &Self) {
        self.set.insert(name.clone(), &child.set);
        self.removed.insert(name, &child.removed);
    }
}

/// Merges a configuration into an object.
pub(super) fn merge(schema: Known<'_>, live: &mut Value, config: &Value) {
    match (&mut *live, config) {
        (Value::Object(live), Value::Object(config)) if !schema.is_some_and(|schema| schema.is_atomic_map()) => {
            for (name, value) in config {
                let field = schema.and_then(|schema| schema.field(name));
                match live.get_mut(name) {
                    Some(known) => merge(field, known, value),
                    None => {
                        live.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(known), Value::Array(items)) => {
            let named = |item: &Value| schema.and_then(|schema| item_name(schema, item));
            if items.iter().chain(known.iter()).any(|item| named(item).is_none()) {
                *live = config.clone();
                return;
            }
            for item in items {
                match known.iter_mut().find(|known| named(known) == named(item)) {
                    Some(known) => merge(schema.and_then(|schema| schema.items()), known, item),
                    None => known.push(item.clone()),
                }
            }
        }
        _ => *live = config.clone(),
    }
}

/// Takes away what was applied last and is owned by nobody now.
pub(super) fn prune(schema: Known<'_>, value: &mut Value, last: &FieldSet, owned: &FieldSet) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| {
                let place = format!("f:{name}");
                let field = schema.and_then(|schema| schema.field(name));
                keep(field, value, last.child(&place), owned.child(&place))
            });
        }
        Value::Array(items) => {
            let of_items = schema.and_then(|schema| schema.items());
            items.retain_mut(|item| {
                let Some(place) = schema.and_then(|schema| item_name(schema, item)) else { return true };
                keep(of_items, item, last.child(&place), owned.child(&place))
            });
        }
        _ => {}
    }
}

fn keep(schema: Known<'_>, value: &mut Value, last: Option<&FieldSet>, owned: Option<&FieldSet>) -> bool {
    match (last, owned) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(last), Some(owned)) => {
            prune(schema, value, last, owned);
            true
        }
    }
}

/// What is wrong with an applied list: items without keys, or twice.
pub(super) fn check(schema: Known<'_>, value: &Value, path: &str, errors: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                check(schema.and_then(|schema| schema.field(name)), value, &format!("{path}.{name}"), errors);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.filter(|schema| schema.list_type() != ListType::Atomic) else { return };
            let mut seen = std::collections::BTreeSet::new();
            for item in items {
                match item_name(schema, item) {
                    None => errors.push(format!(
                        "{path}: element 0: associative list with keys has an element that omits all key fields"
                    )),
                    Some(name) if !seen.insert(name.clone()) => {
                        let mut set = FieldSet::default();
                        set.insert(name, &FieldSet::leaf());
                        errors.push(format!("{path}: duplicate entries for key {}", set.paths().concat()));
                    }
                    Some(_) => check(schema.items(), item, path, errors),
                }
            }
        }
        _ => {}
    }
}
