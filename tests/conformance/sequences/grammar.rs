//! Generates random objects and parts of objects from the grammar in `grammar.yaml`.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// The purpose of a generated value, which determines nulls and patch directives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A complete object for POST or PUT.
    Whole,
    /// A server-side apply configuration.
    Applied,
    /// A merge patch.
    Merged,
    /// A strategic merge patch, which has directives.
    Strategic,
}

impl Use {
    /// Returns `n` such that a field that may be null is null once in `n` times.
    fn nulls(self) -> usize {
        match self {
            Self::Whole | Self::Applied => 40,
            Self::Merged | Self::Strategic => 8,
        }
    }
}

/// Returns a random value from a grammar.
pub(super) fn make(rng: &mut Rng, grammar: &Value, used: Use) -> Value {
    match grammar {
        Value::Object(fields) if fields.contains_key("$items") => make_items(rng, fields, used),
        Value::Object(fields) => make_object(rng, fields, used),
        Value::Array(items) => items.iter().map(|item| make(rng, item, used)).collect(),
        scalar => scalar.clone(),
    }
}

fn make_object(rng: &mut Rng, fields: &Map<String, Value>, used: Use) -> Value {
    let mut made = Map::new();
    if let Some(Value::Array(choices)) = fields.get("$any") {
        let index = rng.below(choices.len());
        match make(rng, &choices[index], used) {
            Value::Object(chosen) => made = chosen,
            chosen => return chosen,
        }
    }
    for (key, grammar) in fields.iter().filter(|(key, _)| !key.starts_with('$')) {
        let name = key.trim_end_matches(['!', '?']);
        let is_left_out = match (key.ends_with('!'), key.ends_with('?'), used) {
            (true, ..) | (_, false, Use::Whole) => false,
            (_, true, Use::Whole) | (_, false, _) => rng.one_in(2),
            _ => !rng.one_in(3),
        };
        if is_left_out {
            continue;
        }
        let value = match grammar {
            _ if is_null(key, used) && rng.one_in(used.nulls()) => Value::Null,
            Value::Object(of) if key.ends_with('?') && of.contains_key("$items") && rng.one_in(12) => json!([]),
            Value::Object(of)
                if key.ends_with('?') && !of.contains_key("$any") && !of.contains_key("$items") && rng.one_in(15) =>
            {
                json!({})
            }
            grammar => make(rng, grammar, used),
        };
        if used == Use::Strategic {
            add_directives(rng, &mut made, name, grammar, &value);
        }
        made.insert(name.into(), value);
    }
    let has_directives = made.iter().any(|(name, value)| {
        name.starts_with('$') || value.to_string().contains("\"$") || value.to_string().contains("null")
    });
    if used == Use::Strategic && !made.is_empty() && !has_directives && rng.one_in(40) {
        made.insert("$patch".into(), "replace".into());
    }
    Value::Object(made)
}

/// Returns `true` if a field may be null: optional fields (`?`) of an object, and all fields of a patch except required
/// ones (`!`).
fn is_null(key: &str, used: Use) -> bool {
    match used {
        Use::Whole | Use::Applied => key.ends_with('?'),
        Use::Merged | Use::Strategic => !key.ends_with('!'),
    }
}

/// Returns some of the items, at least one, in random order.
fn make_items(rng: &mut Rng, list: &Map<String, Value>, used: Use) -> Value {
    let mut left: Vec<&Value> = list["$items"].as_array().into_iter().flatten().collect();
    let mut made = Vec::new();
    while !left.is_empty() && (made.is_empty() || !rng.one_in(3)) {
        let index = rng.below(left.len());
        // Lists without merge keys are replaced as a whole, so their items have no directives.
        let replaces_item = used == Use::Strategic && !list.contains_key("$keys");
        let mut item = make(rng, left.remove(index), if replaces_item { Use::Merged } else { used });
        if used == Use::Strategic && list.contains_key("$keys") && rng.one_in(6) {
            item = keys_of(list, &item);
            item["$patch"] = "delete".into();
        }
        made.push(item);
    }
    Value::Array(made)
}

/// Returns an item with only its merge keys.
fn keys_of(list: &Map<String, Value>, item: &Value) -> Value {
    let keys = list["$keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone()))).collect::<Map<_, _>>().into()
}

/// Adds directives for a list to a strategic merge patch: `$setElementOrder` and `$deleteFromPrimitiveList`.
fn add_directives(rng: &mut Rng, made: &mut Map<String, Value>, name: &str, grammar: &Value, value: &Value) {
    let (Some(list), Some(items)) = (grammar.as_object(), value.as_array()) else { return };
    let Some(all) = list.get("$items") else { return };
    let has_keys = list.contains_key("$keys");
    // The real server drops the connection at `$setElementOrder` for objects without merge keys.
    if !has_keys && !all[0].is_string() {
        return;
    }
    if !items.is_empty() && rng.one_in(6) {
        let order = items.iter().filter(|item| item.get("$patch").is_none());
        let order = order.map(|item| if has_keys { keys_of(list, item) } else { item.clone() }).rev();
        made.insert(format!("$setElementOrder/{name}"), order.collect());
    }
    if !has_keys && rng.one_in(4) {
        let index = rng.below(all.as_array().map_or(0, Vec::len));
        // The result for an item that is both added and deleted depends on Go's map order.
        if !items.contains(&all[index]) {
            made.insert(format!("$deleteFromPrimitiveList/{name}"), json!([all[index]]));
        }
    }
}
